"""The charts without JavaScript: the first choice of every control, as SVG."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

from benchmark_eval.report.page.charts import CONFIG, Spec
from benchmark_eval.report.page.panels import Panel
from benchmark_eval.report.page.rows import Row

WIDTH = 860
FONT = "Liberation Sans"
"""A font that vl-convert contains, so that the pictures do not depend on those of the system."""


def default_rows(panel: Panel, table: Sequence[Row]) -> tuple[list[Row], dict[str, Any], str]:
    """The rows that a panel shows before any choice, its words, and the name of its chart."""
    rows = [
        row for row in table if all(row.get(name) in values for name, values in panel.where.items())
    ]
    maps: list[dict[str, Any]] = []
    words: dict[str, Any] = {"@scale": "linear", "@x": ""}
    named: dict[str, str] = {}
    spec = ""
    for control in panel.controls:
        if control["kind"] == "filter":
            values = list(
                dict.fromkeys(v for row in rows if (v := row.get(control["field"])) is not None)
            )
            if not values:
                return [], words, spec
            first = values[-1 if control.get("last") else 0]
            value = control["default"] if control["default"] in values else first
            rows = [row for row in rows if row.get(control["field"]) == value]
            named[control["id"]] = str(value)
        elif control["kind"] == "map":
            chosen = control["options"][0]
            maps.append(chosen)
            named[control["id"]] = chosen["label"]
            spec = chosen.get("spec", spec)
            words["@x"] = chosen.get("x", words["@x"])
    words["@y"] = re.sub(r"\{(\w+)\}", lambda found: named.get(found[1], ""), panel.y)
    made = []
    for row in rows:
        new = dict(row)
        for each in maps:
            new |= {
                name: row.get(source) if source else None for name, source in each["map"].items()
            }
            new |= each["set"]
        if new.get("value") is None or (spec == "cost" and new.get("x") is None):
            continue
        new["series"] = " | ".join(str(new.get(name)) for name in panel.series)
        new["line_opacity"] = 1
        if panel.at and new[panel.at["field"]] == panel.at["default"]:
            new["at"] = 1
        made.append(new)
    return made, words, spec


def specification(panel: Panel, rows: Sequence[Row], words: dict[str, Any], name: str) -> Spec:
    """The specification of these rows, as the script makes it."""

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: filled(value) for key, value in node.items()}
        if isinstance(node, list):
            return [filled(value) for value in node]
        return words.get(node, node) if isinstance(node, str) else node

    spec: Spec = filled(panel.specs.get(name) or panel.specs[""])
    n = len({row.get(spec["facet"]["field"]) for row in rows}) or 1
    columns = min(panel.most, n)
    spec["columns"] = columns
    if "width" not in spec["spec"]:
        spec["spec"]["width"] = min(panel.widest, (WIDTH - 75) // columns - 24)
    spec["data"] = {"name": "rows", "values": list(rows)}
    spec["config"] = {
        **CONFIG,
        "font": FONT,
        "background": "white",
        "legend": {**CONFIG["legend"], "columns": 4},
    }
    return spec


def picture(panel: Panel, table: Sequence[Row]) -> str:
    """A ``data:`` address of the SVG, empty if there is nothing to show."""
    import vl_convert

    rows, words, name = default_rows(panel, table)
    if not rows:
        return ""
    spec = json.dumps(specification(panel, rows, words, name))
    svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return "data:image/svg+xml;base64," + base64.b64encode(_numbered(svg).encode()).decode()


def _numbered(svg: str) -> str:
    """The SVG with ids by their order; Vega counts them over all pictures of a process."""
    names: dict[str, str] = {}
    pattern = r"\b(?:gradient_|clip)\d+\b"
    return re.sub(pattern, lambda found: names.setdefault(found[0], f"id{len(names)}"), svg)


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
