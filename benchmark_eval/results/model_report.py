"""``<model>_report.txt``: one model for a person to read. All numbers are in ``summary.csv``."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec
import numpy as np

from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import UNIT, Covers, Interval, Reason, without_interval
from benchmark_eval.core.numbers import ROUNDING
from benchmark_eval.core.shares import share_interval
from benchmark_eval.core.text import counted, percent, some_of, visible
from benchmark_eval.results.registry import BAND_LABEL, BY_PATH, SPLIT_LABEL
from benchmark_eval.results.schema import (
    LISTED,
    Confusion,
    ErrorCount,
    Evaluation,
    OodBand,
    SpeciesScore,
    SplitEvaluation,
)

WIDTH = 88
_FIRST = 25
_CELL = 21
_SHOWN = 5
"""Species at each end of the list."""
_MOST_NAMES = 4
_NAME = 36
_MOST_TEXTS = 8
"""Warnings or notes that are printed of a split; summary.json has all."""
_BY_CONSTRUCTION = "0 by construction"
_UNDEFINED = "n/a"
_NO_BREAK = "\N{NO-BREAK SPACE}"


def number(value: float | int | None) -> str:
    """A count with thousands separators, a float with three decimals, or "n/a"."""
    if value is None:
        return _UNDEFINED
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def render_text(evaluation: Evaluation) -> str:
    """The report, with a trailing line feed."""
    return "\n".join(map(visible, _lines(evaluation))) + "\n"


def _lines(evaluation: Evaluation) -> Iterator[str]:
    """The lines of the report."""
    yield from _wrapped(f"Evaluation of model {evaluation.model}")
    if evaluation.provenance.benchmark:
        yield from _wrapped(f"Data: {evaluation.provenance.benchmark}")
    yield from _wrapped(
        f"Localisation IoU {evaluation.config.iou_threshold:g}; {_operating(evaluation)}. "
        f"{_UNDEFINED}: undefined."
    )
    yield ""
    yield _heading("Bottom line")
    yield from _bottom_line(evaluation)
    yield ""
    yield _heading("1. Headline numbers")
    yield from _headline(evaluation)
    yield ""
    yield _heading("2. Where it fails")
    yield from _failures(evaluation)
    yield ""
    yield _heading("3. Species")
    yield from _species(evaluation)
    yield ""
    yield _heading("Confidence and unseen species")
    yield from _confidence(evaluation)
    yield ""
    yield _heading("Warnings")
    yield from _warnings(evaluation)
    yield ""
    yield from _wrapped(
        f"All metrics: {evaluation.model}_summary.csv. All species: "
        f"{evaluation.model}_per_species.csv. Definitions: docs/metrics.md."
    )


def _heading(text: str) -> str:
    return f"{text.upper()} {'-' * (WIDTH - len(text) - 1)}"


def _wrapped(text: str, indent: str = "", hanging: str = "  ") -> list[str]:
    """Lines of text; a number stays with its percent sign and "n = " with its number."""
    lines = textwrap.wrap(
        text.replace(" %", f"{_NO_BREAK}%").replace("n = ", f"n{_NO_BREAK}={_NO_BREAK}"),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def _operating(evaluation: Evaluation) -> str:
    threshold = evaluation.operating_threshold
    if threshold.confidence is None:
        return f"no operating confidence ({threshold.source})"
    return f"operating confidence {threshold.confidence:.3f} ({threshold.source})"


# ------------------------------------------------------------------ bottom line


def _bottom_line(evaluation: Evaluation) -> Iterator[str]:
    """The three headline metrics, then a few sentences per split."""
    headline = evaluation.headline
    values = (
        ("iid_test", "AP@[.5:.95]", headline.iid_test),
        ("inat_test", "AP@[.5:.95]", headline.inat_test),
        ("semantic_ood", "class-agnostic AR@100", headline.semantic_ood),
    )
    stated = [
        f"{label} {number(value)}, {SPLIT_LABEL[split]}"
        for split, label, value in values
        if split in evaluation.per_split
    ]
    if stated:
        yield from _wrapped(f"- headline: {'; '.join(stated)}.", "  ")
    for split, result in evaluation.per_split.items():
        yield from _wrapped(f"- {SPLIT_LABEL[split]}: {_of_split(result)}", "  ")
    n_warnings = sum(len(result.warnings) for result in evaluation.per_split.values())
    if n_warnings:
        yield from _wrapped(
            f"- {counted(n_warnings, 'warning')} at the end: the numbers may be wrong.", "  "
        )


def _of_split(result: SplitEvaluation) -> str:
    """What the model misses and misidentifies on a split."""
    d = result.decomposition
    if not d.n_gt:
        return "no scored specimens."
    text = f"{percent(d.n_matched_tp, d.n_gt)} of {counted(d.n_gt, 'specimen')} detected"
    if d.is_species_meaningful:
        missed, misidentified = d.n_gt - d.n_matched_tp, _misidentified(result)
        text += (
            f"; {percent(missed, d.n_gt)} missed, {percent(misidentified, d.n_gt)} "
            f"misidentified: {_larger_loss(missed, misidentified)}"
        )
    else:
        text += "; none can be identified (no species of this split has training images)"
    text += "."
    one, more = result.density.strata.one, result.density.strata.multi
    if one.n_gt and more.n_gt:
        text += (
            f" Detected alone on the image: {percent(one.n_matched_tp, one.n_gt)} "
            f"(n = {one.n_gt:,}), with others: {percent(more.n_matched_tp, more.n_gt)} "
            f"(n = {more.n_gt:,})."
        )
    open_vocabulary = d.detection_recall_open_vocabulary
    if (
        open_vocabulary is not None
        and d.detection_recall is not None
        and open_vocabulary > d.detection_recall
    ):
        text += (
            f" {percent(round(open_vocabulary * d.n_gt), d.n_gt)} of specimens detected if "
            "out-of-vocabulary detections (of species that this split does not list) count too"
        )
        correct = d.species_recall_open_vocabulary
        if d.is_species_meaningful and correct is not None:
            text += (
                f"; {percent(round(correct * d.n_gt), d.n_gt)} are then detected and correctly "
                "identified"
            )
        text += ". All other numbers exclude them."
    return text


def _misidentified(result: SplitEvaluation) -> int:
    n_correct = sum(s.n_correct_species for s in result.per_species.values())
    return result.decomposition.n_matched_tp - n_correct


def _larger_loss(missed: int, misidentified: int) -> str:
    """Which of the two losses is larger."""
    if missed == misidentified:
        return "both losses are equal" if missed else "no losses"
    return f"{'identification' if misidentified > missed else 'detection'} is the larger loss"


# ------------------------------------------------------------------ 1. headline numbers


class _Row(NamedTuple):
    """A row of the first table: its label, its value on a split, and its interval."""

    label: str
    value: Callable[[SplitEvaluation], float | None]
    interval: Callable[[SplitEvaluation], Interval] | None
    needs_species: bool


def _ap(key: str) -> Callable[[SplitEvaluation], Interval]:
    """The interval of a mean over species."""

    def found(result: SplitEvaluation) -> Interval:
        values = [getattr(s, key) for s in _scored(result)]
        table = crossed_table(np.array(values, np.float64).reshape(-1, 1))
        interval = crossed_interval(table, UNIT)
        printed = getattr(result.coco, key)
        if interval.mean is not None and (
            printed is None or abs(printed - interval.mean) > ROUNDING
        ):
            return without_interval(interval, Reason.SPECIES_LEFT_OUT)
        return interval

    return found


def _share(part: str, whole: str) -> Callable[[SplitEvaluation], Interval]:
    """The interval of a share of specimens, whose species differ in size."""

    def found(result: SplitEvaluation) -> Interval:
        counts = [(getattr(s, part), getattr(s, whole)) for s in _scored(result)]
        counts = [(f, n) for f, n in counts if n]
        if not counts:
            nothing = Interval(mean=None, covers=Covers.SPECIES, n_species=0, n_seeds=0)
            return without_interval(nothing, Reason.NO_VALUES)
        parts, wholes = (list(column) for column in zip(*counts, strict=True))
        return share_interval(parts, wholes, [sum(parts) / sum(wholes)], None)

    return found


_ROWS = (
    _Row("AP@[.5:.95]", lambda r: r.coco.AP_50_95, _ap("AP_50_95"), True),
    _Row("AP@.5", lambda r: r.coco.AP_50, _ap("AP_50"), True),
    _Row("class-agnostic AP@.5", lambda r: r.class_agnostic.AP_50, None, False),
    _Row("class-agnostic AR@100", lambda r: r.class_agnostic.AR_100, None, False),
    _Row(
        "detected",
        lambda r: r.decomposition.detection_recall,
        _share("n_matched_tp", "n_gt"),
        False,
    ),
    _Row(
        "correct, of detected",
        lambda r: r.decomposition.classification_given_detection_acc,
        _share("n_correct_species", "n_matched_tp"),
        True,
    ),
    _Row(
        "detected and correct",
        lambda r: r.decomposition.species_recall,
        _share("n_correct_species", "n_gt"),
        True,
    ),
)


def _scored(result: SplitEvaluation) -> list[SpeciesScore]:
    return [score for score in result.per_species.values() if score.n_gt]


def _table(first: str, cells: Sequence[str]) -> str:
    return f"  {first:<{_FIRST - 2}}{''.join(f'{cell:>{_CELL}}' for cell in cells)}".rstrip()


def _split_header(evaluation: Evaluation) -> str:
    return _table("", [SPLIT_LABEL[split] for split in evaluation.per_split])


def _headline(evaluation: Evaluation) -> Iterator[str]:
    splits = evaluation.per_split
    yield _split_header(evaluation)
    reasons: dict[str, list[str]] = {}
    for row in _ROWS:
        cells = []
        for split, result in splits.items():
            value = row.value(result)
            if row.needs_species and not result.decomposition.is_species_meaningful:
                cells.append(_BY_CONSTRUCTION if result.decomposition.n_gt else _UNDEFINED)
                continue
            text = number(value)
            if row.interval is not None and value is not None:
                found = row.interval(result)
                if found.low is not None and found.high is not None:
                    text += f" [{found.low:.3f}, {found.high:.3f}]"
                else:
                    why = f"{row.label} ({SPLIT_LABEL[split]})"
                    reasons.setdefault(str(found.no_interval), []).append(why)
            cells.append(text)
        yield _table(row.label, cells)
    results = splits.values()
    yield _table("n specimens", [number(r.decomposition.n_gt) for r in results])
    yield _table("n species", [number(len(_scored(r))) for r in results])
    yield _table("n images", [number(r.prediction_density.n_images) for r in results])
    yield from _wrapped(
        "Detections of any confidence. In brackets: 95 % interval over species, not over training "
        "runs. Class-agnostic AP and AR have no values by species, so none.",
        "  ", "",
    )  # fmt: skip
    for reason, rows in reasons.items():
        yield from _wrapped(f"No interval ({reason}): {', '.join(rows)}.", "  ")


# ------------------------------------------------------------------ 2. where it fails


_ERRORS = (
    ("correct", "correct"),
    ("wrong_name_congener", "wrong name, same genus"),
    ("wrong_name_same_tribe", "wrong name, same tribe"),
    ("wrong_name_other", "wrong name, other"),
    ("poor_box", "poor box"),
    ("both", "poor box, wrong name"),
    ("duplicate", "duplicate"),
    ("background", "background"),
    ("missed", "missed specimen"),
)


def _failures(evaluation: Evaluation) -> Iterator[str]:
    splits = evaluation.per_split
    defined = evaluation.operating_threshold.confidence is not None
    which = "at and above the operating confidence" if defined else "at any confidence"
    yield from _wrapped(
        f"Detections {which}, and missed specimens: n, and (in brackets) per 100 images."
        if defined
        else f"Detections {which}, and missed specimens: n.",
        "  ", "",
    )  # fmt: skip
    yield _split_header(evaluation)
    for key, label in _ERRORS:
        cells = []
        for result in splits.values():
            found = getattr(result.errors, key)
            cells.append(_error_cell(found) if isinstance(found, ErrorCount) else "-")
        if set(cells) != {"-"}:
            yield _table(label, cells)
    nameless = [
        SPLIT_LABEL[split]
        for split, result in splits.items()
        if not result.decomposition.is_species_meaningful
    ]
    if nameless:
        yield from _wrapped(
            f"Names are ignored on {' and '.join(nameless)} (-): correct means detected.",
            "  ", "",
        )  # fmt: skip
    yield from _wrapped(
        f"Poor box: an IoU below {evaluation.config.iou_threshold:g}, but at least 0.1, with a "
        "specimen. Duplicate: of a specimen that is already detected. Background: an IoU below "
        "0.1 with every specimen.",
        "  ", "",
    )  # fmt: skip
    most = [f"{SPLIT_LABEL[split]}: {_most_frequent_error(r)}" for split, r in splits.items()]
    yield from _wrapped(f"Most frequent errors. {'; '.join(most)}.", "  ", "")


def _most_frequent_error(result: SplitEvaluation) -> str:
    """``background, 12 of 30``; a tie as a tie."""
    mistakes = [
        (label, _operating_count(found))
        for key, label in _ERRORS
        if key != "correct" and isinstance(found := getattr(result.errors, key), ErrorCount)
    ]
    most = max(n for _, n in mistakes)
    if not most:
        return "none"
    names = [label for label, n in mistakes if n == most]
    tied = " each, tied" if len(names) > 1 else ""
    return f"{' and '.join(names)}, {most:,} of {sum(n for _, n in mistakes):,}{tied}"


def _operating_count(found: ErrorCount) -> int:
    return found.n if found.n_operating is None else found.n_operating


def _error_cell(found: ErrorCount) -> str:
    per = "" if found.per_100_images is None else f" ({found.per_100_images:.1f})"
    return f"{_operating_count(found):,}{per}"


# ------------------------------------------------------------------ 3. species


def _species(evaluation: Evaluation) -> Iterator[str]:
    meaningful = {
        split: result
        for split, result in evaluation.per_split.items()
        if result.decomposition.is_species_meaningful and result.decomposition.n_gt
    }
    if not meaningful:
        yield "  No split with species that can be identified."
        return
    first = next(iter(meaningful))
    yield from _worst_and_best(first, meaningful[first])
    for split, result in meaningful.items():
        yield from _wrapped(f"- {SPLIT_LABEL[split]}: {_confusions(result)}", "  ")


def _worst_and_best(split: str, result: SplitEvaluation) -> Iterator[str]:
    scored = [(s.AP_50_95, s) for s in _scored(result) if s.AP_50_95 is not None]
    if not scored:
        yield f"  AP is undefined for every species ({SPLIT_LABEL[split]})."
        return
    ascending = sorted(scored, key=lambda item: (item[0], item[1].name))
    yield (
        f"  {f'{SPLIT_LABEL[split]}, {len(scored)} species':<{_NAME + 8}}"
        f"{'AP@[.5:.95]':>11}{'n':>7}{'detected':>10}{'correct':>9}"
    )
    if len(ascending) <= 2 * _SHOWN:
        yield from _ends("", ascending, len(ascending))
        return
    yield from _ends("worst", ascending, _SHOWN)
    descending = sorted(scored, key=lambda item: (-item[0], item[1].name))
    yield from _ends("best", descending, _SHOWN)


def _ends(label: str, ranked: Sequence[tuple[float, SpeciesScore]], room: int) -> Iterator[str]:
    """The first species; a tie that does not fit is one line, so that none of it is singled out."""
    for value, tied in groupby(ranked, key=lambda item: item[0]):
        group = [score for _, score in tied]
        if room <= 0:
            return
        if len(group) > room:
            text = f"{counted(len(group), 'species', 'species')} tied: "
            names = some_of([score.name for score in group], _MOST_NAMES)
            lines = _wrapped(f"{label:<6}AP {value:.3f}, {text}{names}", "  ", "      ")
            yield from lines
            return
        for score in group:
            name = score.name if len(score.name) <= _NAME else f"{score.name[: _NAME - 3]}..."
            yield (
                f"  {label:<6}{name:<{_NAME + 2}}{value:>11.3f}{score.n_gt:>7,}"
                f"{score.n_matched_tp:>10,}{score.n_correct_species:>9,}"
            )
            room -= 1


def _confusions(result: SplitEvaluation) -> str:
    """The most frequent confusion, a tie as a tie, and how many stay within the genus."""
    misidentified = _misidentified(result)
    if not misidentified:
        return "no detected specimen is misidentified."
    text = _most_frequent(result.confusions)
    expected = result.chance.expected_genus
    if expected:  # else no congener is among the predicted species
        # over all species: confusions lists only the most frequent pairs
        congeners = sum(
            s.n_correct_genus - s.n_correct_species for s in result.per_species.values()
        )
        text += (
            f" Misidentified as a congener: {congeners:,} of {misidentified:,} "
            f"({percent(congeners, misidentified)}; by chance {100 * expected:.0f} %)."
        )
    else:
        text += f" Misidentified in all: {misidentified:,}."
    return text


def _most_frequent(confusions: Sequence[Confusion]) -> str:
    if not confusions:
        return "no confusion is listed."
    most = confusions[0].n
    if most < 2:
        return "no pair of species is confused more than once."
    tied = [pair for pair in confusions if pair.n == most]

    def said(pair: Confusion) -> str:
        return f"{pair.gt_species} identified as {pair.pred_species}"

    if len(tied) == 1:
        (one,) = tied
        genus = ", same genus" if one.same_genus else ""
        return (
            f"most frequent confusion: {said(one)}, {one.n:,} of {one.n_matched_tp:,} "
            f"detected{genus}."
        )
    several = f"at least {len(tied)}" if len(tied) == LISTED else str(len(tied))
    return (
        f"most frequent confusions: {several} pairs tied at {most:,} specimens each "
        f"({some_of([said(pair) for pair in tied], 2)})."
    )


# ------------------------------------------------------------------ confidence, unseen species


def _confidence(evaluation: Evaluation) -> Iterator[str]:
    for split, result in evaluation.per_split.items():
        yield from _wrapped(f"- {SPLIT_LABEL[split]}: {_calibration(result)}", "  ")
    summary = evaluation.summary
    if summary.novelty_det_AUROC is not None:
        text = (
            f"- {BY_PATH['summary.novelty_det_AUROC'].label} "
            f"{number(summary.novelty_det_AUROC)} (0.5: chance), FPR at 95 % TPR "
            f"{number(summary.novelty_det_FPR_95TPR)} (true positives: "
            f"n = {number(summary.n_known_tp)} on known, {number(summary.n_novel_tp)} on unseen "
            "species)."
        )
        yield from _wrapped(text, "  ")
    gap = summary.photography_robustness_gap_AP_50_95_shared_species
    if gap is not None:
        yield from _wrapped(
            f"- {BY_PATH['summary.photography_robustness_gap_AP_50_95_shared_species'].label}: "
            f"{gap:+.3f} (n = {number(summary.n_shared_species_iid_inat)}).",
            "  ",
        )
    for result in evaluation.per_split.values():
        bands = result.ood_by_band
        if isinstance(bands, msgspec.UnsetType):
            continue
        for name, band in bands.by_band.items():
            yield from _wrapped(
                f"- {BAND_LABEL[name]}: AR@100 {number(band.class_agnostic_AR_100)}, "
                f"{_ranks(name, band)} (n = {band.n_matched_tp:,}).",
                "  ",
            )


def _ranks(name: str, band: OodBand) -> str:
    """Genus and tribe of a band's true positives; impossible ones are said to be so."""
    genus, tribe = band.correct_genus, band.correct_tribe
    if name == "near_genus":
        return f"genus {number(genus)}, tribe {number(tribe)} correct"
    if name == "mid_tribe":
        return f"genus {_BY_CONSTRUCTION}, tribe {number(tribe)} correct"
    return f"genus and tribe {_BY_CONSTRUCTION}"


