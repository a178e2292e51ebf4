# All models together.
rule aggregate:
    input:
        summaries=summaries,
        index="results/benchmark/index.npz",
        manifest=ancient(local(manifest_files)),
        stamp="results/.state/sweep.json",
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
        record="results/.state/sweep.made.json",
    log:
        "results/logs/aggregate.log",
    benchmark:
        "results/benchmarks/aggregate.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        manifest=lambda wildcards: str(PLAN.config.manifest),
        eval_dir=lambda wildcards: MODELS_FOLDER,
        allow_missing=PLAN.config.allow_missing,
        exclude=list(PLAN.missing),
        custom_metrics=str(PLAN.config.custom_metrics or ""),
    script:
        "../scripts/aggregate.py"
