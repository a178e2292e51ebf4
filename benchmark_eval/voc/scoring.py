"""Score two folders of text files: read, check, match and count."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.listing import walked
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import counted, some_of
from benchmark_eval.voc.results import SIDE, ClassScore, Coordinates, MapResult
from benchmark_eval.voc.rule import (
    FALSE_POSITIVE,
    NOT_COUNTED,
    TRUE_POSITIVE,
    Curve,
    average_precision,
    curve,
    judge,
    log_average_miss_rate,
    nearest_objects,
)
from benchmark_eval.voc.text import Boxes, Progress, class_name, read_boxes

MAX_NAMED = 5
"""Maximum number of images or classes that a note names."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Result of the matching, without ignored classes.

    ``ground_truth`` and ``detections`` share ``images`` and ``classes``. For each detection,
    ``nearest`` is the row of the object with the highest IoU (-1: no overlap) and ``verdict`` is
    one of the three constants of ``rule``.
    """

    ground_truth: Boxes
    detections: Boxes
    nearest: NDArray[np.int64]
    verdict: NDArray[np.int8]


def score_voc_folders(
    prediction_dir: str | Path,
    ground_truth_dir: str | Path,
    *,
    iou: float = 0.5,
    class_iou: Mapping[str, float] | None = None,
    ignore: Collection[str] = (),
    coordinates: Coordinates = "pixel",
    progress: Progress | None = None,
) -> tuple[MapResult, Matches]:
    """Compute the average precision of PASCAL VOC 2012 from two folders of text files.

    Parameters
    ----------
    prediction_dir : str or Path
        One text file per image, one detection per line: ``CLASS CONFIDENCE LEFT TOP RIGHT
        BOTTOM``, corners in px. An image without a file has no detections.
    ground_truth_dir : str or Path
        One text file per image, one object per line: ``CLASS LEFT TOP RIGHT BOTTOM [difficult]``.
    iou : float, default 0.5
        IoU threshold, in (0, 1].
    class_iou : mapping of str to float, optional
        IoU thresholds of individual classes, which replace ``iou``.
    ignore : collection of str, default ()
        Classes to ignore in both folders.
    coordinates : {"pixel", "continuous"}, default "pixel"
        Whether a box is ``right - left + 1`` wide, as in VOC, or ``right - left``.
    progress : callable, optional
        Called with (what, done, total) while files are read.

    Returns
    -------
    result : MapResult
        ``mAP`` (0 to 1, or None if undefined), ``classes`` (name, AP and counts of each class),
        ``curves`` (precision and recall by class) and ``notes``.
    matches : Matches
        For each detection, whether it is a true positive, a false positive or not counted.

    Raises
    ------
    InputError
        A file is missing or not valid. All problems of both folders are in ``problems``.
    UsageError
        An option is not allowed.

    Notes
    -----
    The rule is that of the VOC 2012 development kit (Everingham et al. 2015, The PASCAL Visual
    Object Classes Challenge: A Retrospective, International Journal of Computer Vision 111):
    detections in descending order of confidence, each compared with the object of its class with
    the highest IoU. AP is the area under the interpolated precision-recall curve; difficult
    objects are not counted. The benchmark does not report these numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from benchmark_eval import score_voc_folders
    >>> folder = tempfile.TemporaryDirectory()
    >>> truth, detections = Path(folder.name, "truth"), Path(folder.name, "detections")
    >>> truth.mkdir()
    >>> detections.mkdir()
    >>> _ = Path(truth, "1.txt").write_text("ips 0 0 9 9")
    >>> _ = Path(truth, "2.txt").write_text("ips 50 50 59 59")
    >>> _ = Path(detections, "1.txt").write_text("ips 0.9 0 0 9 9")
    >>> result, _ = score_voc_folders(detections, truth)
    >>> result.mAP  # one of two objects, without a false positive
    0.5
    >>> folder.cleanup()
    """
    class_iou = {class_name(name): value for name, value in (class_iou or {}).items()}
    ignored = sorted({class_name(name) for name in ignore})
    _check_options(iou, class_iou, ignored, coordinates)
    ground_truth, problems = read_boxes(ground_truth_dir, "ground truth", progress)
    detections, more = read_boxes(prediction_dir, "detections", progress)
    truth_dir, detection_dir = Path(ground_truth_dir), Path(prediction_dir)
    problems += [
        *more,
        *_stem_problems(ground_truth, detections, truth_dir, detection_dir),
        *_coordinate_problems(ground_truth, truth_dir, coordinates, objects=True),
        *_coordinate_problems(detections, detection_dir, coordinates, objects=False),
    ]
    if not problems and not len(ground_truth):
        found = f"no object in {counted(len(ground_truth.images), 'file')}"
        problems.append(Problem("no-object", str(ground_truth_dir), found, "at least one object"))
    if problems:
        raise InputError(problems)
    _check_thresholds(class_iou, ground_truth)
    result, matches = score_boxes(
        ground_truth,
        detections,
        iou=iou,
        class_iou=class_iou,
        ignore=ignored,
        coordinates=coordinates,
    )
    unread = [
        *_unread_notes(truth_dir, "ground truth"),
        *_unread_notes(detection_dir, "detections"),
    ]
    return structs.replace(result, notes=(*result.notes, *unread)), matches


def _unread_notes(folder: Path, kind: str) -> list[str]:
    """A note if there are text files in subfolders, which are not read."""
    below = [p for p in walked(folder) if p.suffix.lower() == ".txt" and p.parent != folder]
    if not below:
        return []
    first = below[0].relative_to(folder).as_posix()
    return [f"{counted(len(below), 'text file')} in subfolders of the {kind} not read ({first})"]


def score_boxes(
    ground_truth: Boxes,
    detections: Boxes,
    *,
    iou: float = 0.5,
    class_iou: Mapping[str, float] | None = None,
    ignore: Collection[str] = (),
    coordinates: Coordinates = "pixel",
) -> tuple[MapResult, Matches]:
    """Score boxes in memory; every image of ``detections`` must have ground truth."""
    class_iou = class_iou or {}
    classes = sorted(set(ground_truth.classes).union(detections.classes).difference(ignore))
    truth = _aligned(ground_truth, ground_truth.images, classes)
    found = _aligned(detections, ground_truth.images, classes)
    n_images = len(truth.images)
    nearest, overlap = nearest_objects(
        found.label * n_images + found.image,
        found.corners,
        truth.label * n_images + truth.image,
        truth.corners,
        SIDE[coordinates],
    )
    threshold = np.array([class_iou.get(name, iou) for name in classes])
    # boxes are sorted by image name, then line, which breaks ties between equal confidences
    order = np.lexsort((-found.confidence, found.label))
    verdict = judge(nearest, overlap, threshold[found.label], order, truth.difficult)

    scores: list[ClassScore] = []
    curves: dict[str, Curve] = {}
    without_class: dict[str, int] = {}
    bounds = np.searchsorted(found.label[order], np.arange(len(classes) + 1))
    n_of_class = np.bincount(truth.label[~truth.difficult], minlength=len(classes)).tolist()
    n_difficult = np.bincount(truth.label[truth.difficult], minlength=len(classes)).tolist()
    for label, name in enumerate(classes):
        rows = order[bounds[label] : bounds[label + 1]]
        n = n_of_class[label]
        if not n and not n_difficult[label]:
            without_class[name] = len(rows)
            continue
        own = verdict[rows]
        if n:
            curves[name] = curve(own, found.confidence[rows], n)
        scores.append(
            ClassScore(
                name=name,
                AP=average_precision(curves[name], n) if n else None,
                iou_threshold=float(threshold[label]),
                n_objects=n,
                n_difficult=n_difficult[label],
                n_detections=len(rows),
                n_true_positives=int(np.sum(own == TRUE_POSITIVE)),
                n_false_positives=int(np.sum(own == FALSE_POSITIVE)),
                n_on_difficult=int(np.sum(own == NOT_COUNTED)),
                log_average_miss_rate=log_average_miss_rate(own, n, n_images) if n else None,
            )
        )
    aps = [score.AP for score in scores if score.AP is not None]
    with_file = set(detections.images)
    without_file = tuple(name for name in truth.images if name not in with_file)
    result = MapResult(
        mAP=math.fsum(aps) / len(aps) if aps else None,
        iou_threshold=iou,
        coordinates=coordinates,
        ignored=tuple(ignore),
        n_images=n_images,
        images_without_detections=without_file,
        classes=tuple(scores),
        detections_without_class=without_class,
        curves=curves,
        notes=(
            *_image_notes(without_file, n_images),
            *_class_notes(scores, without_class),
            *_ignore_notes(ignore, ground_truth, detections),
            *_coordinate_notes(truth, found, coordinates),
        ),
    )
    return result, Matches(truth, found, nearest, verdict)


def _aligned(boxes: Boxes, images: tuple[str, ...], classes: list[str]) -> Boxes:
    """The same boxes with these images and classes, without boxes of other classes."""
    place = {name: index for index, name in enumerate(classes)}
    label = np.array([place.get(name, -1) for name in boxes.classes], dtype=np.int64)[boxes.label]
    position = {name: index for index, name in enumerate(images)}
    image = np.array([position[name] for name in boxes.images], dtype=np.int64)[boxes.image]
    kept = label >= 0
    return Boxes(
        images=images,
        classes=tuple(classes),
        image=image[kept],
        label=label[kept],
        line=boxes.line[kept],
        corners=boxes.corners[kept],
        confidence=boxes.confidence[kept],
        difficult=boxes.difficult[kept],
    )


def _check_options(
    iou: float, class_iou: Mapping[str, float], ignored: list[str], coordinates: str
) -> None:
    errors = [
        f"{what} must be in (0, 1], got {value:g}"
        + (" (a percentage; divide it by 100)" if 1 < value <= 100 else "")
        for what, value in [("iou", iou), *((f"iou of {n!r}", v) for n, v in class_iou.items())]
        if not 0 < value <= 1
    ]
    if coordinates not in SIDE:
        errors.append(f"coordinates must be {' or '.join(map(repr, SIDE))}, got {coordinates!r}")
    errors += [
        f"class {name!r}: found a non-printable character; expected a class name of the files"
        for name in sorted({*class_iou, *ignored})
        if not name.isprintable()
    ]
    errors += [
        f"class {name!r}: found an IoU threshold for an ignored class; expected one of the two"
        for name in sorted(class_iou.keys() & set(ignored))
    ]
    if errors:
        raise UsageError(*errors)


def _check_thresholds(class_iou: Mapping[str, float], ground_truth: Boxes) -> None:
    known = ground_truth.classes
    errors = []
    for name in class_iou:
        if name not in known:
            similar = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {similar[0]!r}?)" if similar else ""
            errors.append(
                f"IoU threshold of class {name!r}: no such class in the ground truth; "
                f"expected one of {some_of([repr(one) for one in known], MAX_NAMED)}{hint}"
            )
    if errors:
        raise UsageError(*errors)


def _stem_problems(
    ground_truth: Boxes, detections: Boxes, truth_dir: Path, detection_dir: Path
) -> list[Problem]:
    """Problems of detection files without a ground-truth file."""
    if not ground_truth.images or not detections.images:
        return []  # reported as an empty folder
    known = set(ground_truth.images)
    unmatched = [name for name in detections.images if name not in known]
    cause = ""
    if len(unmatched) == len(detections.images):
        cause = "no file name in common: another data set, or different spelling of names"
    return [
        Problem(
            kind="no-ground-truth",
            file=str(detection_dir),
            record=f"{name}.txt",
            found=f"no {name}.txt in {truth_dir}",
            expected="a ground-truth file of the same name (empty if the image has no objects)",
            cause=cause,
        )
        for name in unmatched
    ]


def _coordinate_problems(
    boxes: Boxes, folder: Path, coordinates: Coordinates, *, objects: bool
) -> list[Problem]:
    """Problems of boxes that depend on the interpretation of coordinates."""
    corners = boxes.corners
    if coordinates == "pixel":
        low, high = (corners.min(), corners.max()) if len(boxes) else (0.0, 0.0)
        if low < 0 or high > 1 or not _fractional(boxes).any():
            return []
        return [
            Problem(
                kind="normalised-coordinates",
                file=str(folder),
                found=f"coordinates between {low:g} and {high:g} in all lines",
                expected="pixel coordinates",
                cause="probably normalised coordinates; use --coordinates continuous",
            )
        ]
    if not objects:
        return []  # a detection without area is a false positive
    flat = (corners[:, 0] == corners[:, 2]) | (corners[:, 1] == corners[:, 3])
    return [
        Problem(
            kind="no-area",
            file=str(folder / f"{boxes.images[boxes.image[row]]}.txt"),
            record=f"line {boxes.line[row]}",
            found="an object without area",
            expected="right > left and bottom > top (continuous coordinates)",
        )
        for row in np.flatnonzero(flat).tolist()
    ]


def _fractional(boxes: Boxes) -> NDArray[np.bool_]:
    """Which boxes have a non-integer coordinate."""
    fractional: NDArray[np.bool_] = (boxes.corners != np.rint(boxes.corners)).any(axis=1)
    return fractional


def _image_notes(without_file: tuple[str, ...], n_images: int) -> list[str]:
    if not without_file:
        return []
    return [
        f"{len(without_file):,} of {counted(n_images, 'image')} without a detection file "
        f"({some_of(without_file, MAX_NAMED)}): their objects count as missed"
    ]


def _class_notes(scores: list[ClassScore], without_class: Mapping[str, int]) -> list[str]:
    notes = []
    if without_class:
        listed = [f"{name} ({count:,})" for name, count in without_class.items()]
        notes.append(
            f"{counted(sum(without_class.values()), 'detection')} of classes without ground truth "
            f"(excluded from AP): {some_of(listed, MAX_NAMED)}"
        )
    alike = {_letters(score.name): score.name for score in scores}
    notes += [
        f"class {name!r} of the detections and class {alike[_letters(name)]!r} of the ground "
        "truth differ only in case or punctuation"
        for name in without_class
        if _letters(name) in alike
    ]
    undefined = [score.name for score in scores if score.AP is None]
    if undefined:
        notes.append(f"AP undefined (only difficult objects): {some_of(undefined, MAX_NAMED)}")
    return notes


def _ignore_notes(ignore: Collection[str], ground_truth: Boxes, detections: Boxes) -> list[str]:
    return [
        f"ignored class {name!r} does not occur in any file"
        for name in ignore
        if name not in ground_truth.classes and name not in detections.classes
    ]


def _coordinate_notes(truth: Boxes, found: Boxes, coordinates: Coordinates) -> list[str]:
    if coordinates != "pixel":
        return []
    objects, boxes = int(_fractional(truth).sum()), int(_fractional(found).sum())
    if not objects and not boxes:
        return []
    return [
        f"{counted(objects, 'object')} and {counted(boxes, 'detection')} with non-integer "
        "coordinates, scored with the VOC pixel rule (--coordinates continuous does not use it)"
    ]


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
