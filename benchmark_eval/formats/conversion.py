"""Convert between formats: read, match with the benchmark, write, and report losses."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.image_files import SUFFIXES as IMAGE_SUFFIXES
from benchmark_eval.core.json_values import show
from benchmark_eval.core.outputs import Input, Listing, claim, new_folder
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import absent
from benchmark_eval.core.text import counted, visible
from benchmark_eval.formats.assembling import Parsed, assemble
from benchmark_eval.formats.classes import UNWRITABLE, read_class_names
from benchmark_eval.formats.detection import Guess, guess_format
from benchmark_eval.formats.images import (
    folder_images,
    read_image_headers,
    resolve_frames,
    split_images,
)
from benchmark_eval.formats.options import ClassNames, Frame, ImageNumbers, Options, Outside
from benchmark_eval.formats.registry import BENCHMARK, FORMATS, Format
from benchmark_eval.formats.table import UNKNOWN, BoxTable, Classes, PixelRule
from benchmark_eval.formats.text_files import label_files
from benchmark_eval.formats.yolo import CLASSES
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.input_files import benchmark_inputs
from benchmark_eval.inputs.prediction_decoder import MAX_LISTED
from benchmark_eval.voc.text import class_name

CONFIDENCES = "confidences"
BOXES = "boxes (images only)"
NO_CLASS = "classes without boxes that the benchmark does not have"
IGNORED = "crowd or difficult boxes"
SIZES = "image sizes"
IDS = "image ids"
SUFFIXES = "folders or suffixes of image names"
EMPTY = "images without boxes"
ORIENTATIONS = "EXIF orientations other than 1 to 8 (ignored)"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOT_IN_XML = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 cannot contain, or that its readers change or drop."""
SUFFIXES_READ = (".txt", ".xml", ".json")
"""Suffixes of the files that are read from a source folder."""


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a conversion.

    ``written`` is the file or folder that was written. ``lost`` counts content that the reader
    skipped or that the target format cannot represent. ``notes`` list the assumptions made.
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
            f"{counted(self.n_boxes, 'box', 'boxes')} on {counted(self.n_images, 'image')}: "
            f"{self.source_format} -> {self.target_format}, {self.written}"
        ]
        lines += [f"  not carried over: {what}: {count:,}" for what, count in self.lost.items()]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(map(visible, lines))


def read_boxes(
    source: str | Path,
    format_name: str,
    options: Options,
    *,
    images_dir: str | Path | None = None,
    frame: Frame | None = None,
    to_frame: Frame | None = None,
) -> tuple[BoxTable, Counter[str]]:
    """Read ``source`` into columns, and count the content that its reader skipped.

    With ``images_dir``, sizes and EXIF orientations are read from the image files, and boxes given
    in ``frame`` are transformed to the frame of the benchmark's annotations (``to_frame`` if their
    sizes do not determine it). Raises InputError with every problem.
    """
    boxes, parsed = _read(
        source, format_name, options, images_dir=images_dir, frame=frame, to_frame=to_frame
    )
    return boxes, parsed.skipped


def _read(
    source: str | Path,
    format_name: str,
    options: Options,
    *,
    images_dir: str | Path | None,
    frame: Frame | None,
    to_frame: Frame | None,
) -> tuple[BoxTable, Parsed]:
    """Read ``source`` into columns; also returns what its reader skipped and assumed."""
    path = Path(source)
    source_format = _format(format_name)
    if not path.exists():
        raise UsageError(f"{path}: {absent(path, 'no such file or folder')}")
    kind = "folder" if path.is_dir() else "file"
    if kind not in (source_format.container, source_format.also_reads):
        what = "a folder" if path.is_dir() else "a file"
        expected = f"a {source_format.container} of {source_format.label}"
        raise UsageError(f"{path}: found {what}; expected {expected}")
    problems = Problems(str(path), most=MAX_LISTED)
    if not source_format.supports("corners"):
        options = replace(options, pixels="edges")
    reorientation = None
    n_invalid = 0
    if images_dir is not None:
        images = options.images or folder_images(images_dir)
        headers = read_image_headers(images, images_dir, problems)
        n_invalid = headers.n_invalid
        images, reorientation = resolve_frames(images, headers, frame, to_frame, problems)
        options = replace(options, images=images)
        if problems:
            raise InputError(problems.all())
    parsed = source_format.module.read(path, options, problems)
    # records that could be read are checked as well, to report all problems at once
    readable = bool(parsed.image_rows) or not problems
    boxes = assemble(parsed, options, problems, reorientation) if readable else None
    if boxes is None or problems:
        raise InputError(problems.all())
    parsed.skipped[ORIENTATIONS] += n_invalid
    return boxes, parsed


