"""Vega-Lite specifications of the page's charts.

Words that begin with ``@`` stand for the title of an axis or the type of a scale, which depend on
the reader's choices. Every mark has a tooltip with n and the kind of interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmark_eval.protocol import REGIMES
from benchmark_eval.report.looks import (
    BAND_LOOK,
    ERROR_FILL,
    OTHER,
    QUANTITY_LOOK,
    REGIME_LOOK,
    RELATION_LOOK,
    Look,
    architecture_looks,
)

Spec = dict[str, Any]

SHAPES = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "arrow",
    "<": "triangle-left",
}
DASHES = {"-": [1, 0], "--": [6, 3], ":": [2, 2], "-.": [6, 2, 2, 2]}
CONFIG: Spec = {
    "background": None,
    "aria": False,  # the figure around a chart describes it, and a table has its numbers
    "font": "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "#333333",
        "titleColor": "#333333",
        "gridColor": "#D9D9D9",
        "domainColor": "#888888",
        "tickColor": "#888888",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 180,
    },
    "legend": {
        "orient": "top",
        "labelFontSize": 12,
        "labelLimit": 260,
        "symbolSize": 80,
        "symbolStrokeWidth": 2,
        "title": None,
    },
    "header": {"labelFontSize": 13, "labelFontWeight": "bold", "labelLimit": 320, "title": None},
}


@dataclass(frozen=True, slots=True)
class Scale:
    """What colour, shape and dash tell: the column and the look of each of its values."""

    field: str
    looks: Sequence[Look]

    def channel(self, ranges: Sequence[Any]) -> Spec:
        """One encoding channel; channels of one column share a legend."""
        return {
            "field": self.field,
            "type": "nominal",
            "scale": {"domain": [look.label for look in self.looks], "range": list(ranges)},
            "sort": [look.label for look in self.looks],
            "title": None,
        }

    @property
    def color(self) -> Spec:
        """Colour of the line or mark."""
        return self.channel([look.color for look in self.looks])

    @property
    def shape(self) -> Spec:
        """Shape of a point."""
        return self.channel([SHAPES[look.marker] for look in self.looks])

    @property
    def dash(self) -> Spec:
        """Dash of a line."""
        return self.channel([DASHES[look.dash] for look in self.looks])


def by_architecture(architectures: Sequence[str], best: dict[str, float | None]) -> Scale:
    """Architectures; those without a colour of their own are grey."""
    known = architecture_looks(architectures, best)
    return Scale(
        "architecture",
        [known.get(name) or Look(name, OTHER, "o") for name in architectures],
    )


def _labelled(label: str, look: Look) -> Look:
    return Look(label, look.color, look.marker, look.dash)


BY_REGIME = Scale("regime", [_labelled(name, REGIME_LOOK[name]) for name in REGIMES])
BANDS = [BAND_LOOK[band] for band in BAND_LOOK]


def by_band(field: str, *more: str) -> Scale:
    """Distance bands, and what stands beside them."""
    extra = [
        _labelled(name, look) for name, look in zip(more, RELATION_LOOK.values(), strict=False)
    ]
    return Scale(field, [*BANDS, *extra])


def by_quantity(field: str, labels: dict[str, str]) -> Scale:
    """Quantities such as recall, by their keys in ``looks``."""
    return Scale(field, [_labelled(labels[key], QUANTITY_LOOK[key]) for key in labels])


TOOLTIP = (
    ("architecture", "Architecture"),
    ("regime", "Regime"),
    ("budget", "Budget"),
)
LEVEL = (
    ("value_text", "Value"),
    ("interval", "95 % interval"),
    ("n", "Seeds (n)"),
    ("fixed", "Note"),
    ("source", "Source"),
)


def tooltip(*items: tuple[str, str]) -> list[Spec]:
    """Tooltip of a mark."""
    return [{"field": name, "type": "nominal", "title": label} for name, label in items]


DIM = {"condition": {"test": "datum.dim", "value": 0.15}}


def facet(field: str, order: Sequence[str] | None = None) -> Spec:
    """One panel for each value."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": None if order is None else list(order),
    }


def ordinal(field: str, title: str, sort: str | Sequence[str]) -> Spec:
    """Equal steps in the order of another column, or of a list."""
    return {
        "field": field,
        "type": "ordinal",
        "title": title,
        "sort": {"field": sort, "op": "min"} if isinstance(sort, str) else list(sort),
        "axis": {"labelAngle": 0, "labelOverlap": "greedy", "labelSeparation": 4},
    }


