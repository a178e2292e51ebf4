"""The second engine: pycocotools itself scores the COCO suites (``--engine pycocotools``)."""

from __future__ import annotations

import contextlib
import io

import numpy as np

from benchmark_eval.inputs.benchmark import SplitTruth
from benchmark_eval.scoring.coco import Scores, Suite
from benchmark_eval.scoring.detections import Detections
from benchmark_eval.scoring.matching import Match


def score_with_pycocotools(
    suite: Suite, detections: Detections, truth: SplitTruth, match: Match, n_areas: int
) -> Scores:
    """Precision and recall of a suite by ``COCOeval``, which does its own matching.

    Same signature as ``coco.score_suite``; always scores all area ranges. Annotations are
    numbered from 1 because pycocotools treats id 0 as "unmatched".
    """
    del match, n_areas
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth_coco = COCO()
        truth_coco.dataset = {
            "info": {},
            "images": [{"id": i} for i in range(len(truth.image_ids))],
            "categories": [{"id": i, "name": str(i)} for i in range(suite.n_labels)],
            "annotations": [
                {
                    "id": number,
                    "image_id": int(truth.image[row]),
                    "category_id": int(suite.truth_label[row]),
                    "bbox": truth.boxes[row].tolist(),
                    "area": float(truth.area[row]),
                    "iscrowd": int(truth.crowd[row]),
                }
                for number, row in enumerate(np.flatnonzero(suite.truth_label >= 0), start=1)
            ],
        }
        truth_coco.createIndex()
        predictions_coco = COCO()
        rows = np.flatnonzero(suite.label >= 0)
        predictions_coco.dataset = {
            "images": truth_coco.dataset["images"],
            "categories": truth_coco.dataset["categories"],
            "annotations": [
                {
                    "id": number,
                    "image_id": int(detections.image[row]),
                    "category_id": int(suite.label[row]),
                    "bbox": detections.boxes[row].tolist(),
                    "area": float(detections.area[row]),
                    "iscrowd": 0,
                    "score": float(detections.score[row]),
                }
                for number, row in enumerate(rows, start=1)
            ],
        }
        predictions_coco.createIndex()
        run = COCOeval(truth_coco, predictions_coco, iouType="bbox")
        run.evaluate()
        run.accumulate()
    precision = np.where(run.eval["precision"] > -1, run.eval["precision"], np.nan)
    recall = np.where(run.eval["recall"] > -1, run.eval["recall"], np.nan)
    return Scores(
        precision=np.moveaxis(precision[..., -1], 3, 0),
        recall=np.moveaxis(recall[:, :, 0, :], 2, 0),
        recall_by_area=np.moveaxis(recall[..., -1], 2, 0),
    )