def write_boxes(
    boxes: BoxTable,
    target: str | Path,
    format_name: str,
    *,
    pixels: PixelRule = "edges",
    force: bool = False,
) -> tuple[dict[str, int], int]:
    """Write columns as ``format_name``; returns the lost content and the number of dropped boxes.

    Files and folders are written atomically. An existing file is only replaced if this package
    wrote it, or with ``force``. A target folder must be new or empty, because labels of an earlier
    conversion would be read together with the new ones. Raises UsageError for any other target,
    and InputError if the format cannot represent the boxes.
    """
    target = Path(target)
    target_format = _format(format_name)
    with _prepared([target], target_format, force=force) as (place,):
        return _write(boxes, place, target, target_format, pixels)


@contextlib.contextmanager
def _prepared(
    targets: Sequence[Path], target_format: Format, inputs: Iterable[Input] = (), *, force: bool
) -> Iterator[list[Path]]:
    """Claim the targets in a folder; yields where to write each, until the block ends."""
    if target_format.container == "folder":
        (target,) = targets
        with new_folder(target, inputs=inputs) as folder:
            yield [folder]
        return
    names = [target.name for target in targets]
    others = [CLASSES] if target_format.supports("numbers") else []
    with claim(targets[0].parent, names + others, inputs=inputs, force=force) as output:
        yield [output.path(name) for name in names]
        output.publish()


def _write(
    boxes: BoxTable, place: Path, target: Path, target_format: Format, pixels: PixelRule
) -> tuple[dict[str, int], int]:
    """Write columns to ``place``, which becomes ``target``."""
    n_before = len(boxes)
    boxes, lost = _fit_to_format(boxes, target_format, str(target), pixels)
    n_dropped = n_before - len(boxes)
    target_format.module.write(boxes, place, pixels)
    if target_format.container == "file" and target_format.supports("numbers"):
        names = "".join(f"{name}\n" for name in boxes.classes.names)
        place.with_name(CLASSES).write_text(names, encoding="utf-8", newline="\n")
    return lost, n_dropped


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"format: found {name!r}; expected one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _fit_to_format(
    boxes: BoxTable, target: Format, file: str, pixels: PixelRule
) -> tuple[BoxTable, dict[str, int]]:
    """The boxes that a format can represent, and the content that it cannot."""
    problems = Problems(file, most=MAX_LISTED)
    _check_fit(boxes, target, problems)
    tiny = int((boxes.size < 1).any(axis=1).sum())
    if target.supports("corners") and pixels != "edges" and tiny:
        found = f"{counted(tiny, 'box', 'boxes')} less than one pixel wide or high"
        cause = f"the pixel rule {pixels!r} cannot represent them; use --to-pixels edges"
        problems.add("tiny-box", found, "boxes of at least one pixel", cause=cause)
    lost: Counter[str] = Counter()
    if not target.supports("scores") and boxes.scored:
        lost[CONFIDENCES] = len(boxes)
    as_detections = boxes.scored and not target.supports("ignored detections")
    if boxes.ignored.any() and (as_detections or not target.supports("ignored")):
        lost[IGNORED] = int(boxes.ignored.sum())
        boxes = boxes.rows(~boxes.ignored)
    if not target.supports("no scores") and len(boxes) and not boxes.scored:
        problems.add(
            "no-confidence",
            f"{counted(len(boxes), 'box', 'boxes')} without a confidence",
            f"a confidence for every box, required by {target.label}",
            cause="ground truth instead of detections, or Ultralytics without save_conf",
        )
    if problems:
        raise InputError(problems.all())
    if target.supports("image ids"):
        boxes, lost[NO_CLASS] = _with_known_classes(boxes)
    images = boxes.images
    if not target.supports("sizes"):
        lost[SIZES] = int((~np.isnan(images.sizes).any(axis=1)).sum())
    if not (target.supports("ids") or target.supports("image ids")):
        lost[IDS] = int((images.ids != UNKNOWN).sum())
    if not (target.supports("full names") or target.supports("ids")):
        lost[SUFFIXES] = sum(n != s for n, s in zip(images.names, images.stems, strict=True))
    if not target.supports("empty images"):
        lost[EMPTY] = len(images) - len(np.unique(boxes.image))
    return boxes, {what: n for what, n in lost.items() if n}


