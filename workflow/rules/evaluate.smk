# One model on all splits. Modification times of prediction files are ignored: the fingerprint
# contains their digests, those of the benchmark and the scoring code, and the options.
rule evaluate_model:
    input:
        predictions=ancient(local(prediction_files)),
        index="results/benchmark/index.npz",
        fingerprint="results/.state/models/{model}.json",
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
    log:
        "results/logs/evaluate_model/{model}.log",
    benchmark:
        "results/benchmarks/evaluate_model/{model}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 1500 * attempt,
        runtime=30,
    params:
        python=python,
        script=script("evaluate_model"),
        predictions_dir=lambda wildcards, input: str(Path(input.predictions[0]).parent),
        output_dir=lambda wildcards, output: str(Path(output.summary).parent),
        splits=list(PLAN.config.splits),
        iou=PLAN.config.iou,
        engine=PLAN.config.engine,
        on_invalid=PLAN.config.on_invalid,
        operating=(
            []
            if PLAN.config.operating_confidence is None
            else ["--operating-confidence", PLAN.config.operating_confidence]
        ),
        detections=PLAN.config.detections,
    shell:
        "{params.python:q} -P {params.script:q} --log={log:q} --fingerprint={input.fingerprint:q}"
        " --index={input.index:q} --predictions-dir={params.predictions_dir:q}"
        " --output-dir={params.output_dir:q} --model-name={wildcards.model:q}"
        " --splits {params.splits} --iou {params.iou} --engine {params.engine}"
        " --on-invalid {params.on_invalid} {params.operating}"
        " --detections {params.detections}"
