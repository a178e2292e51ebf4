"""Outlines on pictures that are visible on any background and differ in more than their colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL import ImageDraw


class Style(NamedTuple):
    """Style of one kind of box; the dash distinguishes kinds in addition to the colour."""

    label: str
    color: str
    dash: int  # dash length in line widths, 0 for a solid line
    ink: str  # colour of text on ``color``


Point = tuple[int, int]


def outline(
    pen: ImageDraw.ImageDraw,
    corners: Sequence[int],
    style: Style,
    line: int,
    *,
    open_gaps: bool = False,
) -> None:
    """Draw a rectangle (left, top, right, bottom in px) ``line`` px wide, with a dark border.

    Between dashes is the dark border, or with ``open_gaps`` what was there before, such as another
    rectangle.
    """
    left, top, right, bottom = corners
    for a, b in (
        ((left, top), (right, top)),
        ((left, bottom), (right, bottom)),
        ((left, top), (left, bottom)),
        ((right, top), (right, bottom)),
    ):
        dashes = list(_dashes(a, b, style.dash * line))
        for border in dashes if open_gaps else [(a, b)]:
            pen.line(border, "black", line + 2)
        for dash in dashes:
            pen.line(dash, style.color, line)


def _dashes(a: Point, b: Point, dash: int) -> Iterator[tuple[Point, Point]]:
    """The dashes of a horizontal or vertical line, or the whole line if ``dash`` is 0."""
    length = max(b[0] - a[0], b[1] - a[1])
    step = (int(b[0] > a[0]), int(b[1] > a[1]))
    if not dash:
        yield a, b
        return
    for begin in range(0, length + 1, 2 * dash):
        end = min(begin + dash, length)
        yield (
            (a[0] + step[0] * begin, a[1] + step[1] * begin),
            (a[0] + step[0] * end, a[1] + step[1] * end),
        )
