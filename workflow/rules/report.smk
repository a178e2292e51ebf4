# The plots and the report, from the tables only.
from benchmark_eval.report.captions import PLOTS


rule plot_sweep:
    input:
        aggregated="results/aggregated/aggregated.json",
        tables_record=rules.aggregate.output.record,
        fingerprint="results/.state/report.json",
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
        record=f"results/.state/{PLAN.record('plots')}",
    log:
        "results/logs/plot_sweep.log",
    benchmark:
        "results/benchmarks/plot_sweep.tsv"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        python=python,
        script=script("plot_sweep"),
        output_dir=lambda wildcards, output: str(Path(output[0]).parent),
        formats=list(PLAN.config.plot_formats),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={input.fingerprint:q}"
        " --record={output.record:q} --aggregated={input.aggregated:q}"
        " --output-dir={params.output_dir:q} --formats {params.formats}"


rule report:
    input:
        aggregated="results/aggregated/aggregated.json",
        tables_record=rules.aggregate.output.record,
        plots=rules.plot_sweep.output,
        fingerprint="results/.state/report.json",
    output:
        text=report(
            "results/aggregated/report.md",
            caption="../report/report.rst",
            category="Report",
            labels={"plot": "Report of the sweep", "format": "md"},
        ),
        record=f"results/.state/{PLAN.record('report')}",
    log:
        "results/logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        python=python,
        script=script("report"),
        output_dir=lambda wildcards, output: str(Path(output.text).parent),
        plot_format=PLAN.config.plot_formats[0],
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={input.fingerprint:q}"
        " --record={output.record:q} --aggregated={input.aggregated:q}"
        " --output-dir={params.output_dir:q} --plot-format={params.plot_format}"
