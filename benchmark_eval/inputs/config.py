"""The configuration of a sweep: from a YAML file or ``--config`` to typed, checked options.

``schemas/config.schema.json`` defines keys, defaults and allowed values. Text from the command line
(``allow_missing=false``, ``splits=iid_test,inat_test``) is first converted to the type in the
schema. All problems of a configuration are reported together.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import decoded, read_input, unreadable
from benchmark_eval.core.user_paths import URL_CAUSE, expand_home, is_url
from benchmark_eval.core.yaml_text import RepeatedKeyError, parse_yaml

RENAMED = {"own_metrics": "custom_metrics"}
"""Keys of earlier versions and their new names; the old keys are rejected with a hint."""
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False}
_DETECTIONS: dict[object, str] = {True: "hits", False: "none"}
_MAX_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A valid configuration. Relative paths start at the working directory, ``~`` is expanded.

    ``splits`` and ``plot_formats`` are in the order of the schema.
    """

    benchmark_dir: Path | None
    predictions_dir: Path | None
    manifest: Path | None
    splits: tuple[str, ...]
    iou: float
    engine: str
    on_invalid: str
    operating_confidence: float | None
    allow_missing: bool
    detections: str
    custom_metrics: Path | None
    price_per_image: float | None
    price_per_specimen: float | None
    plot_formats: tuple[str, ...]
    page: bool

    def unset(self) -> list[str]:
        """The keys that a sweep requires and that are not set."""
        return [key for key in ("benchmark_dir", "manifest") if getattr(self, key) is None]


