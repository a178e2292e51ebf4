"""Pages of the site that are made, not written: from schemas, command line and docstrings.

MkDocs calls ``on_files`` before it reads pages; whatever is added there is a page like any other.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import benchmark_eval
from benchmark_eval.cli.main import VERBS
from benchmark_eval.results.schema import Evaluation
from benchmark_eval.sweep import tables

PACKAGE = Path(benchmark_eval.__file__).parent
API_INTRODUCTION = """Import these names from `benchmark_eval`:

```python
from benchmark_eval import run_evaluation
```

Everything else in the package may change without notice."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for name, text in made().items():
        files.append(File.generated(config, name, content=text))
    return files


def made() -> dict[str, str]:
    """Every made page or file by its name below docs/."""
    schemas = {
        "config": _schema("config"),
        "manifest": _schema("manifest"),
        "summary": msgspec.json.schema(Evaluation),
        "aggregated": tables.json_schema(),
    }
    return {
        "reference/config.md": keys_page(schemas["config"]),
        "reference/manifest.md": keys_page(schemas["manifest"]),
        "reference/commands.md": commands_page(),
        "reference/files.md": files_page(schemas),
        "contributing.md": (PACKAGE.parent / "CONTRIBUTING.md").read_text(),
        **{
            f"reference/{name}.schema.json": json.dumps(schema, indent=1, ensure_ascii=False)
            for name, schema in schemas.items()
        },
        "reference/api.md": api_page(),
    }


def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(
        (PACKAGE / f"inputs/schemas/{name}.schema.json").read_bytes()
    )
    return schema


def keys_page(schema: Mapping[str, Any]) -> str:
    """A schema's keys as a page: description, allowed values, default."""
    needed = schema.get("required", ())
    lines = [f"# {schema['title']}", "", schema["description"], ""]
    for key, rules in schema["properties"].items():
        lines += [f"## {key}", "", rules["description"], "", f"- allowed: {allowed(rules)}"]
        if "default" in rules:
            lines.append(f"- default: `{json.dumps(rules['default'])}`")
        elif needed:
            lines.append(f"- {'required' if key in needed else 'optional'}")
        lines.append("")
    return "\n".join(lines)


def allowed(rules: Mapping[str, Any]) -> str:
    """What a key may hold, in words."""
    if "enum" in rules:
        return ", ".join(f"`{value}`" for value in rules["enum"])
    if rules["type"] == "array":
        return f"a list of {allowed(rules['items'])}"
    if rules["type"] == "number":
        return f"a number above {rules['exclusiveMinimum']} and up to {rules['maximum']}"
    if rules["type"] == "boolean":
        return "`true`, `false`"
    if "pattern" in rules:
        return f"text that matches `{rules['pattern']}`"
    return "text" if rules["type"] == "string" else "a path, or `null`"


def files_page(schemas: Mapping[str, Any]) -> str:
    """Where each schema is, and the keys that its file begins with."""
    files = {
        "config": "`config/config.yaml`",
        "manifest": "a row of the manifest",
        "summary": "`<model>_summary.json`",
        "aggregated": "`aggregated.json`",
    }
    lines = ["# Files and schemas", "", "| file | JSON schema | keys |", "|---|---|---|"]
    for name, file in files.items():
        keys = ", ".join(f"`{key}`" for key in _properties(schemas[name]))
        lines.append(f"| {file} | [{name}.schema.json]({name}.schema.json) | {keys} |")
    lines += ["", "The CSV files: [Tables of a sweep](../sweep.md)."]
    return "\n".join(lines) + "\n"


def _properties(schema: Mapping[str, Any]) -> list[str]:
    """The top keys of a schema, behind its reference if it has one."""
    if "$ref" in schema:
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    return list(schema["properties"])


def commands_page() -> str:
    """The help of every verb."""
    lines = ["# Command line", ""]
    for verb in VERBS:
        command = importlib.import_module(f"benchmark_eval.cli.{verb.replace('-', '_')}").command
        context = click.Context(command, info_name=f"benchmark-eval {verb}", terminal_width=88)
        lines += [f"## {verb}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)


def api_page() -> str:
    """The public names of the package, and no others."""
    shown = "\n\n".join(f"::: benchmark_eval.{name}" for name in benchmark_eval.__all__)
    return f"# Python API\n\n{API_INTRODUCTION}\n\n{shown}\n"
