# Every evaluation then loads the index in milliseconds.
rule index_benchmark:
    """Read and check the benchmark once, and write its index."""
    input:
        started,
    output:
        index=files_of("index")[0],
        record=recorded("index"),
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
        fingerprint=fingerprint("benchmark"),
        benchmark_dir=param(lambda: PLAN.config.benchmark_dir),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={params.fingerprint:q}"
        " --record={output.record:q} --benchmark-dir={params.benchmark_dir:q}"
        " --index={output.index:q}"
