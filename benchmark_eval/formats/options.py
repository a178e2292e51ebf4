"""What a reader has to be told besides the file, and where it puts the problems it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmark_eval.formats.table import Images, PixelRule
from benchmark_eval.inputs.benchmark import Categories

Outside = Literal["error", "clip", "keep"]
Frame = Literal["upright", "stored"]
"""How an image that EXIF turns lies: as it is shown, or as its pixels are stored."""


@dataclass(frozen=True, slots=True)
class ClassNames:
    """Names of a model's classes in its own order. ``source`` is where they stand, for messages."""

    names: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a source is to be understood.

    ``names`` are the classes of a source that numbers them and ``first_class`` the number of the
    first, 0 or 1; ``numbers_are_ids`` says that its numbers are the benchmark's category ids.
    ``rename`` maps class names of the source to others. ``categories`` and ``images`` are the
    benchmark's, where boxes are matched with it. ``pixels``: see ``PixelRule``. ``outside``: what
    to do with boxes that leave their image by more than a pixel. ``missing_is_empty``: an image
    without a file has no boxes. ``scores`` tells whether lines of text hold a confidence, where
    they can be read either way. ``confirm`` is asked before something inferred is taken.
    """

    names: ClassNames | None = None
    first_class: int | None = None
    numbers_are_ids: bool = False
    rename: Mapping[str, str] = field(default_factory=dict)
    categories: Categories | None = None
    images: Images | None = None
    pixels: PixelRule = "edges"
    outside: Outside = "error"
    missing_is_empty: bool = False
    scores: bool | None = None
    confirm: Callable[[str], bool] | None = None
