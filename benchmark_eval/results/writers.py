"""Writes the files of one model; ``benchmark_eval.results.schema`` defines their content.

Undefined values are ``null`` in JSON and empty cells in CSV. Numbers have as many digits as are
needed to read back the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from benchmark_eval.core.csv_text import csv_text
from benchmark_eval.core.outputs import Input, Outputs, claim
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.results.detections_csv import ModelTables, detections_csv
from benchmark_eval.results.evidence import SUFFIX as EVIDENCE
from benchmark_eval.results.model_report import render_text
from benchmark_eval.results.schema import Evaluation, to_dict

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
# blocks with more than one level; summary.csv flattens them to dotted names
_NESTED = ("ood_by_band", "density", "operating_point", "errors", "reliability")
_SUFFIXES = (
    "summary.json",
    "summary.csv",
    "per_species.csv",
    "report.txt",
    "detections.csv",
    EVIDENCE,
)


def model_files(output_dir: str | Path, model: str) -> dict[str, Path]:
    """Paths of the files of a model, by suffix (``"summary.json"``, ...)."""
    return {suffix: Path(output_dir) / f"{model}_{suffix}" for suffix in _SUFFIXES}


def claim_model_files(
    output_dir: str | Path,
    model: str,
    *,
    inputs: Iterable[Input] = (),
    force: bool = False,
    declared: bool = False,
) -> AbstractContextManager[Outputs]:
    """Claim the files of a model (``core.outputs.claim``), for ``write_evaluation``."""
    names = [path.name for path in model_files(output_dir, model).values()]
    return claim(output_dir, names, inputs=inputs, force=force, declared=declared)


def write_evaluation(
    evaluation: Evaluation,
    benchmark: Benchmark,
    tables: ModelTables,
    output: Outputs,
) -> str:
    """Write the files of a model and return its report.

    Writes all files or none (``Outputs.publish``), so an existing summary.json always belongs to
    the files next to it. If the tables hold no detections, no detections.csv is written, and an old
    one is removed.
    """
    report = render_text(evaluation)
    texts = {
        "summary.csv": summary_csv(evaluation),
        "per_species.csv": per_species_csv(evaluation, benchmark),
        "report.txt": report,
    }
    if tables.detections is not None:
        texts["detections.csv"] = detections_csv(tables.detections)
    paths = model_files(output.folder, evaluation.model)
    for suffix, text in texts.items():
        output.write(paths[suffix].name, text.encode())
    output.write(paths[EVIDENCE].name, tables.evidence)
    seal = paths["summary.json"].name
    output.write(seal, summary_json(evaluation))
    output.publish(seal)
    return report


def summary_json(evaluation: Evaluation) -> bytes:
    """The evaluation as indented JSON with a trailing line feed."""
    return msgspec.json.format(msgspec.json.encode(to_dict(evaluation)), indent=1) + b"\n"


def _numbers(tree: dict[str, Any], *, deep: bool, stem: str = "") -> Iterator[tuple[str, Any]]:
    """Scalars of a block by key; with ``deep`` also nested ones under dotted names."""
    for key, value in tree.items():
        if value is None or isinstance(value, bool | int | float):
            yield f"{stem}{key}", value
        elif deep and isinstance(value, dict) and key != "curve":
            yield from _numbers(value, deep=True, stem=f"{stem}{key}.")


def summary_rows(evaluation: Evaluation) -> Iterator[tuple[str, str, str, str, Any]]:
    """All scalars of a model; those of bands, strata and operating points under dotted names."""
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
    return csv_text(SUMMARY_COLUMNS, summary_rows(evaluation))


def per_species_csv(evaluation: Evaluation, benchmark: Benchmark) -> str:
    """One row per split and category that the split lists."""
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

    return csv_text(SPECIES_COLUMNS, rows())
