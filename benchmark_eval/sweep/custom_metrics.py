"""Metrics of the user's own in the tables of a sweep: one function in one Python file.

The file defines ``custom_metrics(evaluation)``, which gets the typed result of one model
(:class:`benchmark_eval.results.schema.Evaluation`) and returns names and numbers, None where a
number is undefined. Each name becomes the columns ``custom_<name>_mean``, ``_std`` and so on.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem
from benchmark_eval.results.schema import Evaluation

FUNCTION = "custom_metrics"
"""What the file must define."""
PREFIX = "custom_"
"""What tells columns of the user's own from ours."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class CustomMetrics:
    """The user's function, where it stands, and the SHA-256 of that file."""

    file: str
    digest: str
    function: Callable[[Evaluation], object]

    def values(self, evaluation: Evaluation) -> dict[str, float | None]:
        """The function's numbers for one model, by column stem.

        Raises InputError where the function fails or returns anything but numbers by name.
        """
        try:
            made = self.function(evaluation)
        except Exception as fault:
            raise self._fault(evaluation.model, f"{type(fault).__name__}: {fault}") from fault
        if not isinstance(made, Mapping):
            raise self._fault(evaluation.model, f"a result of type {type(made).__name__}")
        odd = [f"{name!r}: {value!r}" for name, value in made.items() if not _is_fine(name, value)]
        if odd:
            raise self._fault(evaluation.model, "; ".join(odd))
        return {
            f"{PREFIX}{name}": None if value is None else float(value)
            for name, value in made.items()
        }

    def _fault(self, model: str, found: str) -> InputError:
        return InputError(
            [
                Problem(
                    "custom-metrics",
                    self.file,
                    found,
                    "a dict from names (letters, digits, _) to finite numbers or None",
                    record=f"model {model!r}",
                    field=FUNCTION,
                )
            ]
        )


def load_custom_metrics(path: str | Path) -> CustomMetrics:
    """Read and run the file; InputError where that fails or it has no such function."""

    def fault(found: str) -> InputError:
        wanted = f"a Python file that defines {FUNCTION}(evaluation)"
        return InputError([Problem("custom-metrics", str(path), found, wanted)])

    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise fault(error.strerror or type(error).__name__) from error
    names: dict[str, object] = {"__name__": FUNCTION, "__file__": str(path)}
    try:
        exec(compile(source, str(path), "exec"), names)
    except Exception as error:
        raise fault(f"{type(error).__name__}: {error}") from error
    function = names.get(FUNCTION)
    if not callable(function):
        raise fault(f"no function {FUNCTION}")
    return CustomMetrics(str(path), hashlib.sha256(source).hexdigest(), function)


def _is_fine(name: object, value: object) -> bool:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return False
    if value is None:
        return True
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
