"""A synthetic benchmark and its predictions on disk: what ``benchmark-eval synth`` calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.outputs import claim
from benchmark_eval.synthetic.conditions import SINGLE, Model, sweep_models
from benchmark_eval.synthetic.detector import Detector
from benchmark_eval.synthetic.files import (
    BENCHMARK_FILES,
    NOTICE,
    ListedFile,
    file_names,
    write_benchmark,
    write_file_list,
    write_manifest,
    write_picture,
    write_predictions,
)
from benchmark_eval.synthetic.ground_truth import SyntheticBenchmark, synthetic_benchmark
from benchmark_eval.synthetic.taxonomy import invented_species

PREDICTED_SPLITS = ("iid_test", "inat_test", "semantic_ood")
MARKER = "synthetic.json"
"""The file that states that a folder was generated, and with which options."""
MANIFEST = "manifest.csv"


@dataclass(frozen=True, slots=True)
class SyntheticTree:
    """The generated files: paths, and counts over all models (``n_bytes`` of prediction files).

    ``n_images`` is the number of pictures that were drawn.
    """

    benchmark_dir: Path
    predictions_dir: Path
    manifest: Path
    n_models: int
    n_detections: int
    n_bytes: int
    n_images: int


def make_synthetic(
    output_dir: str | Path,
    *,
    scale: float = 1.0,
    test_scale: float | None = None,
    seed: int = 0,
    sweep: bool = False,
    detections_per_specimen: float = 21.0,
    images: int | Literal["all"] = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    force: bool = False,
) -> SyntheticTree:
    """Write a synthetic benchmark with invented species, and simulated predictions.

    Parameters
    ----------
    output_dir : str or Path
        Where ``benchmark/``, ``predictions/<model>/`` and ``manifest.csv`` go. Output of an
        earlier call is replaced; other files are never overwritten.
    scale : float, default 1.0
        Size of all splits, in (0, 1]; 1 gives the counts of the real benchmark. Species, bands and
        target species are always complete.
    test_scale : float, optional
        Size of ``iid_test`` and ``inat_test``, in (0, 1]; by default ``scale``.
    seed : int, default 0
        Seed of the random numbers, 0 or more.
    sweep : bool, default False
        If True, predictions of all 153 models of the sweep; else of one model,
        ``alder_gu_kall_s0``.
    detections_per_specimen : float, default 21.0
        Mean number of detections per scored specimen, in (0, 300].
    images : int or "all", default 0
        How many images of each split to draw, the first ones: plainly artificial pictures that
        fit the boxes. No other file but the list of files depends on it.
    jobs : int, optional
        Number of processes; by default one per core. The files do not depend on it.
    progress : callable, optional
        Called with (done, total) after each model and each image.
    force : bool, default False
        Whether to replace existing files that this package did not write, or that were edited
        since.

    Returns
    -------
    SyntheticTree
        ``benchmark_dir``, ``predictions_dir``, ``manifest``, ``n_models``, ``n_detections``,
        ``n_bytes`` (size of the prediction files) and ``n_images`` (pictures drawn).

    Raises
    ------
    UsageError
        An option is out of range, or a file must not be replaced: it was not written by this
        package, or another process is writing it.

    Notes
    -----
    The layout and the counts are those of the benchmark; no result on these data means anything.
    The same options give the same bytes. The "Synthetic data" page of the documentation describes
    the simulated detector.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import make_synthetic
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> made.n_models
    1
    >>> sorted(path.name for path in (made.predictions_dir / "alder_gu_kall_s0").iterdir())
    ['iid_test_predictions.json', 'inat_test_predictions.json', 'semantic_ood_predictions.json']
    >>> folder.cleanup()
    """
    test_scale = scale if test_scale is None else test_scale
    _check(scale, test_scale, seed, detections_per_specimen, images, jobs)
    root = Path(output_dir)
    options: dict[str, object] = {
        "scale": scale,
        "test_scale": test_scale,
        "seed": seed,
        "sweep": sweep,
        "detections_per_specimen": detections_per_specimen,
        "images": images,
    }
    models = tuple(sweep_models()) if sweep else (SINGLE,)
    with claim(root, _names(models), force=force) as output:
        output.clear()  # frees the space of earlier data
        benchmark = synthetic_benchmark(
            invented_species(), seed=seed, scale=scale, test_scale=test_scale
        )
        files = write_benchmark(output.path("benchmark"), benchmark)
        write_manifest(output.path(MANIFEST), models)
        pictures = _pictures(benchmark, images)
        work = _Work(
            benchmark,
            output.path("benchmark"),
            output.path("predictions"),
            detections_per_specimen,
        )
        n_detections = n_bytes = 0
        for done, made in enumerate(_made(work, [*models, *pictures], jobs), start=1):
            if isinstance(made, ListedFile):
                files.append(made)
            else:
                n_detections += made[0]
                n_bytes += made[1]
            if progress is not None:
                progress(done, len(models) + len(pictures))
        write_file_list(output.path("benchmark"), files)
        content = {"notice": NOTICE, "options": options, "complete": True}
        output.write(MARKER, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        output.publish(MARKER)
    return SyntheticTree(
        root / "benchmark",
        root / "predictions",
        root / MANIFEST,
        len(models),
        n_detections,
        n_bytes,
        len(pictures),
    )


def _names(models: Sequence[Model]) -> list[str]:
    """The files of a tree; those of earlier calls below the two folders are removed."""
    return [
        MARKER,
        MANIFEST,
        *(f"benchmark/{name}" for name in BENCHMARK_FILES),
        *(f"predictions/{m.name}/{s}_predictions.json" for m in models for s in PREDICTED_SPLITS),
        "benchmark/",
        "predictions/",
    ]


def _check(
    scale: float,
    test_scale: float,
    seed: int,
    detections_per_specimen: float,
    images: int | str,
    jobs: int | None,
) -> None:
    problems = [
        f"{name} must be in (0, 1], got {value:g}"
        for name, value in (("scale", scale), ("test scale", test_scale))
        if not 0 < value <= 1
    ]
    if seed < 0:
        problems.append(f"seed must be >= 0, got {seed}")
    if not 0 < detections_per_specimen <= 300:
        problems.append(
            f"detections per specimen must be in (0, 300], got {detections_per_specimen:g}"
        )
    if images != "all" and not (isinstance(images, int) and images >= 0):
        problems.append(f"images must be >= 0, or all; got {images}")
    if jobs is not None and jobs < 1:
        problems.append(f"jobs must be >= 1, got {jobs}")
    if problems:
        raise UsageError("; ".join(problems))


@dataclass(frozen=True, slots=True)
class _Picture:
    """An image to draw: 0-based row in its split, and file name."""

    split: str
    row: int
    name: str


def _pictures(benchmark: SyntheticBenchmark, images: int | Literal["all"]) -> list[_Picture]:
    """The images to draw: the first of each split."""
    most = None if images == "all" else images
    return [
        _Picture(split, row, name)
        for split in benchmark.splits
        for row, name in enumerate(file_names(benchmark, split)[:most])
    ]


@dataclass(frozen=True, slots=True)
class _Work:
    benchmark: SyntheticBenchmark
    benchmark_dir: Path
    predictions_dir: Path
    detections_per_specimen: float


_work: _Work | None = None


def _start(work: _Work) -> None:
    """Keep the benchmark in each process of the pool, so that it is not sent with every task."""
    global _work  # noqa: PLW0603
    _work = work


def _make_one(task: Model | _Picture) -> tuple[int, int] | ListedFile:
    """Write the files of one task, in a process of the pool."""
    assert _work is not None
    return _make(_work, task)


def _make(work: _Work, task: Model | _Picture) -> tuple[int, int] | ListedFile:
    """Write a model, and return its numbers of detections and bytes; or draw an image."""
    if isinstance(task, Model):
        return write_model(work.benchmark, task, work.predictions_dir, work.detections_per_specimen)
    return write_picture(work.benchmark_dir, work.benchmark, task.split, task.row, task.name)


def write_model(
    benchmark: SyntheticBenchmark,
    model: Model,
    predictions_dir: Path,
    detections_per_specimen: float,
) -> tuple[int, int]:
    """Write ``predictions_dir/<model>/<split>_predictions.json``; returns detections and bytes."""
    detector = Detector(benchmark, model)
    detections = size = 0
    for split in PREDICTED_SPLITS:
        columns = detector.predict(split, detections_per_specimen)
        size += write_predictions(
            predictions_dir / model.name / f"{split}_predictions.json", columns
        )
        detections += len(columns.score)
    return detections, size


def _made(
    work: _Work, tasks: Sequence[Model | _Picture], jobs: int | None
) -> Iterator[tuple[int, int] | ListedFile]:
    """The result of each task, in order."""
    workers = min(jobs or os.cpu_count() or 1, len(tasks))
    if workers == 1:
        for task in tasks:
            yield _make(work, task)
        return
    with ProcessPoolExecutor(workers, initializer=_start, initargs=(work,)) as pool:
        yield from pool.map(_make_one, tasks)
