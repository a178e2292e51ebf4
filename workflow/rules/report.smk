# What people read: the plots and the report, from the tables alone.
PLOT_QUESTIONS = {
    "learning_iid_AP_50_95": "Data efficiency",
    "learning_inat_AP_50_95": "Data efficiency",
    "learning_ood_class_agnostic_AR_100": "Data efficiency",
    "learning_iid_AP_50": "Data efficiency",
    "budget_images": "Data efficiency",
    "budget_specimens": "Data efficiency",
    "carrying_over": "Field photographs and unseen species",
    "ood_bands": "Field photographs and unseen species",
    "ood_band_naming": "Field photographs and unseen species",
    "density_found": "Field photographs and unseen species",
    "imbalance_tiers": "Rare and common species",
    "imbalance_gap": "Rare and common species",
    "finding_naming_iid": "Finding against naming",
    "finding_naming_inat": "Finding against naming",
    "density_named": "Finding against naming",
    "operating_curve": "Finding against naming",
    "target_grid": "Target species",
    "target_vs_others": "Target species",
    "confidence": "Confidence",
    "calibration_error": "Confidence",
    "novelty": "Confidence",
}


rule plot_sweep:
    input:
        aggregated="results/aggregated/aggregated.json",
        stamp="results/.state/report.json",
    output:
        [
            report(
                f"results/plots/{plot}.{kind}",
                caption=f"../report/{plot}.rst",
                category=question,
                labels={"plot": plot, "format": kind},
            )
            for plot, question in PLOT_QUESTIONS.items()
            for kind in PLAN.config.plot_formats
        ],
        record="results/.state/plots.made.json",
    log:
        "results/logs/plot_sweep.log",
    benchmark:
        "results/benchmarks/plot_sweep.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        formats=list(PLAN.config.plot_formats),
    script:
        "../scripts/plot_sweep.py"


rule report:
    input:
        aggregated="results/aggregated/aggregated.json",
        plots=rules.plot_sweep.output,
        stamp="results/.state/report.json",
    output:
        text=report(
            "results/aggregated/report.md",
            caption="../report/report.rst",
            category="Report",
            labels={"plot": "the report as text", "format": "md"},
        ),
        record="results/.state/report.made.json",
    log:
        "results/logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        plot_format=PLAN.config.plot_formats[0],
    script:
        "../scripts/report.py"