def quantity(field: str, title: str, **scale: Any) -> Spec:
    """A number."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, **scale},
    }


def curves(
    x: Spec,
    scale: Scale,
    panels: Spec,
    tips: Sequence[tuple[str, str]],
    *,
    seeds: Sequence[tuple[str, str]] = (),
    independent: bool = False,
    line: str = "true",
    y: str = "@y",
    spread: bool = True,
    shared_y: bool = True,
) -> Spec:
    """Lines with points and intervals, and each seed as a small open point.

    ``seeds`` is the tooltip of the rows whose ``kind`` is "seed"; ``line`` the condition for a
    point to be on the line; ``spread`` moves points of equal x apart, if x is ordinal.
    """
    means = {"filter": "datum.kind !== 'seed'"}
    shift: Spec = {}
    if spread and x["type"] == "ordinal":
        shift["xOffset"] = {
            "field": scale.field,
            "type": "nominal",
            "sort": [look.label for look in scale.looks],
            "scale": {"paddingOuter": 0.5},
        }
        x = {**x, "scale": {"type": "band", "paddingInner": 0.3, "paddingOuter": 0.2}}
    value = quantity("value", y)
    layers: list[Spec] = [
        {
            "transform": [means, {"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 1.3},
            "encoding": {
                **shift,
                "y": {**value, "field": "low"},
                "y2": {"field": "high"},
                "color": scale.color,
                "opacity": {**DIM, "value": 0.7},
                "tooltip": tooltip(*tips),
            },
        },
        {
            "transform": [means, {"filter": line}],
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {
                **shift,
                "y": value,
                "color": scale.color,
                "strokeDash": scale.dash,
                "detail": {"field": "series", "type": "nominal"},
                "order": {"field": "order", "type": "quantitative"},
                "opacity": {"field": "line_opacity", "type": "quantitative", "scale": None},
            },
        },
        {
            "transform": [means],
            "mark": {"type": "point", "filled": True, "size": 70},
            "encoding": {
                **shift,
                "y": value,
                "color": scale.color,
                "shape": scale.shape,
                "opacity": {**DIM, "value": 1},
                "tooltip": tooltip(*tips),
            },
        },
    ]
    if seeds:
        layers.insert(
            0,
            {
                "transform": [{"filter": "datum.kind === 'seed'"}],
                "mark": {"type": "point", "size": 18, "strokeWidth": 1},
                "encoding": {
                    **shift,
                    "y": value,
                    "color": scale.color,
                    "opacity": {**DIM, "value": 0.8},
                    "tooltip": tooltip(*seeds),
                },
            },
        )
    # without the offset, panels of different budgets ignore it
    resolve: Spec = {"scale": {"xOffset": "independent"} if shift else {}}
    if independent:
        resolve["scale"]["x"] = "independent"
    if not shared_y:
        resolve["scale"]["y"] = "independent"
    return {
        "facet": panels,
        "spec": {"height": 240, "encoding": {"x": x}, "layer": layers},
        "resolve": resolve,
    }


def with_diagonal(spec: Spec) -> Spec:
    """The line of perfect calibration below the curves."""
    line = {
        "data": {"values": [{"at": 0}, {"at": 1}]},
        "mark": {"type": "line", "color": "#777777", "strokeDash": [4, 4], "strokeWidth": 1},
        "encoding": {
            "x": {"field": "at", "type": "quantitative"},
            "y": {"field": "at", "type": "quantitative"},
        },
    }
    spec["spec"]["layer"].insert(0, line)
    return spec


def with_threshold(spec: Spec) -> Spec:
    """A vertical line at the threshold of the reader's choice."""
    spec["spec"]["layer"].append(
        {
            "transform": [{"filter": "datum.at"}],
            "mark": {"type": "rule", "color": "#222222", "strokeDash": [5, 3]},
            "encoding": {"x": {"field": "confidence", "type": "quantitative", "aggregate": "min"}},
        }
    )
    return spec


def error_bars(panels: Spec, tips: Sequence[tuple[str, str]]) -> Spec:
    """One bar with its interval for each error type."""
    names = list(ERROR_FILL)
    y = {
        "field": "error_type",
        "type": "nominal",
        "title": None,
        "sort": [ERROR_FILL[name].label for name in names],
        "axis": {"labelLimit": 170},
    }
    color = {
        "field": "error_type",
        "type": "nominal",
        "legend": None,
        "scale": {
            "domain": [ERROR_FILL[name].label for name in names],
            "range": [ERROR_FILL[name].color for name in names],
        },
    }
    value = {"field": "value", "type": "quantitative", "title": "@y"}
    return {
        "facet": panels,
        "spec": {
            "height": {"step": 24},
            "encoding": {"y": y},
            "layer": [
                {
                    "mark": {"type": "bar", "stroke": "#555555", "strokeWidth": 1},
                    "encoding": {"x": value, "color": color, "tooltip": tooltip(*tips)},
                },
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "rule", "strokeWidth": 2, "color": "#222222"},
                    "encoding": {
                        "x": {**value, "field": "low"},
                        "x2": {"field": "high"},
                        "tooltip": tooltip(*tips),
                    },
                },
            ],
        },
        "resolve": {"scale": {}},
    }


def steps(scale: Scale, panels: Spec, tips: Sequence[tuple[str, str]]) -> Spec:
    """Histograms as outlines."""
    return {
        "facet": panels,
        "spec": {
            "height": 240,
            "layer": [
                {
                    "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
                    "encoding": {
                        "x": quantity("lower", "confidence (lower edge of the bin)"),
                        "y": {"field": "value", "type": "quantitative", "title": "@y"},
                        "color": scale.color,
                        "strokeDash": scale.dash,
                    },
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 40},
                    "encoding": {
                        "x": quantity("lower", "confidence (lower edge of the bin)"),
                        "y": {"field": "value", "type": "quantitative", "title": "@y"},
                        "color": scale.color,
                        "shape": scale.shape,
                        "tooltip": tooltip(*tips),
                    },
                },
            ],
        },
        "resolve": {"scale": {}},
    }


def matrix(panels: Spec, tips: Sequence[tuple[str, str]]) -> Spec:
    """True genus by predicted genus."""
    return {
        "facet": panels,
        "spec": {
            "width": {"step": 18},
            "height": {"step": 18},
            "mark": {"type": "rect", "stroke": "#DDDDDD", "strokeWidth": 0.5},
            "encoding": {
                "x": {
                    "field": "predicted",
                    "type": "nominal",
                    "title": "predicted genus",
                    "axis": {"labelAngle": -90, "labelLimit": 140},
                },
                "y": {"field": "true", "type": "nominal", "title": "true genus"},
                "color": {
                    "field": "value",
                    "type": "quantitative",
                    "title": "share of the true genus",
                    "scale": {"scheme": "cividis", "reverse": True, "domain": [0, 1]},
                },
                "tooltip": tooltip(*tips),
            },
        },
        "resolve": {"scale": {}},
    }
