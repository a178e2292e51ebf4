"""Write the report of the sweep."""

from pathlib import Path

from benchmark_eval.pipeline.job import job
from benchmark_eval.report import write_report
from benchmark_eval.sweep import load_tables

with job(
    snakemake.log[0],
    stamp=snakemake.input.stamp,
    record=snakemake.output.record,
    made=[snakemake.input.aggregated],
):
    write_report(
        load_tables(snakemake.input.aggregated),
        Path(snakemake.output.text).parent,
        plot_format=snakemake.params.plot_format,
    )
