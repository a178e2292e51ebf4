"""Job of the rule evaluate_model: score one model on all splits."""

import argparse

from benchmark_eval.pipeline.jobs import evaluate_model

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
for name in (
    "index",
    "predictions-dir",
    "output-dir",
    "model-name",
    "fingerprint",
    "record",
    "log",
):
    parser.add_argument(f"--{name}", required=True)
for name in ("engine", "on-invalid"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--splits", required=True, nargs="+")
parser.add_argument("--iou", required=True, type=float)
parser.add_argument("--operating-confidence", type=float)
parser.add_argument("--detections", required=True)
evaluate_model(**vars(parser.parse_args()))
