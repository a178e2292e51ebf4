# Plots, report and page are made from the tables only.
from benchmark_eval.report.captions import PLOTS


rule plot_sweep:
    """Draw the plots of the sweep."""
    input:
        aggregated=read_by("plot_sweep", "plots", files_of("sweep")[:1]),
        tables_record=read_by("plot_sweep", "plots", [recorded("sweep")]),
    output:
        [
            report(
                f"results/plots/{plot.name}.{kind}",
                caption=f"../report/{plot.name}.rst",
                category=shown_in(plot.question),
                labels={"plot": plot.title, "format": kind},
            )
            for plot in PLOTS
            for kind in PLAN.config.plot_formats
        ],
        record=recorded("plots"),
    log:
        "results/logs/plot_sweep.log",
    benchmark:
        "results/benchmarks/plot_sweep.tsv"
    threads: 2
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        python=python,
        script=script("plot_sweep"),
        fingerprint=fingerprint("report"),
        output_dir=lambda wildcards, input, output: str(Path(output[0]).parent),
        formats=param(lambda: list(PLAN.config.plot_formats)),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={params.fingerprint:q}"
        " --record={output.record:q} --aggregated={input.aggregated:q}"
        " --output-dir={params.output_dir:q} --jobs={threads} --formats {params.formats}"


rule report:
    """Write the report of the sweep."""
    input:
        aggregated=read_by("report", "report", files_of("sweep")[:1]),
        tables_record=read_by("report", "report", [recorded("sweep")]),
        plots=read_by("report", "report", [*files_of("plots"), recorded("plots")]),
    output:
        # not in Snakemake's report, which cannot show Markdown
        text="results/aggregated/report.md",
        record=recorded("report"),
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
        fingerprint=fingerprint("report"),
        output_dir=lambda wildcards, input, output: str(Path(output.text).parent),
        plot_format=param(lambda: PLAN.config.plot_formats[0]),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={params.fingerprint:q}"
        " --record={output.record:q} --aggregated={input.aggregated:q}"
        " --output-dir={params.output_dir:q} --plot-format={params.plot_format}"


rule page:
    """Write the page of the sweep."""
    input:
        aggregated=read_by("page", "page", files_of("sweep")[:1]),
        tables_record=read_by("page", "page", [recorded("sweep")]),
    output:
        page=report(
            "results/report.html",
            category=shown_in("Report"),
            labels={"page": "Report of the sweep"},
        ),
        record=recorded("page"),
    log:
        "results/logs/page.log",
    benchmark:
        "results/benchmarks/page.tsv"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        python=python,
        script=script("page"),
        fingerprint=fingerprint("report"),
        eval_dir=lambda wildcards, input, output: str(Path(output.page).parent / "models"),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={params.fingerprint:q}"
        " --record={output.record:q} --aggregated={input.aggregated:q}"
        " --eval-dir={params.eval_dir:q} --output={output.page:q}"
