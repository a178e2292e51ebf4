# The benchmark, read and checked once; every evaluation loads the index in milliseconds.
rule index_benchmark:
    input:
        files=ancient(local(benchmark_files)),
        stamp="results/.state/benchmark.json",
    output:
        index="results/benchmark/index.npz",
        record="results/.state/benchmark.made.json",
    log:
        "results/logs/index_benchmark.log",
    benchmark:
        "results/benchmarks/index_benchmark.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        benchmark_dir=lambda wildcards: str(PLAN.config.benchmark_dir),
    script:
        "../scripts/index_benchmark.py"
