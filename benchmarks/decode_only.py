"""Only decode files with msgspec: a lower bound for any evaluator or check."""

import sys
from pathlib import Path

import msgspec


class Prediction(msgspec.Struct, gc=False):
    """One record of a prediction file."""

    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    score: float


class Image(msgspec.Struct):
    """One image record of an annotation file."""

    id: int
    width: float
    height: float


class Annotation(msgspec.Struct):
    """One annotation record."""

    id: int
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    area: float
    iscrowd: int


class Category(msgspec.Struct):
    """One category record."""

    id: int
    name: str


class Coco(msgspec.Struct):
    """An annotation file."""

    images: list[Image]
    annotations: list[Annotation]
    categories: list[Category]


decoder = msgspec.json.Decoder(list[Prediction])
for name in sys.argv[1:]:
    if name == "--annotations":  # annotation files follow
        decoder = msgspec.json.Decoder(Coco)
        continue
    decoder.decode(Path(name).read_bytes())
