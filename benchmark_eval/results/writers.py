"""The only writer of one model's files; what they hold is ``benchmark_eval.results.schema``.

Undefined values are ``null`` in JSON and empty cells in CSV. Numbers are written with as many
digits as it takes to read the same number back.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmark_eval.core.arrays import Floats
from benchmark_eval.core.atomic_write import write_together
from benchmark_eval.core.csv_text import neutral
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.results.model_report import render_text
from benchmark_eval.results.schema import Evaluation, to_dict
from benchmark_eval.results.true_positives import TruePositiveTable

SUMMARY_COLUMNS = ("model", "split", "category", "metric", "value")
SPECIES_COLUMNS = (
    "model",
    "split",
    "category_id",
    "species",
    "n_gt_annotations",
    "AP_50",
    "AP_50_95",
    "n_train_images",
    "n_train_objects",
    "objects_per_image",
    "n_matched_tp",
    "n_correct_species",
    "n_correct_genus",
)
DETECTION_COLUMNS = (
    "split",
    "image_id",
    "score",
    "iou",
    "is_tp",
    "pred_species",
    "gt_species",
    "pred_genus",
    "gt_genus",
    "correct_species",
    "correct_genus",
    "band",
)
# blocks whose numbers stand deeper than one level, flattened under dotted names
_NESTED = ("ood_by_band", "density", "operating_point")
_SUFFIXES = ("summary.json", "summary.csv", "per_species.csv", "report.txt", "detections.csv")


def model_files(output_dir: str | Path, model: str) -> dict[str, Path]:
    """Where a model's files are, by suffix (``"summary.json"``, ...)."""
    return {suffix: Path(output_dir) / f"{model}_{suffix}" for suffix in _SUFFIXES}


def write_evaluation(
    evaluation: Evaluation,
    benchmark: Benchmark,
    hits: Sequence[TruePositiveTable] | None,
    output_dir: str | Path,
) -> str:
    """Write a model's files and return its report.

    All of them or none (``core.atomic_write.write_together``): whoever finds a summary.json
    finds the files that belong to it. Without ``hits`` no detections.csv is written, and none is
    left.
    """
    report = render_text(evaluation)
    texts: dict[str, str | None] = {
        "summary.csv": summary_csv(evaluation),
        "per_species.csv": per_species_csv(evaluation, benchmark),
        "report.txt": report,
        "detections.csv": None if hits is None else detections_csv(hits),
    }
    paths = model_files(output_dir, evaluation.model)
    contents = {
        paths[suffix]: None if text is None else text.encode() for suffix, text in texts.items()
    }
    seal = paths["summary.json"]
    write_together({**contents, seal: summary_json(evaluation)}, seal)
    return report


def summary_json(evaluation: Evaluation) -> bytes:
    """The whole evaluation as indented JSON, ending in a line feed."""
    return msgspec.json.format(msgspec.json.encode(to_dict(evaluation)), indent=1) + b"\n"


def _cell(value: Any) -> str:
    """A value as CSV text: empty for undefined, True/False, shortest exact number."""
    if value is None:
        return ""
    return str(neutral(value)) if isinstance(value, str) else repr(value)


def _csv(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _numbers(tree: dict[str, Any], *, deep: bool, stem: str = "") -> Iterator[tuple[str, Any]]:
    """Scalars of a block by key; of nested blocks also those further down, dotted."""
    for key, value in tree.items():
        if value is None or isinstance(value, bool | int | float):
            yield f"{stem}{key}", value
        elif deep and isinstance(value, dict) and key != "curve":
            yield from _numbers(value, deep=True, stem=f"{stem}{key}.")


def summary_rows(evaluation: Evaluation) -> Iterator[tuple[str, str, str, str, Any]]:
    """Every number one level below a split's block, and the bands, strata and cuts, dotted."""
    tree = msgspec.to_builtins(evaluation)
    for split, blocks in tree["per_split"].items():
        for block, content in blocks.items():
            if not isinstance(content, dict) or block == "per_species":
                continue
            for name, value in _numbers(content, deep=block in _NESTED):
                yield evaluation.model, split, block, name, value
    for name, value in tree["summary"].items():
        yield evaluation.model, "ALL", "summary", name, value


def summary_csv(evaluation: Evaluation) -> str:
    """``summary_rows`` as CSV."""
    return _csv(SUMMARY_COLUMNS, summary_rows(evaluation))


def per_species_csv(evaluation: Evaluation, benchmark: Benchmark) -> str:
    """A row for every category that a split lists."""
    categories = benchmark.categories
    row_of = {str(number): row for row, number in enumerate(categories.ids.tolist())}

    def rows() -> Iterator[Sequence[Any]]:
        for split, result in evaluation.per_split.items():
            for number, score in result.per_species.items():
                at = row_of[number]
                images = int(categories.n_train_images[at])
                objects = int(categories.n_train_objects[at])
                trained = images > 0
                yield (
                    evaluation.model,
                    split,
                    number,
                    score.name,
                    score.n_gt,
                    score.AP_50,
                    score.AP_50_95,
                    images if trained else None,
                    objects if trained else None,
                    objects / images if trained else None,
                    score.n_matched_tp,
                    score.n_correct_species,
                    score.n_correct_genus,
                )

    return _csv(SPECIES_COLUMNS, rows())


def _quoted(texts: Sequence[str]) -> list[str]:
    """Texts as CSV cells, quoted where they must be."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    cells = []
    for text in texts:
        writer.writerow([neutral(text), ""])  # a lone empty cell would be quoted
        cells.append(out.getvalue()[:-2])
        out.seek(0)
        out.truncate()
    return cells


def _floats(column: Floats) -> list[str]:
    """Finite numbers as Python spells them: the shortest text that reads as the same."""
    if not len(column):
        return []
    texts = msgspec.json.encode(column.tolist())[1:-1].decode().split(",")
    # from 0.0001 to below 10**15 the encoder's spelling is Python's, at a fifth of the time
    for row in np.flatnonzero(~((column >= 1e-4) & (column < 1e15))).tolist():
        texts[row] = repr(float(column[row]))
    return texts


def detections_csv(hits: Sequence[TruePositiveTable]) -> str:
    """A row a hit; the header stands even without one."""
    lines = [",".join(DETECTION_COLUMNS)]
    for table in hits:
        names = _quoted(table.categories.names)
        genera = _quoted(table.categories.genera)
        bands = _quoted(table.categories.distance_band)
        # what a row says of species is the same wherever the same two meet
        n = len(names)
        pair, first, row = np.unique(
            table.named * n + table.true, return_index=True, return_inverse=True
        )
        species, genus = table.correct_species[first], table.correct_genus[first]
        ends = [
            f"{names[named]},{names[true]},{genera[named]},{genera[true]},{is_species:d},"
            f"{is_genus:d},{bands[true]}"
            for named, true, is_species, is_genus in zip(
                (pair // n).tolist(), (pair % n).tolist(), species, genus, strict=True
            )
        ]
        lines += [
            f"{table.split},{image},{score},{iou},1,{ends[at]}"
            for image, score, iou, at in zip(
                table.image_id.tolist(),
                _floats(table.score),
                _floats(table.iou),
                row.tolist(),
                strict=True,
            )
        ]
    return "\n".join(lines) + "\n"
