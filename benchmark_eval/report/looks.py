"""The look of everything that a plot can show: one meaning per colour in all plots.

Architectures, regimes, distance bands and tiers have a palette each; within a palette, colours are
at least 26 apart (CIE 1976, 16 for architectures) with normal colour vision and with each of the
three deficiencies (Machado et al. 2009). Quantities, such as precision and recall, are grey. A
marker or a line style repeats every colour. Splits are told apart by their panels alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmark_eval.protocol import OOD_BANDS, REGIMES
from benchmark_eval.results.registry import BAND_LABEL
from benchmark_eval.sweep.target_gains import Relation

Dash = Literal["-", "--", ":", "-."]


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of a series: colour, marker and line style."""

    label: str
    color: str
    marker: str
    dash: Dash = "-"


@dataclass(frozen=True, slots=True)
class Fill:
    """The appearance of an area: colour and hatching."""

    label: str
    color: str
    hatch: str = ""


ARCHITECTURE_COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#9024FC",
    "#482400",
)
"""Okabe and Ito's colours without black and yellow, and two more."""
_ARCHITECTURE_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
MOST_ARCHITECTURES = len(ARCHITECTURE_COLORS)
"""Architectures that a plot can tell apart; no colour is used twice."""
OTHER = "#B4B4B4"
"""The colour of all other architectures."""

_DASHES: tuple[Dash, ...] = ("-", "--", "-.")
_THREE_MARKERS = ("o", "s", "^")


def _three(names: Sequence[str], labels: Sequence[str], colors: Sequence[str]) -> dict[str, Look]:
    looks = zip(names, labels, colors, _THREE_MARKERS, _DASHES, strict=True)
    return {name: Look(label, color, marker, dash) for name, label, color, marker, dash in looks}


REGIME_LOOK = _three(REGIMES, REGIMES, ("#4B0055", "#B0124B", "#7A9A01"))
BAND_LOOK = _three(
    OOD_BANDS, [BAND_LABEL[band] for band in OOD_BANDS], ("#003B46", "#2B8A8F", "#86C5C3")
)
TIER_LOOK = _three(
    ("head", "medium", "tail"),
    (
        "head (quarter of species with the most images)",
        "medium (middle half)",
        "tail (quarter with the fewest)",
    ),
    ("#5C4A00", "#A68A2E", "#D0BD78"),
)
RELATION_LOOK = _three(
    (Relation.CONGENER, Relation.SAME_TRIBE, Relation.REST),
    (
        "others: congeners of a target",
        "others: same tribe as a target",
        "others: all remaining",
    ),
    ("#222222", "#777777", "#AAAAAA"),
)
"""Non-target species by their relation to the targets."""
QUANTITY_LOOK: Mapping[str, Look] = {
    "recall": Look("detection recall", "#000000", "o"),
    "accuracy": Look("correctly identified, of detected", "#9A9A9A", "s", "--"),
    "species_recall": Look(
        "species recall (detected and correctly identified)", "#5A5A5A", "D", "-."
    ),
    "precision": Look("precision", "#9A9A9A", "s", "-"),
    "F1": Look("F1 of precision and detection recall", "#5A5A5A", "v", ":"),
}
"""What is counted: a quantity looks the same in every plot."""

WRONG_NAMES = (
    Fill("wrong name, congener", "#3F4A66"),
    Fill("wrong name, same tribe", "#7D88A6"),
    Fill("wrong name, other", "#BCC3D6"),
)
ERROR_FILL: Mapping[str, Fill] = {
    "wrong_name_congener": WRONG_NAMES[0],
    "wrong_name_same_tribe": WRONG_NAMES[1],
    "wrong_name_other": WRONG_NAMES[2],
    "poor_box": Fill("poor box", "#7A5C3E"),
    "both": Fill("poor box and wrong name", "#B89B7F"),
    "duplicate": Fill("duplicate", "#E2D3C3"),
    "background": Fill("background", "#EFEFEF", "...."),
    "missed": Fill("missed", "#FFFFFF", "/////"),
}
"""Error types, in the order of their bars."""


def architecture_looks(
    architectures: Sequence[str], best: Mapping[str, float | None]
) -> dict[str, Look]:
    """The look of each architecture that has its own colour.

    These are all of them if there are at most ``MOST_ARCHITECTURES``, otherwise those with the
    highest ``best``; without a value, or at equal ones, the first.

    Examples
    --------
    >>> list(architecture_looks(["a", "b"], {"a": 0.1, "b": 0.2}))
    ['a', 'b']
    >>> names = [f"net{at}" for at in range(9)]
    >>> "net0" in architecture_looks(names, {name: float(name != "net0") for name in names})
    False
    """

    def rank(name: str) -> float:
        value = best.get(name)
        return float("inf") if value is None else -value

    chosen = set(sorted(architectures, key=rank)[:MOST_ARCHITECTURES])
    shown = [name for name in architectures if name in chosen]
    return {
        name: Look(name, color, marker)
        for name, color, marker in zip(
            shown, ARCHITECTURE_COLORS, _ARCHITECTURE_MARKERS, strict=False
        )
    }
