"""Read the benchmark's files and keep them as one index."""

from benchmark_eval.pipeline.job import job
from benchmark_eval.pipeline.kept_index import make_index

with job(snakemake.log[0]):
    make_index(
        snakemake.params.benchmark_dir,
        snakemake.output.index,
        stamp=snakemake.input.stamp,
        record=snakemake.output.record,
    )
