"""A new project folder for a sweep: config, manifest, prediction folders, next steps."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.outputs import new_folder
from benchmark_eval.inputs.config import config_schema
from benchmark_eval.protocol import ANNOTATIONS
from benchmark_eval.training.regimes import GRID, SEEDS
from benchmark_eval.training.subsets import (
    MANIFEST,
    Draw,
    check_architectures,
    draws_of,
    manifest_text,
    model_names,
)

CONFIG = Path("config") / "config.yaml"
PREDICTIONS = "predictions"
SUBSETS = "subsets"
NEXT_STEPS = "README.md"


@dataclass(frozen=True, slots=True)
class Project:
    """A new project: its folder and the number of models in its manifest."""

    folder: Path
    n_models: int


def init_project(
    directory: str | Path,
    *,
    benchmark_dir: str | Path | None = None,
    architectures: Sequence[str] = (),
    conditions: Iterable[tuple[str, str]] = GRID,
    seeds: Iterable[int] = SEEDS,
) -> Project:
    """Create a project: ``config/config.yaml``, ``manifest.csv``, README, one folder per model.

    The manifest has one row per combination of ``architectures`` (no such column if empty),
    ``conditions`` and ``seeds``; ``benchmark-eval subsets`` fills in its ``train_annotations``.
    Raises UsageError if the folder is neither new nor empty, or ``benchmark_dir`` is not a
    benchmark.
    """
    directory = Path(directory)
    draws = draws_of(conditions, seeds)
    check_architectures(architectures)
    if benchmark_dir is not None and not (Path(benchmark_dir) / ANNOTATIONS).is_dir():
        raise UsageError(
            f"{benchmark_dir}: no folder {ANNOTATIONS.as_posix()}; expected the unpacked benchmark"
        )
    names = model_names(draws, architectures)
    with new_folder(directory) as folder:
        (folder / CONFIG).parent.mkdir()
        values = {
            "benchmark_dir": _relative_to(directory, benchmark_dir),
            "predictions_dir": PREDICTIONS,
            "manifest": MANIFEST,
        }
        _write(folder / CONFIG, config_text(values))
        _write(folder / MANIFEST, manifest_text(draws, architectures, lambda _: ""))
        _write(folder / NEXT_STEPS, _next_steps(len(names), values["benchmark_dir"], draws[0]))
        (folder / SUBSETS).mkdir()
        for name in names:
            (folder / PREDICTIONS / name).mkdir(parents=True)
    return Project(directory, len(names))


def _relative_to(directory: Path, path: str | Path | None) -> str | None:
    """A path relative to ``directory``; absolute paths are unchanged."""
    if path is None or Path(path).is_absolute():
        return None if path is None else str(path)
    return Path(os.path.relpath(path, directory)).as_posix()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def config_text(values: dict[str, str | None]) -> str:
    """A config as YAML with a comment per key from the schema: ``values``, else the defaults."""
    import yaml

    schema = config_schema()
    parts = [textwrap.fill(schema["description"], 98, initial_indent="# ", subsequent_indent="# ")]
    for key, rules in schema["properties"].items():
        allowed = rules.get("enum") or rules.get("items", {}).get("enum")
        words = [value for value in allowed or () if isinstance(value, str)]
        about = rules["description"] + (f" Allowed: {', '.join(words)}." if words else "")
        comment = textwrap.fill(about, 98, initial_indent="# ", subsequent_indent="# ")
        value = values.get(key, rules["default"])
        # lists on one line
        flow = True if isinstance(value, list) else None
        entry = yaml.safe_dump(value, default_flow_style=flow).removesuffix("\n...\n").strip()
        parts.append(f"{comment}\n{key}: {entry}")
    return "\n\n".join(parts) + "\n"


def _next_steps(n_models: int, benchmark_dir: str | None, example: Draw) -> str:
    benchmark = shlex.quote(benchmark_dir) if benchmark_dir else "BENCHMARK"
    first = (
        ""
        if benchmark_dir
        else "Unpack the benchmark and set its folder in `config/config.yaml` (`benchmark_dir`).\n"
        "In the commands below, replace BENCHMARK with this folder.\n\n"
    )
    return _README.format(n_models=n_models, benchmark=benchmark, first=first, example=example.name)


_README = """# A sweep of {n_models} models

{first}Run the commands in this folder unless stated otherwise. All of them can be repeated.

1. **Draw training subsets** from the benchmark's `train.json`. This also fills in
   `train_annotations` in `manifest.csv`, so that budgets are exact:

       benchmark-eval subsets --benchmark-dir {benchmark} \\
           --manifest manifest.csv --output-dir subsets

2. **Train** each model of `manifest.csv` on its subset (`subsets/{example}/train.json`, file names
   in `images.txt`). Ignore boxes with `iscrowd = 1`; do not train on them as background. For YOLO
   labels: `benchmark-eval convert subsets/{example}/train.json labels --to yolo`.

3. **Predict** on `iid_test`, `inat_test` and `semantic_ood` with a confidence threshold of 0.001
   and at least 300 detections per image.

4. **Convert** the framework's output to `predictions/<model_name>/<split>_predictions.json`:

       benchmark-eval convert 'RUN/{{split}}/labels' predictions/MODEL --to benchmark \\
           --benchmark-dir {benchmark} --splits iid_test inat_test semantic_ood \\
           --names data.yaml --missing-is-empty

   (This is for Ultralytics save_txt; see `benchmark-eval convert --help` for other formats.)

5. **Check** all inputs; all problems are listed at once:

       benchmark-eval check

6. **Run** the workflow, on all cores of this computer:

       benchmark-eval run

   With `--dry-run` it only lists the jobs. If predictions of some models are missing, set
   `allow_missing: true` in `config/config.yaml`; the report lists these models. All options of
   Snakemake can follow after `--`, for example `benchmark-eval run -- --workflow-profile slurm`
   on a Slurm cluster.

7. **Read** `results/aggregated/report.md`. After adding a seed or a model, repeat steps 4 to 7;
   only what changed is computed.
"""
