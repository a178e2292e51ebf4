# What people read: the plots and the report, from the tables alone.
PLOT_QUESTIONS = {
    "learning_iid_AP_50_95": "Data efficiency",
    "learning_inat_AP_50_95": "Data efficiency",
    "learning_ood_class_agnostic_AR_100": "Data efficiency",
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
