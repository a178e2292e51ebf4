"""Draw the plots of the sweep."""

from pathlib import Path

from benchmark_eval.pipeline.job import job
from benchmark_eval.report import write_plots
from benchmark_eval.sweep import load_tables

with job(
    snakemake.log[0],
    stamp=snakemake.input.stamp,
    record=snakemake.output.record,
    made=[snakemake.input.aggregated],
):
    write_plots(
        load_tables(snakemake.input.aggregated),
        Path(snakemake.output[0]).parent,
        snakemake.params.formats,
    )
