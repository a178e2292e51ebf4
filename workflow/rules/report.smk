# What people read: the plots and the report, from the tables alone.
# Each plot's question and title, as benchmark_eval.report.captions has them (tested).
PLOTS = {
    "learning_iid_AP_50_95": ("Data efficiency", "In-distribution AP by budget"),
    "learning_inat_AP_50_95": ("Data efficiency", "Field-photograph AP by budget"),
    "learning_ood_class_agnostic_AR_100": ("Data efficiency", "Unseen-species recall by budget"),
    "learning_iid_AP_50": (
        "Data efficiency",
        "In-distribution AP@.5 by budget, with the benchmark's card",
    ),
    "budget_images": ("Data efficiency", "All regimes by distinct training images"),
    "budget_specimens": ("Data efficiency", "All regimes by annotated specimens"),
    "generalization_gaps": (
        "Field photographs and unseen species",
        "Loss on field photographs and on unseen species",
    ),
    "ood_bands": ("Field photographs and unseen species", "Finding unseen species by distance"),
    "ood_band_taxonomic_agreement": (
        "Field photographs and unseen species",
        "Naming unseen species by distance",
    ),
    "density_detection_recall": ("Field photographs and unseen species", "Found by density"),
    "imbalance_tiers": ("Rare and common species", "Head, medium and tail species"),
    "imbalance_gap": ("Rare and common species", "Head minus tail"),
    "decomposition_iid": ("Finding against naming", "Finding and naming in distribution"),
    "decomposition_inat": ("Finding against naming", "Finding and naming on field photographs"),
    "density_species_accuracy": ("Finding against naming", "Named right by density"),
    "operating_curve": ("Finding against naming", "Confidence cuts"),
    "target_grid": ("Target species", "Target species: band by images"),
    "target_vs_nontarget": ("Target species", "Target species against all others"),
    "confidence": ("Confidence", "Mean confidence"),
    "calibration_error": ("Confidence", "Calibration error"),
    "novelty": ("Confidence", "Unseen species by low confidence"),
}


rule plot_sweep:
    input:
        aggregated="results/aggregated/aggregated.json",
        tables_record=rules.aggregate.output.record,
        fingerprint="results/.state/report.json",
    output:
        [
            report(
                f"results/plots/{plot}.{kind}",
                caption=f"../report/{plot}.rst",
                category=question,
                labels={"plot": title, "format": kind},
            )
            for plot, (question, title) in PLOTS.items()
            for kind in PLAN.config.plot_formats
        ],
        record=f"results/.state/{PLAN.record('plots')}",
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
            labels={"plot": "the report as text", "format": "md"},
        ),
        record=f"results/.state/{PLAN.record('report')}",
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
        python=python,
        script=script("report"),
        output_dir=lambda wildcards, output: str(Path(output.text).parent),
        plot_format=PLAN.config.plot_formats[0],
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={input.fingerprint:q}"
        " --record={output.record:q} --aggregated={input.aggregated:q}"
        " --output-dir={params.output_dir:q} --plot-format={params.plot_format}"
