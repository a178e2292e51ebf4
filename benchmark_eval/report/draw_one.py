"""Draws a single figure into a file that the user names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.fonts import lacking_note
from benchmark_eval.core.outputs import Input, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
_LOG = logging.getLogger(__name__)


def plot_format(file: Path) -> str:
    """The format of a plot by the suffix of its file; UsageError for others."""
    kind = file.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise UsageError(
            f"{file}: found the suffix {file.suffix!r}; expected "
            f"{', '.join(f'.{name}' for name in FORMATS)}"
        )
    return kind


def draw_to(
    file: Path, paint: Callable[[], Figure], *, inputs: Iterable[Input] = (), force: bool = False
) -> None:
    """Draw one figure into a file whose suffix is its format.

    ``paint`` is called in the style of this package. ``core.outputs.claim`` describes ``inputs``
    and ``force``.
    """
    from benchmark_eval.report import figures

    kind = plot_format(file)
    lacking: set[str] = set()
    with claim(file.parent, [file.name], inputs=inputs, force=force) as output:
        with figures.house_style():
            figures.save(paint(), output.path("figure"), [kind], lacking)
        output.path(f"figure.{kind}").replace(output.path(file.name))
        output.publish()
    if lacking:
        _LOG.warning("%s: %s", file.name, lacking_note(lacking))
