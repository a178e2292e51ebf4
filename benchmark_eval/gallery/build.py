"""Makes a gallery: scores the models, selects cases, draws crops, writes the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.image_files import SUFFIXES
from benchmark_eval.core.outputs import Input, Listing, Outputs, claim
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import absent
from benchmark_eval.core.text import counted
from benchmark_eval.formats.images import ImageFiles
from benchmark_eval.gallery.cases import SHOWN_TYPES, Case, Scored, errors_of, found_by_one
from benchmark_eval.gallery.page import (
    FOUND_BY_ONE,
    Content,
    Count,
    ModelOnPage,
    Picture,
    Shown,
    render_page,
)
from benchmark_eval.gallery.pictures import Crop, Drawn, Sheet, draw_sheets
from benchmark_eval.gallery.sources import Model, Sources, digest_problems, find_sources
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.input_files import benchmark_inputs, prediction_inputs
from benchmark_eval.inputs.licences import ImageOrigin, LicenceTable, image_origins
from benchmark_eval.inputs.prediction_files import predictions_file
from benchmark_eval.inputs.predictions import check_predictions
from benchmark_eval.protocol import ANNOTATIONS, IMAGES, KNOWN_SPLITS, LICENCES, file_names
from benchmark_eval.results.schema import ERROR_TYPES, OperatingThreshold
from benchmark_eval.scoring.diagnostics.ids import with_likely_causes
from benchmark_eval.scoring.evaluate import SplitResult, evaluate_split
from benchmark_eval.scoring.metrics.operating_point import given_threshold

PAGE = "index.html"
_PLACES = "each image as <split>/<file name> or <file name>"
CROPS, WHOLES = "crops/", "images/"
MOST_CASES = 10
"""Default number of cases of each error type and split."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Gallery:
    """A gallery that was written: its page, and how many cases have a picture.

    ``warnings`` are the problems of images and licences; they are also on the page.
    """

    page: Path
    n_cases: int
    n_pictured: int
    warnings: tuple[Problem, ...]


