"""CPU time (s) of the stages of one evaluation, as JSON (called by ``speed.py``).

python benchmarks/stages.py BENCHMARK_DIR PREDICTIONS_DIR OUTPUT_DIR
"""

import json
import sys
import time

marks = [("start of Python", time.process_time())]


def mark(name):
    marks.append((name, time.process_time()))


from benchmark_eval.inputs.benchmark_reader import load_benchmark  # noqa: E402
from benchmark_eval.inputs.prediction_files import predictions_file  # noqa: E402
from benchmark_eval.inputs.predictions import read_predictions  # noqa: E402
from benchmark_eval.protocol import TEST_SPLITS  # noqa: E402
from benchmark_eval.results import writers  # noqa: E402
from benchmark_eval.scoring import evaluate as evaluation  # noqa: E402
from benchmark_eval.scoring.coco import N_AREAS, Suite, match_coco, score_suite  # noqa: E402
from benchmark_eval.scoring.detections import order_detections  # noqa: E402
from benchmark_eval.scoring.matching import localise  # noqa: E402
from benchmark_eval.scoring.pairs import find_matching_pairs  # noqa: E402

mark("imports")
benchmark_dir, predictions_dir, output_dir = sys.argv[1:]
benchmark = load_benchmark(benchmark_dir)
mark("reading the benchmark")
truths = [benchmark.split(split) for split in TEST_SPLITS]
predictions = [
    read_predictions(predictions_file(predictions_dir, t.name), benchmark, t.name) for t in truths
]
mark("reading predictions into columns")
k = len(benchmark.categories.ids)
detections = [order_detections(p, k) for p in predictions]
mark("sorting")
pairs = [find_matching_pairs(d, t, 0.5) for d, t in zip(detections, truths, strict=True)]
mark("IoU of all pairs")
for d, t, p in zip(detections, truths, pairs, strict=True):
    localise(d, t, p, 0.5)
mark("localisation matching")
for d, t, p in zip(detections, truths, pairs, strict=True):
    for suite in (Suite.class_agnostic(d, t), Suite.by_species(d, t, k)):
        score_suite(suite, d, t, match_coco(suite, d, t, p), N_AREAS)
mark("COCO matching, AP and AR (class-aware and class-agnostic)")
stages = [(name, now - before) for (name, now), (_, before) in zip(marks[1:], marks, strict=False)]
start = time.process_time()
result, tables = evaluation.evaluate(
    benchmark, predictions_dir, "model", evaluation.Options(), true_positives=True
)
whole = time.process_time() - start
with writers.claim_model_files(output_dir, "model") as output:
    writers.write_evaluation(result, benchmark, tables, output)
listed = sum(seconds for name, seconds in stages[2:])
stages += [
    ("distance bands and other metric families", whole - listed),
    ("writing the result files", time.process_time() - start - whole),
]
print(json.dumps([marks[0], *stages]))
