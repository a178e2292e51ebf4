"""Score one model and write its files."""

from pathlib import Path

from benchmark_eval.evaluation import evaluate_to_files
from benchmark_eval.joblog import job
from benchmark_eval.memory import keep_freed_memory

with job(snakemake.log[0]):
    keep_freed_memory()
    evaluate_to_files(
        benchmark=snakemake.input.index,
        predictions_dir=Path(snakemake.input.predictions[0]).parent,
        output_dir=Path(snakemake.output.summary).parent,
        model_name=snakemake.wildcards.model,
        splits=tuple(snakemake.params.splits),
        iou=snakemake.params.iou,
        engine=snakemake.params.engine,
        on_invalid=snakemake.params.on_invalid,
        detections=snakemake.params.detections,
        quiet=True,
        stamp=snakemake.input.stamp,
    )
