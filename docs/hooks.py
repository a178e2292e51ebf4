"""Generates pages of the site from the schemas, the command line and the docstrings.

MkDocs calls ``on_files`` before it reads the pages.
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
from benchmark_eval.cli.main import COMMANDS
from benchmark_eval.results.schema import Evaluation
from benchmark_eval.sweep import tables

PACKAGE = Path(benchmark_eval.__file__).parent
API_INTRODUCTION = """Import these names from `benchmark_eval`:

```python
from benchmark_eval import run_evaluation
```

Everything else in the package may change without notice."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    return files


def generated() -> dict[str, str]:
    """Every generated page or file, by its name below docs/."""
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
        "contributing.md": contributing_page(),
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


def contributing_page() -> str:
    """CONTRIBUTING.md, with its links as seen from docs/."""
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.replace("](docs/", "](")


def keys_page(schema: Mapping[str, Any]) -> str:
    """A page with the description, allowed values and default of each key of a schema."""
    required = schema.get("required", ())
    lines = [f"# {schema['title']}", "", schema["description"], ""]
    for key, rules in schema["properties"].items():
        lines += [f"## {key}", "", rules["description"], "", f"- allowed: {allowed(rules)}"]
        if "default" in rules:
            lines.append(f"- default: `{json.dumps(rules['default'])}`")
        elif required:
            lines.append(f"- {'required' if key in required else 'optional'}")
        lines.append("")
    return "\n".join(lines)


def allowed(rules: Mapping[str, Any]) -> str:
    """The allowed values of a key, in words."""
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
    """A page with a link to each schema and the top-level keys of its file."""
    files = {
        "config": "`config/config.yaml`",
        "manifest": "one row of the manifest",
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
    """The top-level keys of a schema, with a ``$ref`` resolved."""
    if "$ref" in schema:
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    return list(schema["properties"])


def commands_page() -> str:
    """A page with the help of every command."""
    lines = ["# Command line", ""]
    for name in COMMANDS:
        command = importlib.import_module(f"benchmark_eval.cli.{name.replace('-', '_')}").command
        context = click.Context(command, info_name=f"benchmark-eval {name}", terminal_width=88)
        lines += [f"## {name}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)


def api_page() -> str:
    """A page with the public names of the package."""
    shown = "\n\n".join(f"::: benchmark_eval.{name}" for name in benchmark_eval.__all__)
    return f"# Python API\n\n{API_INTRODUCTION}\n\n{shown}\n"
