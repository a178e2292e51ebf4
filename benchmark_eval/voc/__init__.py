"""PASCAL VOC 2012 average precision of detections in text files.

    from benchmark_eval import score_voc_folders
    result, matches = score_voc_folders("detections", "ground-truth")
    result.mAP, {score.name: score.AP for score in result.classes}

``run_map`` also writes results, plots and annotated images. The library prints nothing.
"""

from benchmark_eval.voc.results import ClassScore, MapResult
from benchmark_eval.voc.rule import Curve
from benchmark_eval.voc.run import run_map
from benchmark_eval.voc.scoring import Matches, score_boxes, score_voc_folders
from benchmark_eval.voc.text import Boxes, read_boxes

__all__ = [
    "Boxes",
    "ClassScore",
    "Curve",
    "MapResult",
    "Matches",
    "read_boxes",
    "run_map",
    "score_boxes",
    "score_voc_folders",
]
