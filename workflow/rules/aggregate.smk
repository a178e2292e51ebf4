rule aggregate:
    """Compute the tables of the sweep from the summaries of all models."""
    input:
        summaries=read_by("aggregate", "sweep", summaries_of(PLAN.models)),
        index_record=read_by("aggregate", "sweep", [recorded("index")]),
    output:
        tables=files_of("sweep"),
        record=recorded("sweep"),
    log:
        "results/logs/aggregate.log",
    benchmark:
        "results/benchmarks/aggregate.tsv"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        python=python,
        script=script("aggregate"),
        index=param(lambda: INDEX),
        fingerprint=fingerprint("sweep"),
        output_dir=lambda wildcards, input, output: str(Path(output.tables[0]).parent),
        manifest=param(lambda: PLAN.config.manifest),
        eval_dir=param(lambda: MODELS_FOLDER),
        allow_missing=param(
            lambda: "--allow-missing" if PLAN.config.allow_missing else "--no-allow-missing"
        ),
        custom_metrics=param(lambda: PLAN.config.custom_metrics or ""),
        price_per_image=param(lambda: text_of(PLAN.config.price_per_image)),
        price_per_specimen=param(lambda: text_of(PLAN.config.price_per_specimen)),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={params.fingerprint:q}"
        " --record={output.record:q} --eval-dir={params.eval_dir:q} --manifest={params.manifest:q}"
        " --index={params.index:q} --output-dir={params.output_dir:q} {params.allow_missing}"
        " --custom-metrics={params.custom_metrics:q}"
        " --price-per-image={params.price_per_image:q}"
        " --price-per-specimen={params.price_per_specimen:q}"