@functools.cache
def config_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a configuration."""
    text = resources.files(__package__).joinpath("schemas/config.schema.json").read_text()
    schema: dict[str, Any] = json.loads(text)
    return schema


def normalise_config(raw: object, *, source: str = "config") -> Config:
    """Apply types and defaults, and check every option against the schema.

    ``source`` names the configuration in messages. The InputError lists all problems: unknown keys
    (with the most similar known one), wrong types, values that are not allowed.
    """
    problems = Problems(source)
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        raise InputError(
            [Problem("config-shape", source, _show(raw), "a mapping of keys to values")]
        )
    properties: dict[str, dict[str, Any]] = config_schema()["properties"]
    values = {key: rules["default"] for key, rules in properties.items()}
    for key, value in raw.items():
        if key not in properties:
            near = difflib.get_close_matches(str(key), properties, n=1)
            cause = f"did you mean {near[0]!r}?" if near else ""
            if key in RENAMED:
                cause = f"renamed to {RENAMED[str(key)]!r}"
            problems.add(
                "config-key",
                f"unknown key {_show(key)}",
                f"one of {', '.join(properties)}",
                cause=cause,
            )
            continue
        values[key] = _coerced(value, properties[key])
        if not _fits(values[key], properties[key]):
            problems.add(
                "config-value",
                _show(value),
                _expected(properties[key]),
                field=key,
                cause=_cause(value, properties[key]),
            )
    if problems:
        raise InputError(problems.all())
    for key in ("splits", "plot_formats"):
        values[key] = tuple(v for v in properties[key]["items"]["enum"] if v in values[key])
    for key in ("benchmark_dir", "predictions_dir", "manifest", "custom_metrics"):
        values[key] = None if values[key] is None else Path(expand_home(values[key]))
    values["iou"] = float(values["iou"])
    for key in ("operating_confidence", "price_per_image", "price_per_specimen"):
        values[key] = None if values[key] is None else float(values[key])
    values["detections"] = _DETECTIONS.get(values["detections"], values["detections"])
    return Config(**values)


def read_config(path: str | Path) -> Config:
    """Read a YAML configuration file; raises InputError if it is not readable or not valid."""
    return normalise_config(read_yaml(path), source=str(path))


def require_keys(path: str | Path) -> None:
    """Raise ``InputError`` unless the file is a YAML mapping, whatever its keys."""
    if not isinstance(read_yaml(path), Mapping):
        expected = "keys with values, as in config/config.yaml of the workflow"
        raise InputError([Problem("not-yaml", str(path), "no keys at the top level", expected)])


def require_unique_keys(paths: Iterable[str | Path]) -> None:
    """Raise ``InputError`` if a key occurs twice in one of the config files that Snakemake loaded.

    Snakemake passes on only the last value of such a key. Files that this package cannot read are
    left to Snakemake.
    """
    found: list[Problem] = []
    for path in paths:
        try:
            read_yaml(path)
        except InputError as error:
            found += [problem for problem in error.problems if problem.kind == "duplicate-key"]
    if found:
        raise InputError(found)


def read_yaml(path: str | Path) -> object:
    """The content of a YAML file; raises InputError if it is unreadable or not YAML."""
    problems = Problems(str(path))
    try:
        text = decoded(read_input(path), problems, "a YAML file in UTF-8")
        if text is not None:
            return parse_yaml(text)
    except OSError as error:
        problems.extend([unreadable(path, error, "a YAML file")])
    except RepeatedKeyError as error:
        problems.add(
            "duplicate-key",
            str(error),
            "each key once",
            cause="the last value would silently replace the others",
        )
    except ValueError as error:
        problems.add("not-yaml", str(error), "a YAML file")
    raise InputError(problems.all())


def _coerced(value: object, rules: Mapping[str, Any]) -> object:
    """Convert text from the command line to the type in the schema; other values are unchanged."""
    kind = rules.get("type")
    if kind == "array" and isinstance(value, str):
        inner = value.strip()
        if inner.startswith("[") and inner.endswith("]"):
            inner = inner[1:-1]
        return [part.strip().strip("'\"") for part in inner.split(",")]
    if isinstance(value, str):
        text = value.strip()
        if kind == "boolean" or True in rules.get("enum", ()):
            return _BOOLEANS.get(text.lower(), value)
        if kind in ("number", ["number", "null"]) and _NUMBER.fullmatch(text):
            return float(text)
        if kind == ["number", "null"] and text.lower() == "null":
            return None
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _fits(value: object, rules: Mapping[str, Any]) -> bool:
    """Whether a value fits the schema and is neither a non-finite number nor blank text."""
    import jsonschema

    unusable = (isinstance(value, float) and not math.isfinite(value)) or (
        isinstance(value, str) and (not value.strip() or "\0" in value)
    )
    return not unusable and bool(jsonschema.Draft202012Validator(rules).is_valid(value))


def _range(rules: Mapping[str, Any]) -> str:
    if "maximum" not in rules:
        return f"of at least {rules['minimum']}"
    return f"in [{rules['minimum']}, {rules['maximum']}]"


def _expected(rules: Mapping[str, Any]) -> str:
    """What the schema allows, for messages."""
    if "enum" in rules:
        allowed = (v if isinstance(v, str) else json.dumps(v) for v in rules["enum"])
        return f"one of {', '.join(allowed)}"
    if rules["type"] == "array":
        return f"a list of {', '.join(rules['items']['enum'])}, each at most once"
    if rules["type"] == "boolean":
        return "true or false"
    if rules["type"] == ["number", "null"]:
        return f"a number {_range(rules)}, or null"
    if rules["type"] == "number":
        return f"a number in ({rules['exclusiveMinimum']}, {rules['maximum']}]"
    return "a path"


def _cause(value: object, rules: Mapping[str, Any]) -> str:
    is_path = "string" in (rules.get("type") or ())
    if is_path and isinstance(value, (int, float)):
        return (
            "an unquoted number or true/false is not text in YAML: quote it, or write ./ before it"
        )
    if is_path and isinstance(value, str) and is_url(value):
        return URL_CAUSE
    if value is None:
        return "a key without a value: remove it to use the default"
    return ""


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
