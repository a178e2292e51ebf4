"""Converting between formats: read, match with the benchmark, write, say what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmark_eval.core.atomic_write import atomic_folder, write_text_atomic
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.formats.assembling import assemble
from benchmark_eval.formats.classes import read_class_names
from benchmark_eval.formats.detection import detect_format
from benchmark_eval.formats.images import folder_images, look_at_files, settle_frames, split_images
from benchmark_eval.formats.options import ClassNames, Frame, Options, Outside
from benchmark_eval.formats.registry import BENCHMARK, FORMATS, Format
from benchmark_eval.formats.table import UNKNOWN, BoxTable, Classes, PixelRule
from benchmark_eval.formats.yolo import CLASSES
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.prediction_decoder import MAX_LISTED
from benchmark_eval.voc.text import class_name

CONFIDENCES = "confidences"
IGNORED = "crowd or difficult boxes, left out"
SIZES = "image sizes"
IDS = "image ids"
SUFFIXES = "folders or suffixes of image names"
EMPTY = "images without a box"


@dataclass(frozen=True, slots=True)
class Report:
    """What a conversion did. ``lost`` counts what the target cannot say or the reader passed over.

    ``notes`` say what was taken for granted. ``written`` is the file or folder that was made.
    """

    source_format: str
    target_format: str
    written: Path
    n_images: int
    n_boxes: int
    lost: dict[str, int]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.n_boxes} boxes on {self.n_images} images: {self.source_format} -> "
            f"{self.target_format}, {self.written}"
        ]
        lines += [f"  not carried over: {count} {what}" for what, count in self.lost.items()]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def read_boxes(
    source: str | Path,
    format_name: str,
    options: Options,
    *,
    images_dir: str | Path | None = None,
    frame: Frame | None = None,
    to_frame: Frame | None = None,
) -> tuple[BoxTable, Counter[str]]:
    """Read ``source`` into columns, and count what its reader passed over.

    With ``images_dir`` sizes and EXIF orientation are read from the image files; boxes given in
    ``frame`` are then turned as the benchmark's annotations lie (``to_frame`` where their size
    does not tell). InputError with every fault.
    """
    path = Path(source)
    known = _format(format_name)
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    if path.is_dir() != (known.place == "folder"):
        what = "a folder" if path.is_dir() else "a file"
        raise UsageError(f"{path}: found {what}; expected a {known.place} of {known.label}")
    problems = Problems(str(path), most=MAX_LISTED)
    if not known.says("corners"):
        options = replace(options, pixels="edges")
    turn = None
    if images_dir is not None:
        images = options.images or folder_images(images_dir)
        looked = look_at_files(images, images_dir, problems)
        images, turn = settle_frames(images, looked, frame, to_frame, problems)
        options = replace(options, images=images)
        if problems:
            raise InputError(problems.all())
    parsed = known.module.read(path, options, problems)
    # what could be read is checked too, so that all problems come together
    readable = bool(parsed.image_rows) or not problems
    boxes = assemble(parsed, options, problems, turn) if readable else None
    if boxes is None or problems:
        raise InputError(problems.all())
    return boxes, parsed.passed_over


def write_boxes(
    boxes: BoxTable, target: str | Path, format_name: str, *, pixels: PixelRule = "edges"
) -> tuple[dict[str, int], int]:
    """Write columns as ``format_name``; returns what could not be carried, and boxes left out.

    A file appears whole or not at all, and so does a folder, which must not be there yet or be
    empty: labels of another conversion would be read with the new ones. InputError where the
    format cannot hold the boxes at all.
    """
    target = Path(target)
    known = _format(format_name)
    n_before = len(boxes)
    boxes, lost = _fitted(boxes, known, str(target), pixels)
    n_out_of_vocabulary = n_before - len(boxes)
    if known.place == "file":
        known.module.write(boxes, target, pixels)
        if known.says("numbers"):
            names = "".join(f"{name}\n" for name in boxes.classes.names)
            write_text_atomic(target.with_name(CLASSES), names)
        return lost, n_out_of_vocabulary
    with atomic_folder(target) as folder:
        known.module.write(boxes, folder, pixels)
    return lost, n_out_of_vocabulary


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"format {name!r}; expected one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _fitted(
    boxes: BoxTable, target: Format, file: str, pixels: PixelRule
) -> tuple[BoxTable, dict[str, int]]:
    """The boxes that a format can hold, and what of them it cannot say."""
    problems = Problems(file, most=MAX_LISTED)
    _check_fit(boxes, target, problems)
    tiny = int((boxes.size < 1).any(axis=1).sum())
    if target.says("corners") and pixels != "edges" and tiny:
        found = f"{tiny} boxes below a pixel in width or height"
        cause = f"first and last pixel ({pixels}) cannot say them: --to-pixels edges"
        problems.add("tiny-box", found, "boxes of a pixel or more", cause=cause)
    lost: Counter[str] = Counter()
    if not target.says("scores") and boxes.scored:
        lost[CONFIDENCES] = len(boxes)
    as_detections = target.says("scores") and boxes.scored
    if boxes.ignored.any() and (as_detections or not target.says("ignored")):
        lost[IGNORED] = int(boxes.ignored.sum())
        boxes = boxes.rows(~boxes.ignored)
    if not target.says("no scores") and len(boxes) and not boxes.scored:
        problems.add(
            "no-confidence",
            f"{len(boxes)} boxes without a confidence",
            f"detections: {target.label} needs a confidence for each box",
            cause="ground truth instead of detections, or Ultralytics without save_conf",
        )
    if problems:
        raise InputError(problems.all())
    images = boxes.images
    if not target.says("sizes"):
        lost[SIZES] = int((~np.isnan(images.sizes).any(axis=1)).sum())
    if not (target.says("ids") or target.says("image ids")):
        lost[IDS] = int((images.ids != UNKNOWN).sum())
    if not (target.says("full names") or target.says("ids")):
        lost[SUFFIXES] = sum(n != s for n, s in zip(images.names, images.stems, strict=True))
    if not target.says("empty images"):
        lost[EMPTY] = len(images) - len(np.unique(boxes.image))
    return boxes, {what: n for what, n in lost.items() if n}


def _check_fit(boxes: BoxTable, target: Format, problems: Problems) -> None:
    _unwritable(boxes, target, problems)
    used_images, used_classes = np.unique(boxes.image), np.unique(boxes.label)
    if target.says("ids"):
        if (boxes.images.ids[used_images] == UNKNOWN).any():
            problems.add("no-image-ids", "images without ids", "the benchmark and the split whose "
                       "image ids are wanted (--benchmark-dir, --splits)")  # fmt: skip
        if (boxes.classes.ids[used_classes] == UNKNOWN).any():
            problems.add("no-category-ids", "classes without ids", "the benchmark whose category "
                       "ids are wanted (--benchmark-dir)")  # fmt: skip
    if target.place == "folder":
        for stem, count in Counter(boxes.images.stems).items():
            if count > 1 or (target.name == "yolo" and f"{stem}.txt" == CLASSES):
                found = f"{count} images whose file would be {stem!r}"
                problems.add(
                    "two-images", found, "file names that differ without suffix and folder"
                )
    if target.name == "yolo":
        bare = np.isnan(boxes.images.sizes[used_images]).any(axis=1)
        for row in used_images[bare].tolist():
            problems.add(
                "image-size",
                "no width and height",
                "the size of every image with boxes",
                record=f"image {boxes.images.names[row]!r}",
                cause="give --images-dir to read them, or --benchmark-dir and --splits",
            )


def convert_annotations(
    source: str | Path,
    target: str | Path,
    *,
    to_format: str,
    from_format: str | None = None,
    benchmark_dir: str | Path | None = None,
    splits: str | Sequence[str] = (),
    names: str | Path | None = None,
    first_class: int | None = None,
    class_ids: bool = False,
    rename: Mapping[str, str] | None = None,
    to_names: str | Path | None = None,
    images_dir: str | Path | None = None,
    frame: Frame | None = None,
    to_frame: Frame | None = None,
    pixels: PixelRule = "edges",
    to_pixels: PixelRule | None = None,
    outside: Outside = "error",
    missing_is_empty: bool = False,
    scores: bool | None = None,
    confirm: Callable[[str], bool] | None = None,
) -> list[Report]:
    """Convert the boxes of ``source`` to ``target``; nothing is written where a fault is found.

    ``to_format`` is one of ``FORMATS``, or ``benchmark``: then ``target`` is a model's folder and
    ``<split>_predictions.json`` is written into it, for each of several ``splits`` with ``{split}``
    in ``source`` standing for it (in ``images_dir`` too). ``from_format`` is found out where it is
    not given. ``benchmark_dir`` and ``splits`` match images by file name and classes by name.
    ``names`` (a file) and ``first_class`` explain class numbers; ``class_ids`` says that they are
    the benchmark's category ids; ``rename`` maps class names. ``to_names`` (a file) sets the order
    in which a target without names numbers its classes. Sizes and EXIF: ``read_boxes``. ``pixels``
    and ``to_pixels`` are the pixel rules of corners in source and target (the same if only one is
    given). ``confirm`` is asked before an inferred first class is taken. Returns a report for each
    split. Raises UsageError or InputError, the latter with every fault.
    """
    asked: Sequence[str | None] = [splits] if isinstance(splits, str) else splits or [None]
    _check_usage(to_format, benchmark_dir, asked, images_dir, frame, str(source))
    categories = None if benchmark_dir is None else load_benchmark(benchmark_dir).categories
    options = Options(
        names=None if names is None else read_class_names(names),
        first_class=first_class,
        numbers_are_ids=class_ids,
        rename=rename or {},
        categories=categories,
        pixels=pixels,
        outside=outside,
        missing_is_empty=missing_is_empty,
        scores=scores,
        confirm=confirm,
    )
    order = None if to_names is None else read_class_names(to_names)
    jobs: list[_Job] = []
    problems = Problems()
    for each in asked:
        place = _filled(source, each)
        images = None
        if each is not None and benchmark_dir is not None:
            images = split_images(benchmark_dir, each)
        job = _Job(
            to_format,
            Path(target) / f"{each}_predictions.json" if to_format == BENCHMARK else Path(target),
            from_format or detect_format(place),
        )
        try:
            job.read(
                place,
                replace(options, images=images),
                images_dir=None if images_dir is None else _filled(images_dir, each),
                frame=frame,
                to_frame=to_frame,
            )
            if order is not None:
                job.boxes = reordered(job.boxes, order)
        except InputError as error:
            problems.extend(error.problems)
        jobs.append(job)
    if problems:
        raise InputError(problems.all())
    return [job.write(to_pixels) for job in jobs]


def _filled(path: str | Path, split: str | None) -> Path:
    return Path(str(path).replace("{split}", split) if split else path)


class _Job:
    """One source on its way to its target."""

    boxes: BoxTable

    def __init__(self, to_format: str, out: Path, source_format: str) -> None:
        self.to_format = to_format
        self.out = out
        self.source = _format(source_format)
        self.target = _format("coco-results" if to_format == BENCHMARK else to_format)
        self.notes: list[str] = []
        self.lost: dict[str, int] = {}
        self.pixels: PixelRule = "edges"

    def read(
        self,
        place: Path,
        options: Options,
        *,
        images_dir: Path | None,
        frame: Frame | None,
        to_frame: Frame | None,
    ) -> None:
        """Read the source, and remember what was taken for granted."""
        if self.source.name == "coco-results" and options.names is None:
            options = replace(options, numbers_are_ids=True)
            self.notes.append("class numbers are the benchmark's category ids, as in COCO results")
        self.boxes, passed_over = read_boxes(
            place, self.source.name, options, images_dir=images_dir, frame=frame, to_frame=to_frame
        )
        self.lost = {what: n for what, n in passed_over.items() if n}
        self.pixels = options.pixels
        if not options.numbers_are_ids and options.first_class is None:
            self.notes += _first_class_note(self.boxes, self.source.name)
        if options.images is not None and images_dir is None:
            self.notes.append("EXIF orientation was not looked at (no --images-dir)")

    def _had(self, what: str) -> bool:
        """Whether the source itself said what the target cannot; the benchmark's facts stay."""
        told = {
            SIZES: self.source.says("sizes"),
            IDS: self.source.says("ids") or self.source.says("image ids"),
            SUFFIXES: self.source.says("full names"),
            EMPTY: self.source.says("empty images") and self.to_format != BENCHMARK,
        }
        return told.get(what, True)

    def write(self, to_pixels: PixelRule | None) -> Report:
        """Write the target and report."""
        boxes = self.boxes
        pixels = to_pixels or (self.pixels if self.source.says("corners") else "edges")
        ids = np.concatenate([boxes.images.ids, boxes.classes.ids])
        if self.to_format == "coco" and (ids == UNKNOWN).any():
            self.notes.append("images or categories without ids are numbered from 1")
        lost, n_out_of_vocabulary = write_boxes(boxes, self.out, self.target.name, pixels=pixels)
        if self.source.says("corners") or self.target.says("corners"):
            rules = [f"{self.pixels} in the source"] if self.source.says("corners") else []
            rules += [f"{pixels} in the target"] if self.target.says("corners") else []
            self.notes.append(f"corners are {', '.join(rules)}")
        if self.target.says("numbers"):
            self.notes.append(f"class numbers follow {CLASSES}, which is written beside them")
        return Report(
            self.source.name,
            self.to_format,
            self.out,
            len(boxes.images),
            len(boxes) - n_out_of_vocabulary,
            self.lost | {what: n for what, n in lost.items() if self._had(what)},
            tuple(self.notes),
        )


