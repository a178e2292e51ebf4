"""Read the benchmark's files and keep them as one index."""

from benchmark_eval.index import write_index
from benchmark_eval.joblog import job

with job(snakemake.log[0]):
    write_index(snakemake.params.benchmark_dir, snakemake.output.index, stamp=snakemake.input.stamp)
