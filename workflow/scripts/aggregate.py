"""Put the summaries of all models together into the tables of the sweep."""

from pathlib import Path

from benchmark_eval.pipeline.job import job
from benchmark_eval.sweep import aggregate

with job(
    snakemake.log[0],
    stamp=snakemake.input.stamp,
    record=snakemake.output.record,
    made=snakemake.input.summaries,
):
    aggregate(
        eval_dir=snakemake.params.eval_dir,
        manifest=snakemake.params.manifest,
        benchmark=snakemake.input.index,
        output_dir=Path(snakemake.output.aggregated).parent,
        allow_missing=snakemake.params.allow_missing,
        exclude=snakemake.params.exclude,
        custom_metrics=snakemake.params.custom_metrics or None,
        stamp=snakemake.input.stamp,
    )
