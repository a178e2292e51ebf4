"""``benchmark-eval evaluate``: score one model and write the result files."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from benchmark_eval.cli._force import force_option
from benchmark_eval.cli._several import CommandWithSeveralValues, SeveralValues
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.memory import keep_freed_memory
from benchmark_eval.core.outputs import Input, claim
from benchmark_eval.protocol import KNOWN_SPLITS, TEST_SPLITS
from benchmark_eval.scoring.evaluate import evaluate_to_files, evaluation_inputs


@click.command(cls=CommandWithSeveralValues)
@click.option("--benchmark-dir", required=True, help="The unpacked benchmark, or its index (.npz).")
@click.option(
    "--predictions-dir", required=True, help="Folder with <split>_predictions.json[.gz] files."
)
@click.option("--output-dir", required=True, help="Folder for the result files.")
@click.option(
    "--model-name", default="model", show_default=True, help="Prefix of the result files."
)
@click.option(
    "--splits",
    cls=SeveralValues,
    type=click.Choice(KNOWN_SPLITS),
    help="Splits to score. Default: the three test splits.",
)
@click.option(
    "--iou",
    default=0.5,
    show_default=True,
    help="IoU threshold of the localisation matching. AP and AR use COCO's thresholds.",
)
@click.option(
    "--engine",
    type=click.Choice(["fast", "pycocotools"]),
    default="fast",
    show_default=True,
    help="Implementation of AP and AR.",
)
@click.option(
    "--on-invalid",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Whether invalid prediction records are an error, or are dropped and counted.",
)
@click.option(
    "--operating-confidence",
    type=float,
    help="Confidence threshold of all values at the operating threshold, on every split. Default: "
    "that of the best F1 on iid_test.",
)
@click.option(
    "--detections",
    type=click.Choice(["hits", "all", "none"]),
    default="hits",
    show_default=True,
    is_flag=False,
    flag_value="hits",
    help="Rows of <model>_detections.csv: true positives; also false positives and missed "
    "specimens, with their error type; or no such file.",
)
@click.option("--no-detections", "no_detections", is_flag=True, help="Same as --detections none.")
@click.option("--quiet", is_flag=True, help="Do not print the report.")
@click.option("--log", help="Write output, warnings and errors to this .log file.")
@force_option
def command(
    benchmark_dir: str,
    predictions_dir: str,
    output_dir: str,
    model_name: str,
    splits: tuple[str, ...],
    iou: float,
    engine: str,
    on_invalid: str,
    operating_confidence: float | None,
    detections: str,
    no_detections: bool,
    quiet: bool,
    log: str | None,
    force: bool,
) -> None:
    """Score one model on the splits of the benchmark and write the result files."""
    keep_freed_memory()
    gc.freeze()  # imported modules stay; the garbage collector need not scan them
    splits = splits or TEST_SPLITS
    with _logged(log, evaluation_inputs(benchmark_dir, predictions_dir, splits), force):
        evaluate_to_files(
            benchmark=benchmark_dir,
            predictions_dir=predictions_dir,
            output_dir=output_dir,
            model_name=model_name,
            splits=splits,
            iou=iou,
            engine=engine,  # type: ignore[arg-type]
            on_invalid=on_invalid,  # type: ignore[arg-type]
            operating_confidence=operating_confidence,
            detections="none" if no_detections else detections,  # type: ignore[arg-type]
            quiet=quiet,
            force=force,
        )


@contextlib.contextmanager
def _logged(log: str | None, inputs: Sequence[Input], force: bool) -> Iterator[None]:
    """Run the block with a log file, which is an output like the others."""
    if log is None:
        yield
        return
    from benchmark_eval.pipeline.job import job

    if not log.endswith(".log"):
        raise UsageError(f"--log: found {log!r}; expected a file name that ends in .log")
    path = Path(log)
    with claim(path.parent, [path.name], inputs=inputs, force=force) as output:
        output.remove(path.name)
        try:
            with job(path):
                yield
        finally:
            output.adopt(path.name)
