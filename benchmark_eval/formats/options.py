"""Options that a reader needs in addition to the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmark_eval.formats.table import Images, PixelRule
from benchmark_eval.inputs.benchmark import Categories

Outside = Literal["error", "clip", "keep"]
Frame = Literal["upright", "stored"]
"""Frame of an image with an EXIF orientation: as displayed, or as its pixels are stored."""


NamesKind = Literal["list", "mapping", "id2label", "coco"]
"""Kind of a names file: a list, a mapping from numbers (data.yaml), that of a Hugging Face config,
COCO categories."""
ImageNumbers = Literal["ids", "names"]
"""Meaning of a number in place of an image: its id, or the number in its file name."""


@dataclass(frozen=True, slots=True)
class ClassNames:
    """Class names in the model's own order. ``source`` is the file they come from, for messages.

    ``numbers`` are the class numbers that a file of that ``kind`` states, ascending; None for a
    list.
    """

    names: tuple[str, ...]
    source: str
    numbers: tuple[int, ...] | None = None
    kind: NamesKind = "list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to interpret a source.

    ``names`` are the class names of a source with class numbers, ``first_class`` is the number of
    the first class (0 or 1). With ``numbers_are_ids`` the class numbers are those that the names
    file states or, without names, the benchmark's category ids; with ``class_positions`` they are
    positions in the list of names. ``image_numbers`` is the meaning of a number in place of an
    image. ``guessed`` is true if the format of the source was guessed. ``rename`` maps class names
    of the source to others. ``categories`` and ``images`` are those of the benchmark, if boxes are
    matched with it. ``pixels``: see ``PixelRule``. ``outside``: how to handle boxes that extend
    more than one pixel beyond their image. ``missing_is_empty``: an image without a file has no
    boxes. ``scores``: whether lines of text contain a confidence, if they are ambiguous.
    ``confirm`` is called with a statement before an inferred value is used.
    """

    names: ClassNames | None = None
    first_class: int | None = None
    numbers_are_ids: bool = False
    class_positions: bool = False
    image_numbers: ImageNumbers | None = None
    guessed: bool = False
    rename: Mapping[str, str] = field(default_factory=dict)
    categories: Categories | None = None
    images: Images | None = None
    pixels: PixelRule = "edges"
    outside: Outside = "error"
    missing_is_empty: bool = False
    scores: bool | None = None
    confirm: Callable[[str], bool] | None = None
