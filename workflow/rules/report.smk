# What people read: the plots and the report, from the tables alone.
from benchmark_eval.report.captions import PLOTS


rule plot_sweep:
    input:
        aggregated="results/aggregated/aggregated.json",
        tables_record=rules.aggregate.output.record,
        stamp="results/.state/report.json",
    output:
        [
            report(
                f"results/plots/{plot.name}.{kind}",
                caption=f"../report/{plot.name}.rst",
                category=plot.question,
                labels={"plot": plot.title, "format": kind},
            )
            for plot in PLOTS
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
        tables_record=rules.aggregate.output.record,
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
