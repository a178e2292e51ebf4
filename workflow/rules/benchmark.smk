# The benchmark is read and checked once; every evaluation then loads the index in milliseconds.
# Rules that read the index must not mark it ancient(): Snakemake 9.27 would drop the jobs that
# depend on it (snakemake#4166).
rule index_benchmark:
    input:
        files=ancient(local(benchmark_files)),
        fingerprint="results/.state/benchmark.json",
    output:
        index="results/benchmark/index.npz",
    log:
        "results/logs/index_benchmark.log",
    benchmark:
        "results/benchmarks/index_benchmark.tsv"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        python=python,
        script=script("index_benchmark"),
        benchmark_dir=lambda wildcards: str(PLAN.config.benchmark_dir),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={input.fingerprint:q}"
        " --benchmark-dir={params.benchmark_dir:q} --index={output.index:q}"