def _with_known_classes(boxes: BoxTable) -> tuple[BoxTable, int]:
    """The boxes without unused classes that have no id, if all other classes have one.

    Otherwise such a class, of a model or of Roboflow, would cost all others their ids.
    """
    known = boxes.classes.ids != UNKNOWN
    if known.all() or not known.any() or not known[boxes.label].all():
        return boxes, 0
    names = tuple(name for name, keep in zip(boxes.classes.names, known, strict=True) if keep)
    row = np.cumsum(known) - 1
    classes = Classes(names, boxes.classes.ids[known])
    return replace(boxes, classes=classes, label=row[boxes.label]), int((~known).sum())


def _check_fit(boxes: BoxTable, target: Format, problems: Problems) -> None:
    _check_class_names(boxes, target, problems)
    used_images, used_classes = np.unique(boxes.image), np.unique(boxes.label)
    if target.supports("ids"):
        if (boxes.images.ids[used_images] == UNKNOWN).any():
            expected = "the benchmark and split with the image ids (--benchmark-dir, --splits)"
            problems.add("no-image-ids", "images without ids", expected)
        if (boxes.classes.ids[used_classes] == UNKNOWN).any():
            expected = "the benchmark with the category ids (--benchmark-dir)"
            problems.add("no-category-ids", "classes without ids", expected)
    if target.container == "folder":
        for name in boxes.images.names:
            if UNWRITABLE.search(name):
                found, expected = f"a name that no file can have: {show(name)}", "another name"
                problems.add("file-name", found, expected, field="file_name")
        for stem, count in Counter(boxes.images.stems).items():
            if count > 1 or (target.name == "yolo" and f"{stem}.txt" == CLASSES):
                files = counted(count, "image")
                found = f"{files} whose output file would be named {stem!r}"
                problems.add(
                    "two-images", found, "image names that differ without folder and suffix"
                )
        forbidden = _NOT_IN_XML if target.name == "voc-xml" else _CONTROL
        for name in filter(forbidden.search, boxes.images.names):
            problems.add("image-name", f"image {name!r}", "a name without control characters")
    if target.name == "yolo":
        bare = np.isnan(boxes.images.sizes[used_images]).any(axis=1)
        for row in used_images[bare].tolist():
            problems.add(
                "image-size",
                "no width and height",
                "width and height of every image with boxes",
                record=f"image {boxes.images.names[row]!r}",
                cause="use --images-dir, or --benchmark-dir and --splits",
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
    class_positions: bool = False,
    image_numbers: ImageNumbers | None = None,
    images_only: bool = False,
    confirm: Callable[[str], bool] | None = None,
    force: bool = False,
) -> list[Report]:
    """Convert annotations or detections from one format to another.

    Parameters
    ----------
    source : str or Path
        File or folder to read. ``{split}`` in it stands for each of ``splits``.
    target : str or Path
        File or folder to write; for ``to_format="benchmark"`` the folder of a model, in which
        ``<split>_predictions.json`` is written.
    to_format : str
        ``"benchmark"``, ``"coco"``, ``"coco-results"``, ``"yolo"``, ``"voc-xml"`` or another of
        the formats on the "Converters" page of the documentation.
    from_format : str, optional
        Format of ``source``; detected if not given.
    benchmark_dir : str or Path, optional
        The unpacked benchmark, to match images by file name and classes by name.
    splits : str or sequence of str, default ()
        The splits in ``source``; requires ``benchmark_dir``.
    names : str or Path, optional
        File with the class names of ``source`` (``data.yaml``, ``config.json``, ``classes.txt``).
    first_class : int, optional
        Number of the first class in ``source``, 0 or 1.
    class_ids : bool, default False
        If True, class numbers in ``source`` are those that ``names`` states (the ids of a COCO
        file, the keys of ``id2label``) or, without ``names``, the benchmark's category ids.
    rename : mapping of str to str, optional
        New names of classes.
    to_names : str or Path, optional
        File with the class names in the order in which ``target`` numbers them.
    images_dir : str or Path, optional
        Folder of the images, to read sizes and EXIF orientation. ``{split}`` as in ``source``.
    frame, to_frame : {"upright", "stored"}, optional
        Whether boxes of source and target refer to the image as displayed (after its EXIF
        rotation) or as stored.
    pixels, to_pixels : {"edges", "inclusive", "voc"}, default "edges"
        Pixel rule of corners in source and target. ``to_pixels`` defaults to ``pixels``.
    outside : {"error", "clip", "keep"}, default "error"
        What to do with boxes that extend beyond the image by more than 1 px.
    missing_is_empty : bool, default False
        If True, an image without a file of its own has no boxes.
    scores : bool, optional
        Whether the boxes of ``source`` have a confidence; detected if not given.
    class_positions : bool, default False
        If True, class numbers in ``source`` are positions in the list of ``names``, counted from
        ``first_class``, whatever numbers ``names`` states.
    image_numbers : {"ids", "names"}, optional
        Whether a number in place of an image is the image's id or the number in its file name
        (7 for ``007.jpg``); by default what the format defines.
    images_only : bool, default False
        If True, write a COCO file with the images of ``source`` and the categories of
        ``to_names``, without annotations: the input of a framework that only predicts.
    confirm : callable, optional
        Called with a question before an inferred first class is used; the conversion stops if it
        returns False.
    force : bool, default False
        Whether to replace existing files that this package did not write, or that were edited
        since. A target folder must be new or empty in any case.

    Returns
    -------
    list of Report
        One report per split: ``written``, ``n_images``, ``n_boxes``, ``lost`` (content
        that the target cannot represent) and ``notes`` (assumptions).

    Raises
    ------
    InputError
        ``source`` is not valid or does not match the benchmark. All problems are in
        ``problems``; nothing is written.
    UsageError
        An option is not allowed, options contradict each other, or ``target`` must not be
        replaced: it is an input, would be read as one, or was not written by this package.

    Notes
    -----
    No detection framework needs to be installed. The "Converters" page of the documentation
    describes the formats, the pixel rules and the handling of EXIF orientation.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import convert_annotations, make_synthetic
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> coco = made.benchmark_dir / "detection" / "annotations_coco" / "inat_test.json"
    >>> (report,) = convert_annotations(coco, f"{folder.name}/labels", to_format="yolo")
    >>> report.source_format, report.target_format
    ('coco', 'yolo')
    >>> folder.cleanup()
    """
    split_names: Sequence[str | None] = [splits] if isinstance(splits, str) else splits or [None]
    _check_usage(to_format, benchmark_dir, split_names, images_dir, frame or to_frame, str(source))
    if images_only and to_format != "coco":
        raise UsageError("images_only requires to_format='coco'")
    given = {
        "names": names is not None,
        "first_class": first_class is not None,
        "class_ids": class_ids,
        "class_positions": class_positions,
        "image_numbers": image_numbers is not None,
        "to_names": to_names is not None,
        "pixels": pixels != "edges",
        "to_pixels": to_pixels is not None,
        "missing_is_empty": missing_is_empty,
        "scores": scores is not None,
    }
    if to_format == BENCHMARK:
        targets = [Path(target) / f"{split}_predictions.json" for split in split_names]
    else:
        targets = [Path(target)]
    target_format = _format("coco-results" if to_format == BENCHMARK else to_format)
    suffix = target_format.suffix
    inputs = _inputs(source, split_names, images_dir, benchmark_dir, suffix, names, to_names)
    with _prepared(targets, target_format, inputs, force=force) as places:
        categories = None if benchmark_dir is None else load_benchmark(benchmark_dir).categories
        options = Options(
            names=None if names is None else read_class_names(names),
            first_class=first_class,
            numbers_are_ids=class_ids,
            class_positions=class_positions,
            image_numbers=image_numbers,
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
        for split, out in zip(split_names, targets, strict=True):
            path = _fill_split(source, split)
            images = None
            if split is not None and benchmark_dir is not None:
                images = split_images(benchmark_dir, split)
            guess = None if from_format else guess_format(path)
            job = _Job(to_format, out, guess.name if guess else str(from_format), guess)
            _check_effects(
                [name for name, is_given in given.items() if is_given],
                job,
                matched=images is not None or images_dir is not None,
                images_only=images_only,
            )
            try:
                job.read(
                    path,
                    replace(options, images=images),
                    images_dir=None if images_dir is None else _fill_split(images_dir, split),
                    frame=frame,
                    to_frame=to_frame,
                )
                if images_only:
                    job.keep_images(order)
                elif order is not None:
                    job.boxes = reordered(job.boxes, order)
            except InputError as error:
                problems.extend(map(guess.explained, error.problems) if guess else error.problems)
            jobs.append(job)
        if problems:
            raise InputError(problems.all())
        return [job.write(to_pixels, place) for job, place in zip(jobs, places, strict=True)]


def _inputs(
    source: str | Path,
    splits: Sequence[str | None],
    images_dir: str | Path | None,
    benchmark_dir: str | Path | None,
    suffix: str,
    *others: str | Path | None,
) -> list[Input]:
    """The files that a conversion reads, which its target must not replace.

    If the source has files with the ``suffix`` of the target, its subfolders are no targets either:
    the next run would read them.
    """
    files: list[Input] = [other for other in others if other is not None]
    if benchmark_dir is not None:
        files += benchmark_inputs(benchmark_dir)
    for split in splits:
        path = _fill_split(source, split)
        if path.is_dir():
            below = bool(label_files(path, suffix))
            files.append(Listing(path, SUFFIXES_READ, below=below))
        else:
            files.append(path)
        if images_dir is not None:
            files.append(Listing(_fill_split(images_dir, split), tuple(sorted(IMAGE_SUFFIXES))))
    return files


def _fill_split(path: str | Path, split: str | None) -> Path:
    return Path(str(path).replace("{split}", split) if split else path)


class _Job:
    """Conversion of one source."""

    boxes: BoxTable

    def __init__(self, to_format: str, out: Path, source_format: str, guess: Guess | None) -> None:
        self.to_format = to_format
        self.out = out
        self.source = _format(source_format)
        self.target = _format("coco-results" if to_format == BENCHMARK else to_format)
        self.guess = guess
        self.notes: list[str] = [] if guess is None else [guess.note]
        self.lost: dict[str, int] = {}
        self.pixels: PixelRule = "edges"

    def read(
        self,
        path: Path,
        options: Options,
        *,
        images_dir: Path | None,
        frame: Frame | None,
        to_frame: Frame | None,
    ) -> None:
        """Read the source and collect notes on assumptions."""
        if self.source.name == "coco-results" and options.names is None:
            options = replace(options, numbers_are_ids=True)
        options = replace(options, guessed=self.guess is not None)
        self.boxes, parsed = _read(
            path, self.source.name, options, images_dir=images_dir, frame=frame, to_frame=to_frame
        )
        self.lost = {what: n for what, n in parsed.skipped.items() if n}
        self.pixels = options.pixels
        self.notes += parsed.notes
        if self.source.name == "yolo" and not options.numbers_are_ids:
            self.notes += _first_class_note(self.boxes, options)
        if options.images is not None and images_dir is None:
            self.notes.append("EXIF orientations were not checked (no --images-dir)")

    def keep_images(self, categories: ClassNames | None) -> None:
        """Keep the images only, with other categories if given; boxes are counted as lost."""
        boxes = self.boxes
        if len(boxes):
            self.lost[BOXES] = len(boxes)
        if categories is not None:
            ids = categories.numbers or range(1, len(categories.names) + 1)
            boxes = replace(boxes, classes=Classes(categories.names, np.array(ids, np.int64)))
        self.boxes = boxes.rows(np.zeros(len(boxes), np.bool_))

    def _in_source(self, what: str) -> bool:
        """Whether lost content came from the source, not from the benchmark."""
        in_source = {
            SIZES: self.source.supports("sizes"),
            IDS: self.source.supports("ids") or self.source.supports("image ids"),
            SUFFIXES: self.source.supports("full names"),
            EMPTY: self.source.supports("empty images") and self.to_format != BENCHMARK,
        }
        return in_source.get(what, True)

    def write(self, to_pixels: PixelRule | None, place: Path) -> Report:
        """Write the target, for now to ``place``, and return a report."""
        boxes = self.boxes
        pixels = to_pixels or (self.pixels if self.source.supports("corners") else "edges")
        ids = np.concatenate([boxes.images.ids, _with_known_classes(boxes)[0].classes.ids])
        if self.to_format == "coco" and (ids == UNKNOWN).any():
            self.notes.append("images or categories without ids are numbered from 1")
        lost, n_dropped = _write(boxes, place, self.out, self.target, pixels)
        if self.source.supports("corners") or self.target.supports("corners"):
            rules = [f"{self.pixels} in the source"] if self.source.supports("corners") else []
            rules += [f"{pixels} in the target"] if self.target.supports("corners") else []
            self.notes.append(f"corners are {', '.join(rules)}")
        if self.target.supports("numbers"):
            self.notes.append(f"class numbers follow {CLASSES}, which is written alongside")
        return Report(
            self.source.name,
            self.to_format,
            self.out,
            len(boxes.images),
            len(boxes) - n_dropped,
            self.lost | {what: n for what, n in lost.items() if self._in_source(what)},
            tuple(self.notes),
        )


def _check_class_names(boxes: BoxTable, target: Format, problems: Problems) -> None:
    """Report class names that a text file would not preserve."""
    if target.supports("numbers") or target.name in ("xyxy-text", "voc-xml"):
        for name in boxes.classes.names:
            if not name.isprintable() or class_name(name) != name:
                expected = "printable words separated by single spaces"
                problems.add("class-name", f"class {name!r}", expected)


def _first_class_note(boxes: BoxTable, options: Options) -> list[str]:
    stated = None if options.names is None else options.names.numbers
    if options.first_class is not None or (stated is not None and stated[0] != 0):
        return []
    note = "class numbers are 0-based, as defined by YOLO text"
    if len(boxes) and not (boxes.label == 0).any():
        note += f"; no box has class 0 ({boxes.classes.names[0]!r}), so check the class numbers"
    return [note]


def _check_effects(given: Sequence[str], job: _Job, *, matched: bool, images_only: bool) -> None:
    """Raise UsageError for options without effect for this pair of formats.

    ``matched`` is true if the images of the source are looked up in those of a benchmark or folder.
    """
    source, target = job.source, job.target
    numbered = (
        source.supports("numbers") or source.supports("ids") or source.supports("class texts")
    )
    effects = {
        "names": numbered or target.supports("numbers"),
        "first_class": numbered,
        "class_ids": numbered,
        "class_positions": numbered,
        "image_numbers": matched and source.supports("image numbers"),
        "to_names": target.supports("numbers") or images_only,
        "pixels": source.supports("corners"),
        "to_pixels": target.supports("corners"),
        "missing_is_empty": matched and source.container == "folder",
        "scores": source.name in ("xyxy-text", "xywh-text"),
    }
    without = [name for name in given if not effects[name]]
    if without:
        pair = f"{source.name} to {job.to_format}"
        guess = "" if job.guess is None else f" ({job.guess.note})"
        raise UsageError(
            *(
                f"--{name.replace('_', '-')} has no effect for {pair}: remove the option{guess}"
                for name in without
            )
        )


def _check_usage(
    to_format: str,
    benchmark_dir: str | Path | None,
    splits: Sequence[str | None],
    images_dir: str | Path | None,
    frame: Frame | None,
    source: str,
) -> None:
    """Raise UsageError for options that require others; ``frame`` is any of the two frames."""
    errors = []
    if to_format == BENCHMARK and (benchmark_dir is None or None in splits):
        errors.append("prediction files of the benchmark require benchmark_dir and splits")
    if benchmark_dir is None and splits != [None]:
        errors.append("splits requires benchmark_dir")
    if len(splits) > 1 and to_format != BENCHMARK:
        errors.append(f"several splits require to_format={BENCHMARK!r}")
    if len(splits) > 1 and "{split}" not in source:
        errors.append("several splits require {split} in the source, such as 'runs/{split}/labels'")
    if frame is not None and images_dir is None:
        errors.append("frame requires images_dir to read EXIF orientations")
    if errors:
        raise UsageError("; ".join(errors))


def reordered(boxes: BoxTable, names: ClassNames) -> BoxTable:
    """The same boxes with classes in the order of ``names``, including classes without boxes.

    Raises InputError if a class with boxes is missing from ``names``.
    """
    row_of = {name: at for at, name in enumerate(names.names)}
    used = set(np.unique(boxes.label).tolist())
    problems = [
        Problem("unknown-class", names.source, f"no class {name!r}", "every class with boxes")
        for row, name in enumerate(boxes.classes.names)
        if row in used and name not in row_of
    ]
    if problems:
        raise InputError(problems)
    rows = np.array([row_of.get(name, -1) for name in boxes.classes.names], np.int64)
    ids = np.full(len(names.names), UNKNOWN, np.int64)
    ids[rows[rows >= 0]] = boxes.classes.ids[rows >= 0]
    classes = Classes(names.names, ids)
    label = rows[boxes.label] if len(boxes) else boxes.label
    return replace(boxes, classes=classes, label=label)
