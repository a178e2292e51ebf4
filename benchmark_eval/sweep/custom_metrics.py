"""Custom metrics in the tables of a sweep, defined by one function in a Python file.

The file defines ``custom_metrics(evaluation)``, which gets the typed result of one model
(:class:`benchmark_eval.results.schema.Evaluation`) and returns a dict of names and numbers, None
for an undefined number. Each name becomes the columns ``custom_<name>_mean``, ``_std`` and so on.
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
from benchmark_eval.core.safe_read import read_input, unreadable
from benchmark_eval.results.schema import Evaluation

FUNCTION = "custom_metrics"
"""The function that the file must define."""
PREFIX = "custom_"
"""Prefix of the columns of custom metrics."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class CustomMetrics:
    """The user's function, its file and the SHA-256 of that file."""

    file: str
    digest: str
    function: Callable[[Evaluation], object]

    def values(self, evaluation: Evaluation) -> dict[str, float | None]:
        """The function's numbers for one model, by column stem.

        Raises InputError if the function fails or returns anything but names and numbers.
        """
        try:
            made = self.function(evaluation)
        except Exception as error:
            raise self._invalid(evaluation.model, f"{type(error).__name__}: {error}") from error
        if not isinstance(made, Mapping):
            raise self._invalid(evaluation.model, f"a result of type {type(made).__name__}")
        odd = [f"{name!r}: {value!r}" for name, value in made.items() if not _is_valid(name, value)]
        if odd:
            raise self._invalid(evaluation.model, "; ".join(odd))
        return {
            f"{PREFIX}{name}": None if value is None else float(value)
            for name, value in made.items()
        }

    def _invalid(self, model: str, found: str) -> InputError:
        return InputError(
            [
                Problem(
                    "custom-metrics",
                    self.file,
                    found,
                    "a dict of names (letters, digits, _) and finite numbers or None",
                    record=f"model {model!r}",
                    field=FUNCTION,
                )
            ]
        )


def load_custom_metrics(path: str | Path) -> CustomMetrics:
    """Read and run the file; InputError if that fails or the function is missing."""
    expected = f"a Python file that defines {FUNCTION}(evaluation)"

    def invalid(found: str) -> InputError:
        return InputError([Problem("custom-metrics", str(path), found, expected)])

    try:
        source = read_input(path)
    except OSError as error:
        raise InputError([unreadable(path, error, expected)]) from error
    names: dict[str, object] = {"__name__": FUNCTION, "__file__": str(path)}
    try:
        exec(compile(source, str(path), "exec"), names)
    except Exception as error:
        raise invalid(f"{type(error).__name__}: {error}") from error
    function = names.get(FUNCTION)
    if not callable(function):
        raise invalid(f"no function {FUNCTION}")
    return CustomMetrics(str(path), hashlib.sha256(source).hexdigest(), function)


def _is_valid(name: object, value: object) -> bool:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return False
    if value is None:
        return True
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
