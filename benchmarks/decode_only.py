"""Decode prediction files with msgspec and do nothing else: the floor under any evaluator."""

import sys
from pathlib import Path

import msgspec


class Prediction(msgspec.Struct, gc=False):
    """One record of a prediction file."""

    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    score: float


decoder = msgspec.json.Decoder(list[Prediction])
for name in sys.argv[1:]:
    decoder.decode(Path(name).read_bytes())
