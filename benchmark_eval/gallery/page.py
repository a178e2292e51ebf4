"""The page of the gallery: everything that it says, rendered from a template.

Names come from the user's files: the template escapes them, and control characters are replaced
(``core.text.visible``). The page has no path of this computer.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from jinja2 import Environment, StrictUndefined

from benchmark_eval import __version__
from benchmark_eval.core.text import counted, visible
from benchmark_eval.gallery.cases import SHOWN_TYPES, Case, View
from benchmark_eval.gallery.pictures import STYLES
from benchmark_eval.inputs.licences import ImageOrigin, Licence
from benchmark_eval.protocol import LICENCES, OOD_BANDS
from benchmark_eval.results.evidence import DENSITY
from benchmark_eval.results.schema import ERROR_TYPES

FOUND_BY_ONE = "found_by_one"
UNKNOWN_BAND = "none"
"""Value of the band filter for cases without a specimen, or with one without a band."""

_ABOUT = {
    "background": (
        "False positives on the background",
        "Detections that overlap no specimen (IoU below 0.1). The most confident first.",
    ),
    "missed": (
        "Missed specimens",
        "Specimens that no detection matches, at any confidence. Those that cover the largest "
        "share of their image first.",
    ),
    "wrong_name_congener": (
        "Misidentified as a congener",
        "Detected, but named as another species of the same genus. One case for each pair of "
        "species, the most frequent pairs first.",
    ),
    "wrong_name_same_tribe": (
        "Misidentified within the tribe",
        "Detected, but named as a species of another genus of the same tribe. One case for each "
        "pair of species, the most frequent pairs first.",
    ),
    "wrong_name_other": (
        "Misidentified as a species of another tribe",
        "Detected, but named as an unrelated species. One case for each pair of species, the most "
        "frequent pairs first.",
    ),
    "both": (
        "Wrong species and poor box",
        "Unmatched detections with an IoU from 0.1 with a specimen of another species only. The "
        "most confident first.",
    ),
    "poor_box": (
        "Poor boxes",
        "Unmatched detections with an IoU from 0.1, but below the threshold, with a specimen of "
        "the predicted species (on semantic_ood of any species). The most confident first.",
    ),
    "duplicate": (
        "Duplicates",
        "Further detections of a specimen that another detection has already matched. The most "
        "confident first.",
    ),
}
"""Heading and explanation of the cases of each error type."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of a view, or why there is none; the files are relative to the page."""

    crop: str
    size: tuple[int, int]
    whole: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A case with its pictures, one per view, and the origin of its image."""

    case: Case
    pictures: tuple[Picture, ...]
    origin: ImageOrigin


@dataclass(frozen=True, slots=True)
class Count:
    """Numbers of one error type on one split: shown, all, and at the operating threshold."""

    shown: int
    n: int
    n_operating: int | None


@dataclass(frozen=True, slots=True)
class ModelOnPage:
    """A model: name, operating threshold and its source, and counts by error type and split.

    A text in place of a count is why there is none.
    """

    name: str
    threshold: float | None
    threshold_source: str
    counts: Mapping[str, Mapping[str, Count | str]]


@dataclass(frozen=True, slots=True)
class Content:
    """Everything on the page. ``notes`` say what is not shown and why."""

    models: Sequence[ModelOnPage]
    splits: Sequence[str]
    iou: float
    description: str
    notes: Sequence[str]
    cases: Sequence[Shown]


@dataclass(frozen=True, slots=True)
class _Group:
    """A section of the page."""

    anchor: str
    heading: str
    about: str
    cases: list[dict[str, object]]


def render_page(content: Content) -> str:
    """The HTML of the page."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    species = sorted({name for shown in content.cases for name in _species(shown.case)})
    number = {name: at for at, name in enumerate(species)}
    return environment.from_string(_file("page.html")).render(
        title=f"Gallery of failures: {' and '.join(model.name for model in content.models)}",
        content=content,
        groups=_groups(content, number),
        filters=_filters(content, species),
        types={ERROR_TYPES[kind]: _ABOUT[ERROR_TYPES[kind]][0] for kind in SHOWN_TYPES},
        legend=[STYLES[role] for role in ("specimen", "detection", "matched", "other")],
        style=_file("page.css"),
        script=script,
        script_digest=digest,
        version=__version__,
        licences=LICENCES,
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _without_controls(value: object) -> object:
    """What an expression of the template prints: text without control characters.

    Files of this package are marked as safe in the template and stay as they are.
    """
    is_name = isinstance(value, str) and not hasattr(value, "__html__")
    return visible(str(value)) if is_name else value


def _species(case: Case) -> list[str]:
    names = [case.true, *(view.predicted for view in case.views)]
    return [name for name in dict.fromkeys(names) if name]


def _groups(content: Content, number: Mapping[str, int]) -> list[_Group]:
    """The sections that have cases, in the order of the page."""
    groups = []
    if len(content.models) == 2:
        for at, (one, other) in enumerate(((0, 1), (1, 0))):
            of = [
                shown
                for shown in content.cases
                if shown.case.kind == FOUND_BY_ONE and shown.case.views[0].model == one
            ]
            names = content.models[one].name, content.models[other].name
            groups.append(
                _Group(
                    f"{FOUND_BY_ONE}-{at}",
                    f"Detected by {names[0]}, missed by {names[1]}",
                    "Specimens that a detection at or above the operating threshold of the first "
                    "model matches, and none of the second. The largest difference in confidence "
                    "first.",
                    [_entry(content, shown, number) for shown in of],
                )
            )
    for kind in SHOWN_TYPES:
        name = ERROR_TYPES[kind]
        of = [shown for shown in content.cases if shown.case.kind == name]
        groups.append(_Group(name, *_ABOUT[name], [_entry(content, s, number) for s in of]))
    return [group for group in groups if group.cases]


def _entry(content: Content, shown: Shown, number: Mapping[str, int]) -> dict[str, object]:
    """A case as the template needs it."""
    case, licence = shown.case, shown.origin.licence
    return {
        "model": " ".join(str(view.model) for view in case.views),
        "split": case.split,
        "type": case.kind,
        "species": " ".join(str(number[name]) for name in _species(case)),
        "band": case.band or UNKNOWN_BAND,
        "density": str(case.density),
        "true": case.true,
        "n_specimens": counted(case.n_specimens, "specimen"),
        "image": shown.origin.file_name or f"image {case.image_id} (no file name)",
        "licence": licence,
        "licence_url": _safe_url(licence),
        "views": [
            {
                "name": content.models[view.model].name,
                "lines": _lines(content, case, view),
                "alt": _alternative(case, view, content.models[view.model].name),
                "picture": picture,
                "verdict": _verdict(view),
            }
            for view, picture in zip(case.views, shown.pictures, strict=True)
        ],
    }


def _lines(content: Content, case: Case, view: View) -> list[tuple[str, str]]:
    """Terms and values that describe a view."""
    lines = [("Predicted", view.predicted)] if view.predicted else []
    if view.score is not None:
        reach = {
            None: "",
            True: ", at or above the operating threshold",
            False: ", below the operating threshold",
        }[view.at_threshold]
        lines.append(("Confidence", f"{view.score:.3f}{reach}"))
    if view.iou is not None:
        lines.append(("IoU", f"{view.iou:.2f}"))
    elif view.score is not None:
        lines.append(("IoU", "below 0.1 with every specimen"))
    if len(content.models) > 1 and case.kind != FOUND_BY_ONE:
        lines.append(("Model", content.models[view.model].name))
    return lines


def _verdict(view: View) -> str:
    """What a model of a comparison did with the specimen."""
    if view.score is None:
        return "missed: no detection at any confidence"
    if view.at_threshold is False:
        return "missed: only a detection below the operating threshold"
    return "detected"


def _alternative(case: Case, view: View, model: str) -> str:
    """The text in place of a picture."""
    truth = f"annotated specimen of {case.true}" if case.true else "no annotated specimen"
    if view.score is None:
        return f"Crop: {truth}; no detection of {model} matches it"
    return f"Crop: detection of {model}, {view.predicted}, confidence {view.score:.2f}; {truth}"


def _safe_url(licence: Licence | None) -> str:
    """The address of a licence, if it is one of the web."""
    url = "" if licence is None else licence.url
    return url if url.startswith(("https://", "http://")) else ""


def _filters(content: Content, species: Sequence[str]) -> list[dict[str, object]]:
    """The selects: name, label, and (value, text) of the options that occur."""
    cases = [shown.case for shown in content.cases]
    bands = [*OOD_BANDS, UNKNOWN_BAND]
    kinds = {case.kind for case in cases}
    both = "Detected by one model only"
    options = {
        "model": ("Model", [(str(at), model.name) for at, model in enumerate(content.models)]),
        "split": ("Split", [(s, s) for s in content.splits if any(c.split == s for c in cases)]),
        "type": (
            "Error type",
            [
                (kind, both if kind == FOUND_BY_ONE else _ABOUT[kind][0])
                for kind in (FOUND_BY_ONE, *(ERROR_TYPES[k] for k in SHOWN_TYPES))
                if kind in kinds
            ],
        ),
        "species": (
            "Species (true or predicted)",
            [(str(at), name) for at, name in enumerate(species)],
        ),
        "band": (
            "Distance band of the specimen",
            [
                (band, "no specimen or no band" if band == UNKNOWN_BAND else band)
                for band in bands
                if any((case.band or UNKNOWN_BAND) == band for case in cases)
            ],
        ),
        "density": (
            "Specimens on the image",
            [
                (str(at), text)
                for at, text in enumerate(DENSITY)
                if any(case.density == at for case in cases)
            ],
        ),
    }
    return [
        {"name": name, "label": label, "options": listed}
        for name, (label, listed) in options.items()
        if not (name == "model" and len(listed) < 2)
    ]
