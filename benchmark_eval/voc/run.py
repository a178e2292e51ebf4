"""Score two folders and write results, plots and annotated images."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import structs

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.fonts import fallback_for, lacking_note
from benchmark_eval.core.outputs import claim
from benchmark_eval.core.safe_read import absent
from benchmark_eval.voc.results import (
    Coordinates,
    MapResult,
    as_json,
    as_text,
    classes_csv,
    curves_csv,
)
from benchmark_eval.voc.scoring import Matches, score_voc_folders
from benchmark_eval.voc.text import Progress

_LOG = logging.getLogger(__name__)
RESULTS = "results.json"
TEXTS = {
    "results.txt": as_text,
    "results.csv": classes_csv,
    "precision_recall.csv": curves_csv,
}
"""Files written in addition to ``results.json``, with their renderers."""
FILES = (RESULTS, *TEXTS, "animation.gif", "plots/", "plots/precision_recall/", "images/")
"""All files of a run; those in the folders are named after classes and images."""


def run_map(
    prediction_dir: str | Path,
    ground_truth_dir: str | Path,
    *,
    output_dir: str | Path | None = None,
    image_dir: str | Path | None = None,
    animate: bool = False,
    plots: bool = True,
    iou: float = 0.5,
    class_iou: Mapping[str, float] | None = None,
    ignore: Collection[str] = (),
    coordinates: Coordinates = "pixel",
    draw_confidence: float = 0.25,
    progress: Progress | None = None,
    force: bool = False,
) -> MapResult:
    """Score as ``score_voc_folders`` does and write all outputs into ``output_dir``, if given.

    With ``image_dir``, annotated images are drawn (detections of at least ``draw_confidence``), and
    with ``animate`` also an animation. Earlier results in ``output_dir`` are replaced together. On
    an InputError they are removed, because they no longer describe the inputs. Raises UsageError if
    ``output_dir`` is an input folder, or contains files of these names that no earlier run wrote
    (unless ``force``).
    """
    if output_dir is None and (image_dir is not None or animate):
        raise UsageError("image_dir and animate require output_dir")
    if animate and image_dir is None:
        raise UsageError("animate requires image_dir")
    if image_dir is not None and not Path(image_dir).is_dir():
        found = absent(image_dir, "no such folder")
        raise UsageError(f"{image_dir}: {found}; expected a folder of images")
    if not 0 <= draw_confidence <= 1:
        raise UsageError(f"draw_confidence must be in [0, 1], got {draw_confidence:g}")

    def score() -> tuple[MapResult, Matches]:
        return score_voc_folders(
            prediction_dir,
            ground_truth_dir,
            iou=iou,
            class_iou=class_iou,
            ignore=ignore,
            coordinates=coordinates,
            progress=progress,
        )

    if output_dir is None:
        return score()[0]
    inputs = [prediction_dir, ground_truth_dir, *([image_dir] if image_dir else [])]
    with claim(output_dir, FILES, inputs=inputs, force=force) as output:
        try:
            result, matches = score()
            if plots or image_dir is not None:
                _warn_of_characters(matches)
            if image_dir is not None:
                from benchmark_eval.voc.pictures import draw_pictures

                notes = draw_pictures(
                    matches, Path(image_dir), output.stage, animate, draw_confidence, progress
                )
                result = structs.replace(result, notes=(*result.notes, *notes))
        except InputError:
            output.clear()
            raise
        if plots:
            from benchmark_eval.voc.plots import draw_plots

            draw_plots(result, output.stage / "plots", progress)
        output.write(RESULTS, as_json(result))
        for name, render in TEXTS.items():
            output.write(name, render(result).encode())
        output.publish(RESULTS)
    return result


def _warn_of_characters(matches: Matches) -> None:
    """Log a warning about characters of names that will be drawn as boxes."""
    truth, detections = matches.ground_truth, matches.detections
    lacking = fallback_for([*truth.images, *truth.classes, *detections.classes]).lacking
    if lacking:
        _LOG.warning("plots: %s", lacking_note(lacking))
