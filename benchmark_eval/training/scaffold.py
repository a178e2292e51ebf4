"""A folder ready for a sweep of one's own: config, manifest, folders, next steps."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval.core.atomic_write import atomic_folder
from benchmark_eval.core.errors import UsageError
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
    """What was made: the folder and how many models its manifest lists."""

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
    """Make a project folder: ``config/config.yaml``, ``manifest.csv``, a folder a model, README.

    The manifest has a row for each of ``architectures`` (none: no such column), ``conditions`` and
    ``seeds``; its ``train_annotations`` are blank for ``benchmark-eval subsets`` to fill in.
    UsageError where the folder is not new or empty, or ``benchmark_dir`` is no benchmark.
    """
    directory = Path(directory)
    draws = draws_of(conditions, seeds)
    check_architectures(architectures)
    if benchmark_dir is not None and not (Path(benchmark_dir) / ANNOTATIONS).is_dir():
        raise UsageError(
            f"{benchmark_dir}: found no folder {ANNOTATIONS.as_posix()}; expected the unpacked "
            "benchmark"
        )
    names = model_names(draws, architectures)
    with atomic_folder(directory) as folder:
        (folder / CONFIG).parent.mkdir()
        values = {
            "benchmark_dir": _seen_from(directory, benchmark_dir),
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


def _seen_from(directory: Path, path: str | Path | None) -> str | None:
    """A path as a config in ``directory`` names it; absolute ones stay."""
    if path is None or Path(path).is_absolute():
        return None if path is None else str(path)
    return Path(os.path.relpath(path, directory)).as_posix()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def config_text(values: dict[str, str | None]) -> str:
    """A config as YAML, every key with its comment from the schema; defaults but for ``values``."""
    import yaml

    schema = config_schema()
    parts = [textwrap.fill(schema["description"], 98, initial_indent="# ", subsequent_indent="# ")]
    for key, rules in schema["properties"].items():
        allowed = rules.get("enum") or rules.get("items", {}).get("enum")
        about = rules["description"] + (f" Out of: {', '.join(allowed)}." if allowed else "")
        comment = textwrap.fill(about, 98, initial_indent="# ", subsequent_indent="# ")
        value = values.get(key, rules["default"])
        # a list in one line, a plain value without braces
        flow = True if isinstance(value, list) else None
        entry = yaml.safe_dump(value, default_flow_style=flow).removesuffix("\n...\n").strip()
        parts.append(f"{comment}\n{key}: {entry}")
    return "\n\n".join(parts) + "\n"


def _next_steps(n_models: int, benchmark_dir: str | None, example: Draw) -> str:
    benchmark = shlex.quote(benchmark_dir) if benchmark_dir else "BENCHMARK"
    first = (
        ""
        if benchmark_dir
        else "Unpack the benchmark and name its folder in `config/config.yaml` (`benchmark_dir`).\n"
        "Below it is called BENCHMARK.\n\n"
    )
    return _README.format(n_models=n_models, benchmark=benchmark, first=first, example=example.name)


_README = """# A sweep of {n_models} models

{first}Commands start in this folder unless they say otherwise. All can be run again.

1. **Training subsets.** Drawn from the benchmark's `train.json`; fills `train_annotations` in
   `manifest.csv`, so that budgets are exact:

       benchmark-eval subsets --benchmark-dir {benchmark} \\
           --manifest manifest.csv --output-dir subsets

2. **Train** each model of `manifest.csv` on its subset (`subsets/{example}/train.json`, file names
   in `images.txt`). Boxes with `iscrowd = 1` are to be skipped, not learned as background. Labels
   for YOLO: `benchmark-eval convert subsets/{example}/train.json labels --to yolo`.

3. **Predict** on `iid_test`, `inat_test` and `semantic_ood` with a confidence threshold of 0.001
   and at least 300 boxes an image.

4. **Convert** what the framework wrote into `predictions/<model_name>/<split>_predictions.json`:

       benchmark-eval convert 'RUN/{{split}}/labels' predictions/MODEL --to benchmark \\
           --benchmark-dir {benchmark} --splits iid_test inat_test semantic_ood \\
           --names data.yaml --missing-is-empty

   (Ultralytics save_txt; `benchmark-eval convert --help` has the others.)

5. **Check** everything before it runs, all problems in one list:

       benchmark-eval check

6. **Run**, from the folder where benchmark-eval was cloned to:

       snakemake --cores all --directory THIS_FOLDER

   or from here: `snakemake --snakefile CLONE/Snakefile --cores all`, CLONE being that folder.
   Not all models are ready? Add `--config allow_missing=true`; the report lists what is missing.

7. **Read** `results/aggregated/report.md`. After a new seed or a new model: steps 4 to 7 again;
   only what changed is computed.
"""
