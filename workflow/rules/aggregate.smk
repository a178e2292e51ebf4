# The tables of the sweep, from the summaries of all models.
rule aggregate:
    input:
        summaries=summaries,
        index="results/benchmark/index.npz",
        manifest=ancient(local(manifest_files)),
        fingerprint="results/.state/sweep.json",
    output:
        aggregated="results/aggregated/aggregated.json",
        tables=expand(
            "results/aggregated/{table}.csv",
            table=[
                "learning_curves",
                "differences",
                "target_species_curves",
                "target_vs_nontarget",
                "budget_curves",
                "density_curves",
                "operating_curves",
                "models",
            ],
        ),
        record=f"results/.state/{PLAN.record('sweep')}",
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
        output_dir=lambda wildcards, output: str(Path(output.aggregated).parent),
        manifest=lambda wildcards: str(PLAN.config.manifest),
        eval_dir=lambda wildcards: MODELS_FOLDER,
        allow_missing="--allow-missing" if PLAN.config.allow_missing else "--no-allow-missing",
        custom_metrics=str(PLAN.config.custom_metrics or ""),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={input.fingerprint:q}"
        " --record={output.record:q} --eval-dir={params.eval_dir:q} --manifest={params.manifest:q}"
        " --index={input.index:q} --output-dir={params.output_dir:q} {params.allow_missing}"
        " --custom-metrics={params.custom_metrics:q}"
