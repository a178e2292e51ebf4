"""``benchmark-eval evaluate``: score one model and write its files."""

from __future__ import annotations

import contextlib
import gc

import click

from benchmark_eval.cli._several import CommandWithSeveralValues, SeveralValues
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.memory import keep_freed_memory
from benchmark_eval.protocol import KNOWN_SPLITS, TEST_SPLITS
from benchmark_eval.scoring.evaluate import evaluate_to_files


@click.command(cls=CommandWithSeveralValues)
@click.option("--benchmark-dir", required=True, help="The unpacked benchmark, or its index (.npz).")
@click.option("--predictions-dir", required=True, help="Folder of <split>_predictions.json[.gz].")
@click.option("--output-dir", required=True, help="Where the model's files go.")
@click.option("--model-name", default="model", show_default=True, help="Prefix of the files.")
@click.option(
    "--splits",
    cls=SeveralValues,
    type=click.Choice(KNOWN_SPLITS),
    help="Which to score, one or more; the three test splits if not given.",
)
@click.option("--iou", default=0.5, show_default=True, help="IoU of a hit; AP keeps COCO's.")
@click.option(
    "--engine",
    type=click.Choice(["fast", "pycocotools"]),
    default="fast",
    show_default=True,
    help="Who scores the COCO families.",
)
@click.option(
    "--on-invalid",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Stop at invalid records, or leave them out and count them.",
)
@click.option(
    "--detections/--no-detections",
    default=True,
    show_default=True,
    help="Write <model>_detections.csv, a row a hit.",
)
@click.option("--quiet", is_flag=True, help="Do not print the report.")
@click.option("--log", help="A .log file for what is printed, with times, warnings and faults.")
def command(
    benchmark_dir: str,
    predictions_dir: str,
    output_dir: str,
    model_name: str,
    splits: tuple[str, ...],
    iou: float,
    engine: str,
    on_invalid: str,
    detections: bool,
    quiet: bool,
    log: str | None,
) -> None:
    """Score one model on the benchmark's splits and write its files."""
    keep_freed_memory()
    gc.freeze()  # what is imported stays, and need not be searched for garbage
    with _logged(log):
        evaluate_to_files(
            benchmark=benchmark_dir,
            predictions_dir=predictions_dir,
            output_dir=output_dir,
            model_name=model_name,
            splits=splits or TEST_SPLITS,
            iou=iou,
            engine=engine,  # type: ignore[arg-type]
            on_invalid=on_invalid,  # type: ignore[arg-type]
            detections=detections,
            quiet=quiet,
        )


def _logged(log: str | None) -> contextlib.AbstractContextManager[None]:
    if log is None:
        return contextlib.nullcontext()
    from benchmark_eval.pipeline.job import job

    if not log.endswith(".log"):  # it is written over, and must not be one of the inputs
        raise UsageError(f"--log: found {log!r}; expected is a file whose name ends in .log")
    return job(log)