def _unwritable(boxes: BoxTable, target: Format, problems: Problems) -> None:
    """Faults for class names that would come back from a text file as others."""
    if target.says("numbers") or target.name in ("xyxy-text", "voc-xml"):
        for name in boxes.classes.names:
            if not name.isprintable() or class_name(name) != name:
                wanted = "printable words with one blank between them"
                problems.add("class-name", f"class {name!r}", wanted)


def _first_class_note(boxes: BoxTable, source: str) -> list[str]:
    if source == "yolo":
        note = "class numbers count from 0, as YOLO text does by definition"
        if len(boxes) and not (boxes.label == 0).any():
            note += f"; but no box is of class 0 ({boxes.classes.names[0]!r}): do they?"
        return [note]
    return ["the number of the first class was inferred"] if source == "ultralytics-json" else []


def _check_usage(
    to_format: str,
    benchmark_dir: str | Path | None,
    splits: Sequence[str | None],
    images_dir: str | Path | None,
    frame: Frame | None,
    source: str,
) -> None:
    errors = []
    if to_format == BENCHMARK and (benchmark_dir is None or None in splits):
        errors.append("prediction files of the benchmark need benchmark_dir and splits")
    if benchmark_dir is None and splits != [None]:
        errors.append("splits need benchmark_dir")
    if len(splits) > 1 and to_format != BENCHMARK:
        errors.append(f"several splits have one target only as {BENCHMARK!r}")
    if len(splits) > 1 and "{split}" not in source:
        errors.append("several splits need {split} in the source, as in 'runs/{split}/labels'")
    if frame is not None and images_dir is None:
        errors.append("frame needs images_dir, where EXIF orientations are read")
    if errors:
        raise UsageError("; ".join(errors))


def reordered(boxes: BoxTable, names: ClassNames) -> BoxTable:
    """The same boxes with classes in the order of ``names``, those without boxes included.

    InputError where a class that has boxes is not among them.
    """
    place = {name: at for at, name in enumerate(names.names)}
    used = set(np.unique(boxes.label).tolist())
    problems = [
        Problem("unknown-class", names.source, f"no class {name!r}", "every class that has boxes")
        for row, name in enumerate(boxes.classes.names)
        if row in used and name not in place
    ]
    if problems:
        raise InputError(problems)
    rows = np.array([place.get(name, -1) for name in boxes.classes.names], np.int64)
    ids = np.full(len(names.names), UNKNOWN, np.int64)
    ids[rows[rows >= 0]] = boxes.classes.ids[rows >= 0]
    classes = Classes(names.names, ids)
    label = rows[boxes.label] if len(boxes) else boxes.label
    return replace(boxes, classes=classes, label=label)