def _calibration(result: SplitEvaluation) -> str:
    c = result.calibration
    if c.ECE is None:
        return "no true or false positives."
    half = result.operating_point.at_50
    text = (
        f"ECE {number(c.ECE)} over {counted(c.n_predictions, 'detection')}, "
        f"{half.n_detections:,} of them at 0.5 or above"
    )
    if half.precision is not None:
        true = round(half.precision * half.n_detections)
        text += f" ({percent(true, half.n_detections)} true positives)"
    operating = result.reliability.detected.operating
    if operating is not None and operating.ECE_equal_mass is not None:
        text += (
            f"; {number(operating.ECE_equal_mass)} over the {operating.n_detections:,} from the "
            "operating confidence"
        )
    return text + "."


# ------------------------------------------------------------------ warnings


def _warnings(evaluation: Evaluation) -> Iterator[str]:
    found = False
    for split, result in evaluation.per_split.items():
        for kind, texts in (("WARNING", result.warnings), ("note", result.notes)):
            for text in texts[:_MOST_TEXTS]:
                found = True
                yield from _wrapped(f"{kind}: {SPLIT_LABEL[split]}: {text}", "  ")
            if len(texts) > _MOST_TEXTS:
                more = counted(len(texts) - _MOST_TEXTS, f"more {kind.lower()}")
                yield from _wrapped(
                    f"{kind}: {SPLIT_LABEL[split]}: {more} in {evaluation.model}_summary.json",
                    "  ",
                )
    if not found:
        yield "  None."
