"""pycocotools, used as documented, on the files of a drawn benchmark."""

import contextlib
import io
import json

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

NAMED = ("iid_test", "inat_test")
METRICS = (
    *("AP_50_95", "AP_50", "AP_75", "AP_small", "AP_medium", "AP_large"),
    *("AR_1", "AR_10", "AR_100", "AR_small", "AR_medium", "AR_large"),
)
NO_CAP = 10**6


def scores(case, split):
    """The COCO blocks of a split as in summary.json, with None for undefined values."""
    truth, records = truth_of(case, split), scored_records(case, split)
    as_one = {
        **truth,
        "categories": [{"id": 1, "name": "beetle"}],
        "annotations": [{**a, "category_id": 1} for a in truth["annotations"]],
    }
    records_as_one = [{**r, "category_id": 1} for r in records]
    listed = [c["id"] for c in truth["categories"]]
    return {
        "coco": _twelve(truth, records, listed),
        "class_agnostic": _twelve(as_one, records_as_one, [1]),
        "per_species": {str(i): _species(truth, records, i) for i in listed},
        "detection_cap": {
            "AR_100": _recall_at(as_one, records_as_one, 100),
            "AR_300": _recall_at(as_one, records_as_one, 300),
            "AR_uncapped": _recall_at(as_one, records_as_one, NO_CAP),
        },
    }


def scored_records(case, split):
    """The scored records of a split, in file order."""
    truth = truth_of(case, split)
    images = {image["id"] for image in truth["images"]}
    listed = {c["id"] for c in truth["categories"]}
    records = json.loads((case.reference_predictions / f"{split}_predictions.json").read_text())
    return [
        {**r, "image_id": int(r["image_id"]), "category_id": int(r["category_id"])}
        for r in records
        if isinstance(r, dict)
        and {"image_id", "category_id", "bbox", "score"} <= r.keys()
        and len(r["bbox"]) == 4
        and r["image_id"] in images
        and (split not in NAMED or r["category_id"] in listed)
    ]


def truth_of(case, split):
    """The split's ground truth in a form that pycocotools accepts."""
    return json.loads((case.reference / f"detection/annotations_coco/{split}.json").read_text())


def _evaluated(truth, records, categories, **params):
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = json.loads(json.dumps(truth))
        coco.createIndex()
        found = COCO()
        if records:
            found = coco.loadRes([dict(r) for r in records])
        else:
            found.dataset = {**coco.dataset, "annotations": []}
            found.createIndex()
        run = COCOeval(coco, found, "bbox")
        run.params.catIds = categories
        for name, value in params.items():
            setattr(run.params, name, value)
        run.evaluate()
        run.accumulate()
    return run


def _twelve(truth, records, categories):
    run = _evaluated(truth, records, categories)
    with contextlib.redirect_stdout(io.StringIO()):
        run.summarize()
    return {key: _defined(value) for key, value in zip(METRICS, run.stats, strict=True)}


def _species(truth, records, category):
    """The mean of one category over recall points and thresholds."""
    precision = _evaluated(truth, records, [category]).eval["precision"][:, :, 0, 0, -1]
    return {"AP_50": _mean(precision[0]), "AP_50_95": _mean(precision)}


def _recall_at(truth, records, cap):
    return _mean(_evaluated(truth, records, [1], maxDets=[cap]).eval["recall"][:, 0, 0, 0])


def _mean(values):
    """Mean of the defined values; pycocotools writes -1 for undefined ones."""
    defined = values[values > -1]
    return float(np.mean(defined)) if defined.size else None


def _defined(value):
    return None if value == -1 else float(value)