def write_gallery(
    models: Sequence[str],
    output_dir: str | Path,
    *,
    configfile: str | Path | None = None,
    benchmark_dir: str | Path | None = None,
    predictions_dir: str | Path | None = None,
    eval_dir: str | Path | None = None,
    images_dir: str | Path | None = None,
    splits: Sequence[str] | None = None,
    cases: int = MOST_CASES,
    jobs: int | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> Gallery:
    """Write a local page with the most telling errors of one model, or of two side by side.

    Parameters
    ----------
    models : sequence of str
        Names of one or two models.
    output_dir : str or Path
        Folder for ``index.html``, ``crops/`` and ``images/``. Files that an earlier call wrote
        are replaced.
    configfile : str or Path, optional
        Config of the sweep; the other options take precedence.
    benchmark_dir, predictions_dir : str or Path, optional
        Folder of the benchmark; folder with ``<model>/<split>_predictions.json[.gz]``, or with the
        files of the only model.
    eval_dir : str or Path, optional
        Folder with the summaries of the models. By default ``results/models``; there, a model
        without a summary is accepted.
    images_dir : str or Path, optional
        Folder of the images, flat or with one folder per split. By default
        ``detection/images`` of the benchmark.
    splits : sequence of str, optional
        The splits to show. By default those of the config, or the three test splits, as far as
        benchmark and predictions have them.
    cases : int, default 10
        Maximum number of cases of each error type and split.
    jobs : int, optional
        Number of processes that draw; by default one per core. The files do not depend on it.
    progress : callable, optional
        Called with (what, done, total).
    force : bool, default False
        Whether to replace existing files that this package did not write, or that were edited
        since.

    Returns
    -------
    Gallery

    Raises
    ------
    InputError
        Benchmark, predictions, config, manifest or summaries are not valid, or a summary is not
        of these files. Problems of images are not errors: the page names them.
    UsageError
        An option is not allowed, or a file must not be replaced.
    """
    if cases < 1:
        raise UsageError(f"cases must be >= 1, got {cases}")
    sources = find_sources(
        models,
        configfile=configfile,
        benchmark_dir=benchmark_dir,
        predictions_dir=predictions_dir,
        eval_dir=eval_dir,
        splits=splits,
    )
    images = _images_dir(sources, images_dir)
    _require_own_folder(output_dir, sources)
    with claim(
        output_dir, [PAGE, CROPS, WHOLES], inputs=_inputs(sources, images, configfile), force=force
    ) as output:
        maker = _Maker(sources, images, images_dir is not None, output, progress)
        content = maker.content(cases, jobs)
        output.write(PAGE, render_page(content).encode())
        output.publish(PAGE)
    pictured = sum(any(not p.missing for p in shown.pictures) for shown in content.cases)
    return Gallery(
        Path(output_dir) / PAGE, len(content.cases), pictured, tuple(maker.warnings.all())
    )


def _images_dir(sources: Sources, given: str | Path | None) -> Path:
    if given is None:
        return sources.benchmark_dir / IMAGES
    folder = Path(given)
    if not folder.is_dir():
        found = "a file" if folder.exists() else absent(folder, "no such folder")
        raise UsageError(f"--images-dir {folder}: found {found}; expected a folder of images")
    return folder


def _require_own_folder(output_dir: str | Path, sources: Sources) -> None:
    """Refuse a folder whose files would be read as those of the benchmark or of a model."""
    place = Path(output_dir).resolve()
    models = [model.predictions_dir.resolve() for model in sources.models]
    taken = any(place.is_relative_to(f) for f in (Path(sources.benchmark_dir).resolve(), *models))
    # beside the models, the folders of the gallery would count as models
    if taken or place in [folder.parent for folder in models]:
        raise UsageError(
            f"{output_dir}: found a folder of the benchmark or of predictions; expected a folder "
            "of its own (the files of the gallery would be read as inputs)"
        )


def _inputs(sources: Sources, images: Path, configfile: str | Path | None) -> list[Input]:
    suffixes = tuple(sorted(SUFFIXES))
    return [
        *benchmark_inputs(sources.benchmark_dir),
        *([] if configfile is None else [configfile]),
        *(model.summary_file for model in sources.models if model.summary_file is not None),
        *(
            file
            for model in sources.models
            for file in prediction_inputs(model.predictions_dir, sources.options.splits)
        ),
        *(Listing(images / split, suffixes) for split in (".", *KNOWN_SPLITS)),
    ]


class _Maker:
    """Makes the content of one gallery; collects notes for the page and warnings."""

    def __init__(
        self,
        sources: Sources,
        images: Path,
        images_given: bool,
        output: Outputs,
        progress: Progress | None,
    ) -> None:
        self.sources = sources
        self.images = images
        self.images_given = images_given
        self.output = output
        self.progress = progress
        self.warnings = Problems()
        self.notes: list[str] = []

    def content(self, most: int, jobs: int | None) -> Content:
        """Score, select, draw."""
        benchmark = load_benchmark(self.sources.benchmark_dir)
        splits = self._splits(benchmark)
        scored = self._score(benchmark, splits)
        shown = [split for split in splits if any(split in of for of in scored)]
        cases = list(self._cases(scored, shown, most))
        origins = self._origins(shown)
        pictured = self._draw(benchmark, cases, origins, jobs)
        number = Counter(
            (case.views[0].model, case.kind, case.split)
            for case in cases
            if case.kind != FOUND_BY_ONE
        )
        return Content(
            models=[
                _on_page(at, model.name, of, shown, number)
                for at, (model, of) in enumerate(zip(self.sources.models, scored, strict=True))
            ],
            splits=shown,
            iou=self.sources.options.iou,
            description=benchmark.description,
            notes=self.notes,
            cases=pictured,
        )

    # ------------------------------------------------------------------ scoring

    def _splits(self, benchmark: Benchmark) -> list[str]:
        """The splits to score; those that the benchmark lacks become notes."""
        found = []
        for split in self.sources.options.splits:
            if self.sources.splits_given:
                benchmark.split(split)  # raises UsageError
            if split in benchmark.splits:
                found.append(split)
            else:
                file = (ANNOTATIONS / f"{split}.json").as_posix()
                self.notes.append(f"{split}: the benchmark has no {file}.")
        return found

    def _score(self, benchmark: Benchmark, splits: Sequence[str]) -> list[dict[str, Scored]]:
        """Every model on every split with predictions; raises all problems together."""
        problems: list[Problem] = []
        scored: list[dict[str, Scored]] = []
        total = len(self.sources.models) * len(splits)
        for at, model in enumerate(self.sources.models):
            inputs = {f"benchmark/{name}": digest for name, digest in benchmark.digests.items()}
            results: dict[str, SplitResult] = {}
            threshold = (
                given_threshold(self.sources.options.operating_confidence)
                if model.summary is None
                else model.summary.operating_threshold
            )
            # the operating threshold of every split comes from iid_test
            for split in sorted(splits, key=lambda split: split != "iid_test"):
                try:
                    result = self._score_split(benchmark, model, split, threshold, inputs)
                except InputError as error:
                    problems += error.problems
                    continue
                if result is not None:
                    results[split] = result
                    threshold = result.threshold
                if self.progress is not None:
                    self.progress("score", at * len(splits) + len(results), total)
            problems += digest_problems(model, inputs)
            if model.summary is None:
                self.notes.append(
                    f"{model.name}: no summary of an evaluation was found, so it was not checked "
                    "that benchmark and predictions are those of your results."
                )
            scored.append({split: Scored.of(at, results[split]) for split in results})
        if problems:
            raise InputError(problems)
        return scored

    def _score_split(
        self,
        benchmark: Benchmark,
        model: Model,
        split: str,
        threshold: OperatingThreshold,
        inputs: dict[str, str],
    ) -> SplitResult | None:
        """A model on a split; None and a note if it has no predictions for it.

        Adds the digest of the predictions to ``inputs``.
        """
        options = self.sources.options
        try:
            path = predictions_file(model.predictions_dir, split)
        except InputError as error:
            missing = all(problem.kind == "missing-predictions" for problem in error.problems)
            if self.sources.splits_given or not missing or not self._has_others(model, split):
                raise
            self.notes.append(f"{split}: {model.name} has no {file_names(split)[0]} (or .gz).")
            return None
        checked = check_predictions(path, benchmark, split)
        if checked.problems and options.on_invalid == "error":
            raise InputError(with_likely_causes(checked, benchmark, split))
        inputs[f"predictions/{split}"] = checked.predictions.sha256
        return evaluate_split(benchmark, split, checked.predictions, options, threshold)

    def _has_others(self, model: Model, split: str) -> bool:
        """Whether a model has a prediction file of another split."""
        return any(
            (model.predictions_dir / name).exists()
            for other in self.sources.options.splits
            if other != split
            for name in file_names(other)
        )

    # ------------------------------------------------------------------ cases and pictures

    def _cases(
        self, scored: Sequence[Mapping[str, Scored]], splits: Sequence[str], most: int
    ) -> Iterable[Case]:
        for split in splits:
            if len(scored) == 2:
                if all(split in of for of in scored):
                    first, second = scored[0][split], scored[1][split]
                    yield from found_by_one(first, second, most)
                    yield from found_by_one(second, first, most)
                else:
                    self.notes.append(
                        f"{split}: the models are not compared, as only one has predictions."
                    )
            for of in scored:
                if split in of:
                    yield from errors_of(of[split], most)

    def _origins(self, splits: Sequence[str]) -> dict[str, dict[int, ImageOrigin]]:
        licences = LicenceTable(self.sources.benchmark_dir)
        if licences.problems:
            self.warnings.extend(licences.problems)
            self.notes.append(
                f"Licences and photographers: {LICENCES} of the benchmark is missing or unreadable."
            )
        return {
            split: image_origins(self.sources.benchmark_dir, split, licences) for split in splits
        }

    def _draw(
        self,
        benchmark: Benchmark,
        cases: Sequence[Case],
        origins: Mapping[str, Mapping[int, ImageOrigin]],
        jobs: int | None,
    ) -> list[Shown]:
        """Draw the crops of all cases; says which could not be drawn and why."""
        files = ImageFiles(self.images) if self.images.is_dir() else None
        crops: dict[tuple[str, int, int], list[Crop]] = {}  # by split, image and model
        place: dict[tuple[int, int], tuple[tuple[str, int, int], int]] = {}
        n_crops = 0
        for number, case in enumerate(cases):
            # both views of a comparison show the same region
            around = tuple(box for view in case.views for box in view.boxes[: view.focus])
            for at, view in enumerate(case.views):
                n_crops += 1
                key = (case.split, case.image, view.model)
                of_image = crops.setdefault(key, [])
                place[number, at] = key, len(of_image)
                file = self.output.path(f"{CROPS}{n_crops:04d}.jpg")
                of_image.append(Crop(file, view.boxes, around))
        sheets: dict[tuple[str, int, int], Sheet] = {}
        missing: dict[tuple[str, int, int], str] = {}
        lost: dict[str, Problem] = {}
        for number, (key, of_image) in enumerate(crops.items(), start=1):
            split, row, _ = key
            truth = benchmark.split(split)
            origin = origins[split].get(int(truth.image_ids[row]), ImageOrigin("", None))
            found = self._image_file(files, split, origin.file_name)
            if isinstance(found, Problem):
                lost.setdefault(f"{split}/{origin.file_name}", found)
                missing[key] = f"No picture: {found.found}."
                continue
            width, height = truth.sizes[row].tolist()
            whole = self.output.path(f"{WHOLES}{number:04d}.jpg")
            record = f"image {origin.file_name!r}"
            sheets[key] = Sheet(found, record, (width, height), whole, tuple(of_image))
        progress = self.progress
        drawn = draw_sheets(
            list(sheets.values()),
            jobs,
            None if progress is None else lambda done, n: progress("draw images", done, n),
        )
        results = dict(zip(sheets, drawn, strict=True))
        self._report(lost, results)
        return [
            Shown(
                case,
                tuple(
                    _picture(*place[number, at], sheets, results, missing)
                    for at in range(len(case.views))
                ),
                origins[case.split].get(case.image_id, ImageOrigin("", None)),
            )
            for number, case in enumerate(cases)
        ]

    def _image_file(self, files: ImageFiles | None, split: str, name: str) -> Path | Problem:
        """The file of an image, or why there is none."""
        if not name:
            expected = "a file_name in the annotations"
            return Problem("image-file", split, "an image without a file name", expected)
        paths = [] if files is None else files.find_in((split, "."), name)
        if len(paths) == 1:
            return paths[0]
        found = f"{len(paths)} files of this name" if paths else "no image file of this name"
        return Problem("image-file", str(self.images), found, _PLACES, f"{split}, image {name!r}")

    def _report(
        self, lost: Mapping[str, Problem], results: Mapping[tuple[str, int, int], Drawn]
    ) -> None:
        """Warnings, and notes without paths, about images that are not shown."""
        if lost and not results:
            found = (
                "none of the images"
                if self.images.is_dir()
                else absent(self.images, "no such folder")
            )
            cause = "" if self.images_given else "not downloaded? --images-dir names another folder"
            self.warnings.add("no-images", found, _PLACES, file=str(self.images), cause=cause)
        else:
            self.warnings.extend(lost.values())
        bad = {
            drawn.problem.file: drawn.problem
            for drawn in results.values()
            if drawn.problem is not None
        }
        self.warnings.extend(bad.values())
        if lost:
            where = (
                "--images-dir"
                if self.images_given
                else f"{IMAGES.as_posix()} of the benchmark (--images-dir names another folder)"
            )
            everything = (
                "none of the images was" if not results else f"{len(lost):,} images were not"
            )
            self.notes.append(
                f"Pictures: {everything} found. They are looked for in {where}, as "
                "<split>/<file name> or <file name>."
            )
        for kind, noun, more in (
            ("image-size", "image", " of another size than annotated, so that no box would fit"),
            ("image-file", "unreadable image", ""),
        ):
            n = sum(problem.kind == kind for problem in bad.values())
            if n:
                self.notes.append(f"Pictures: {counted(n, noun)}{more}.")


def _picture(
    key: tuple[str, int, int],
    at: int,
    sheets: Mapping[tuple[str, int, int], Sheet],
    results: Mapping[tuple[str, int, int], Drawn],
    missing: Mapping[tuple[str, int, int], str],
) -> Picture:
    """The picture of a view, or the reason why there is none, without a path."""
    if key in missing:
        return Picture("", (0, 0), "", missing[key])
    problem = results[key].problem
    if problem is not None:
        text = f"No picture: {problem.found}; expected {problem.expected}"
        cause = f" ({problem.cause})" if problem.cause else ""
        return Picture("", (0, 0), "", f"{text}{cause}.")
    sheet = sheets[key]
    return Picture(
        f"{CROPS}{sheet.crops[at].file.name}",
        results[key].sizes[at],
        f"{WHOLES}{sheet.whole.name}",
    )


def _on_page(
    at: int,
    name: str,
    scored: Mapping[str, Scored],
    splits: Sequence[str],
    number: Mapping[tuple[int, str, str], int],
) -> ModelOnPage:
    """Counts of the errors of a model, and its operating threshold."""
    counts: dict[str, dict[str, Count | str]] = {}
    for kind in SHOWN_TYPES:
        error_type = ERROR_TYPES[kind]
        of_type: dict[str, Count | str] = {}
        for split in splits:
            if split not in scored:
                of_type[split] = "no predictions"
                continue
            count = getattr(scored[split].result.evaluation.errors, error_type)
            of_type[split] = (
                "not defined"
                if count is UNSET
                else Count(number.get((at, error_type, split), 0), count.n, count.n_operating)
            )
        counts[error_type] = of_type
    threshold = next(iter(scored.values())).result.threshold
    return ModelOnPage(name, threshold.confidence, threshold.source, counts)
