# The fingerprint of a model contains the digests of its predictions, of the benchmark and of the scoring
# code, and the options.
rule evaluate_model:
    """Score one model on all splits."""
    input:
        index_record=read_by_model(recorded("index")),
    output:
        summary="results/models/{model}/{model}_summary.json",
        table="results/models/{model}/{model}_summary.csv",
        per_species="results/models/{model}/{model}_per_species.csv",
        report="results/models/{model}/{model}_report.txt",
        detections=(
            []
            if PLAN.config.detections == "none"
            else "results/models/{model}/{model}_detections.csv"
        ),
        evidence="results/models/{model}/{model}_evidence.npz",
        record="results/.state/models/{model}.made",
    log:
        "results/logs/evaluate_model/{model}.log",
    benchmark:
        "results/benchmarks/evaluate_model/{model}.tsv"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: attempt
        * (1000 + MEMORY_PER_MB * predictions_mb(wildcards)),
        runtime=lambda wildcards, attempt: attempt * (30 + predictions_mb(wildcards) // 10),
    params:
        python=python,
        script=script("evaluate_model"),
        index=param(lambda: INDEX),
        fingerprint=lambda wildcards, input: PLAN.layout.model_fingerprint(wildcards.model),
        predictions_dir=predictions_dir,
        output_dir=lambda wildcards, input, output: str(Path(output.summary).parent),
        splits=param(lambda: list(PLAN.config.splits)),
        iou=param(lambda: PLAN.config.iou),
        engine=param(lambda: PLAN.config.engine),
        on_invalid=param(lambda: PLAN.config.on_invalid),
        operating=param(operating_option),
        detections=param(lambda: PLAN.config.detections),
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={params.fingerprint:q}"
        " --record={output.record:q}"
        " --index={params.index:q} --predictions-dir={params.predictions_dir:q}"
        " --output-dir={params.output_dir:q} --model-name={wildcards.model:q}"
        " --splits {params.splits} --iou {params.iou} --engine {params.engine}"
        " --on-invalid {params.on_invalid} {params.operating}"
        " --detections {params.detections}"
