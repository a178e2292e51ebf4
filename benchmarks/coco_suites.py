"""Score one COCO suite with one public tool in a separate process (called by ``speed.py``).

    python benchmarks/coco_suites.py TOOL ANNOTATIONS PREDICTIONS

TOOL: pycocotools, faster-coco-eval or hotcoco. For the class-agnostic suite both files have a
single category (``one_class``). Prints the twelve metrics as a JSON list.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path


def one_class(source: Path, target: Path) -> None:
    """Write an annotation or prediction file with every category id set to 1."""
    tree = json.loads(source.read_text())
    records = tree if isinstance(tree, list) else tree["annotations"]
    for record in records:
        record["category_id"] = 1
    if isinstance(tree, dict):
        tree["categories"] = [{"id": 1, "name": "beetle"}]
    target.write_text(json.dumps(tree))


def main(tool: str, annotations: str, predictions: str) -> None:
    """Load, score, print."""
    if tool == "pycocotools":
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    elif tool == "faster-coco-eval":
        from faster_coco_eval import COCO
        from faster_coco_eval import COCOeval_faster as COCOeval
    else:
        from hotcoco import COCO, COCOeval
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(annotations)
        found = truth.loadRes(predictions)
        try:
            run = COCOeval(truth, found, iouType="bbox")
        except TypeError:
            run = COCOeval(truth, found, "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    print(json.dumps([float(value) for value in run.stats]))


if __name__ == "__main__":
    main(*sys.argv[1:])
