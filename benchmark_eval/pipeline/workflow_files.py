"""The workflow that comes with this package, and the Snakemake command that runs it.

A wheel contains the workflow in the folder ``bundled`` of the package (see pyproject.toml). An
editable installation uses the files of its checkout, beside the package.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmark_eval.core.code_digest import BUNDLED, package_dir
from benchmark_eval.core.errors import UsageError

_SNAKEFILE = re.compile(r"-s.*|--(sn|sna|snak|snake|snakef|snakefi|snakefil|snakefile)(=.*)?")
"""The option that selects a workflow; Snakemake accepts unambiguous abbreviations."""
_CORES = re.compile(r"-[cj].*|--(cores|jobs|profile|workflow-profile)(=.*)?")
"""Options that set the number of cores or jobs, or may do so in a profile."""
_PROFILE = Path("profiles/default")
"""Snakemake uses this folder by default, here or else beside the Snakefile."""


def workflow_dir() -> Path:
    """The folder of the Snakefile that belongs to the imported package.

    It also contains ``profiles/`` and ``schemas/``; ``config/`` is beside it. Raises UsageError if
    the installation is incomplete.
    """
    package = package_dir()
    for folder in (package / BUNDLED / "workflow", package.parent / "workflow"):
        if (folder / "Snakefile").is_file():
            return folder
    raise UsageError(
        f"{package}: found no workflow; expected {BUNDLED}/workflow/Snakefile in it or "
        "workflow/Snakefile beside it (incomplete installation; install benchmark-eval again)"
    )


def snakemake_command(
    options: Sequence[str], *, configfiles: Sequence[str] = (), cores: str | None = None
) -> list[str]:
    """The command that runs the workflow of this package in the current folder.

    ``options`` are passed to Snakemake as they are. If neither ``cores``, nor ``options``, nor a
    profile in the current folder can set the number of cores, all are used. Raises UsageError if
    ``options`` select another workflow.
    """
    # what follows -- are targets
    own = options[: options.index("--")] if "--" in options else options
    clash = next((option for option in own if _SNAKEFILE.fullmatch(option)), None)
    if clash is not None:
        raise UsageError(
            f"found {clash}, which looks like an option; expected none that selects a workflow, "
            "because benchmark-eval run uses the workflow of this package. To run another one: "
            "snakemake --snakefile FILE"
        )
    if cores is None and not any(map(_CORES.fullmatch, own)) and not _PROFILE.exists():
        cores = "all"
    # -P: files in the current folder must not take the place of installed packages
    return [
        *(sys.executable, "-P", "-m", "snakemake"),
        *(("--configfile", *configfiles) if configfiles else ()),
        *(("--cores", cores) if cores is not None else ()),
        *("--snakefile", str(workflow_dir() / "Snakefile")),
        *options,
    ]
