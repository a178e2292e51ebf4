"""Pictures of the invented benchmark: beetles of simple shapes, one in each annotated box.

They are for trying out converters, detectors and the gallery, and are plainly artificial. The
colour of a beetle comes from its tribe, its proportions and pattern from its genus; species of a
genus differ only in shade and number of spots. Images of ``inat_test`` have a background with
clutter, all others a card. The same Pillow gives the same bytes.
"""

from __future__ import annotations

import colorsys
import functools
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from benchmark_eval.core.image_files import ORIENTATION
from benchmark_eval.synthetic.ground_truth import Floats, GroundTruth, SyntheticBenchmark
from benchmark_eval.synthetic.randomness import stream
from benchmark_eval.synthetic.taxonomy import Species, invented_species

MARK = "SYNTHETIC"
"""Written on every picture."""
QUALITY = 85
EXIF_FRACTION = 0.1
"""Fraction of the files that are stored rotated, with an EXIF orientation; annotations are for the
picture as displayed, as in the benchmark."""
_STORED = {
    3: Image.Transpose.ROTATE_180,
    6: Image.Transpose.ROTATE_90,
    8: Image.Transpose.ROTATE_270,
}
"""How to store a displayed picture for each EXIF orientation (Pillow rotates counterclockwise)."""
_CLUTTER = 90
"""Number of leaves, twigs and stones in a field photograph."""

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A filled outline, or with ``width`` an open line, of a beetle.

    ``points`` is (n, 2): across and along the beetle, from the head at 0, as fractions of its box.
    ``width`` is a fraction of the shorter side of the box.
    """

    points: Floats
    colour: Colour
    width: float = 0.0


def picture_file(benchmark: SyntheticBenchmark, split: str, row: int) -> bytes:
    """The JPEG file of one image (0-based row) of a split."""
    truth = benchmark.splits[split]
    rng = stream(benchmark.seed, "picture", split, str(row))
    picture = _drawn(benchmark.species, truth, row, rng)
    exif = Image.Exif()
    if rng.random() < EXIF_FRACTION:
        orientation = int(rng.choice(list(_STORED)))
        picture = picture.transpose(_STORED[orientation])
        exif[ORIENTATION] = orientation
    stored = io.BytesIO()
    picture.save(stored, "JPEG", quality=QUALITY, exif=exif, comment=MARK)
    return stored.getvalue()


def _drawn(
    species: Sequence[Species], truth: GroundTruth, row: int, rng: np.random.Generator
) -> Image.Image:
    """One image as displayed."""
    width, height = int(truth.width[row]), int(truth.height[row])
    rows = np.flatnonzero(truth.image == row)
    if truth.split == "inat_test":
        picture, ink = _field(width, height, rng), "#e8e0d4"
    else:
        picture, ink = _card(width, height, len(rows), rng), "#8a8178"
    pen = ImageDraw.Draw(picture)
    size = max(12, height // 40)
    font = ImageFont.load_default(size)
    pen.text((size // 2, height - 1.5 * size), MARK, ink, font)
    for one in rows.tolist():
        _beetle(pen, species[truth.species[one]], truth.box[one], rng)
    return picture


# ------------------------------------------------------------------ backgrounds


def _noise(
    width: int, height: int, cells: tuple[int, int], low: Colour, high: Colour,
    rng: np.random.Generator,
) -> Image.Image:  # fmt: skip
    """Smooth noise between two colours, with about ``cells`` spots across and down."""
    grey = rng.random((cells[1], cells[0], 1))
    colours = np.asarray(low) + grey * (np.asarray(high) - np.asarray(low))
    small = Image.fromarray(np.round(colours).astype(np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC)


def _card(width: int, height: int, n_specimens: int, rng: np.random.Generator) -> Image.Image:
    """A light card; with a grid below many specimens."""
    picture = _noise(width, height, (12, 9), (222, 216, 202), (240, 236, 226), rng)
    if n_specimens > 1:
        pen = ImageDraw.Draw(picture)
        step = max(width, height) // 16
        for x in range(step // 2, width, step):
            pen.line(((x, 0), (x, height)), "#cdd3d6", max(1, step // 120))
        for y in range(step // 2, height, step):
            pen.line(((0, y), (width, y)), "#cdd3d6", max(1, step // 120))
    return picture


def _field(width: int, height: int, rng: np.random.Generator) -> Image.Image:
    """Bark with leaves, twigs and stones."""
    picture = _noise(width, height, (40, 7), (74, 56, 40), (140, 112, 84), rng)
    pen = ImageDraw.Draw(picture)
    size = min(width, height)
    for _ in range(_CLUTTER):
        x, y = rng.random() * width, rng.random() * height
        angle, kind = rng.random() * np.pi, rng.random()
        if kind < 0.35:  # a twig
            reach = size * rng.uniform(0.1, 0.4)
            end = (x + reach * np.cos(angle), y + reach * np.sin(angle))
            pen.line(((x, y), end), _shade(0.08, 0.35, rng.uniform(0.2, 0.45)), max(2, size // 120))
            continue
        leaf = kind < 0.75
        long = size * (rng.uniform(0.04, 0.14) if leaf else rng.uniform(0.01, 0.04))
        slim = rng.uniform(0.3, 0.5) if leaf else rng.uniform(0.7, 1.0)
        turn = np.arange(24) * (2 * np.pi / 24)
        along, across = long * np.cos(turn), long * slim * np.sin(turn)
        outline = np.stack(
            [
                x + along * np.cos(angle) - across * np.sin(angle),
                y + along * np.sin(angle) + across * np.cos(angle),
            ],
            axis=1,
        )
        hue, strength = (rng.uniform(0.18, 0.36), 0.45) if leaf else (0.08, 0.1)
        pen.polygon(_pairs(outline), _shade(hue, strength, rng.uniform(0.3, 0.6)))
    return picture


# ------------------------------------------------------------------ beetles


def _beetle(
    pen: ImageDraw.ImageDraw, species: Species, box: Floats, rng: np.random.Generator
) -> None:
    """Draw a beetle that fills its box, the head at any end of the longer side."""
    x, y, w, h = box.tolist()
    lying, backwards = w > h, bool(rng.random() < 0.5)
    width = min(w, h)
    for part in _parts(species):
        across, along = part.points.T
        along = 1.0 - along if backwards else along
        u, v = (along, across) if lying else (across, along)
        points = _pairs(np.stack([x + u * w, y + v * h], axis=1))
        if part.width:
            pen.line(points, part.colour, max(1, round(part.width * width)))
        else:
            pen.polygon(points, part.colour)


@functools.cache
def _parts(species: Species) -> tuple[Part, ...]:
    """The parts of a beetle of this species, from back to front."""
    genus = stream(0, "genus", species.genus)
    place, n_species = _place(species)
    hue = (_hues()[species.tribe] + genus.uniform(-0.02, 0.02)) % 1.0
    strength = genus.uniform(0.4, 0.75)
    light = genus.uniform(0.32, 0.48) + 0.16 * ((place + 0.5) / n_species - 0.5)
    waist = genus.uniform(0.34, 0.5)
    broad, broad_front = genus.uniform(0.27, 0.38), genus.uniform(0.2, 0.3)
    square = genus.uniform(1.8, 4.0)
    pattern = int(genus.integers(3))
    n_spots = 1 + place % 4
    return tuple(
        _assembled(hue, strength, light, waist, broad, broad_front, square, pattern, n_spots)
    )


@functools.cache
def _hues() -> dict[str, float]:
    """The hue of each tribe, spread over the circle; neighbours in the alphabet differ much."""
    tribes = sorted({one.tribe for one in invented_species()})
    return {tribe: number * 0.382 % 1.0 for number, tribe in enumerate(tribes)}


@functools.cache
def _place(species: Species) -> tuple[int, int]:
    """Position of a species in its genus, and number of species of the genus."""
    congeners = [one.name for one in invented_species() if one.genus == species.genus]
    return congeners.index(species.name), len(congeners)


def _assembled(
    hue: float,
    strength: float,
    light: float,
    waist: float,
    broad: float,
    broad_front: float,
    square: float,
    pattern: int,
    n_spots: int,
) -> Iterator[Part]:
    dark = _shade(hue, strength / 2, light * 0.35)
    for side in (-1, 1):
        for start, knee, end in ((0.3, 0.24, 0.13), (0.5, 0.5, 0.52), (0.68, 0.76, 0.9)):
            leg = [(0.5, start), (0.5 + side * 0.4, knee), (0.5 + side * 0.5, end)]
            yield Part(np.array(leg), dark, 0.035)
        yield Part(np.array([(0.5, 0.1), (0.5 + side * 0.18, 0.0)]), dark, 0.025)
    yield Part(_oval(0.5, 0.11, broad_front * 0.6, 0.09, 2.0), dark)
    front, back = _shade(hue, strength, light * 0.75), _shade(hue, strength, light)
    middle = (waist - 0.02 + 1.0) / 2
    yield Part(_oval(0.5, middle, broad, 1.0 - middle, square), back)
    yield Part(_oval(0.5, (0.12 + waist) / 2, broad_front, (waist - 0.12) / 2, 2.4), front)
    if pattern == 0:  # stripes
        for place in (-0.55, 0.55):
            x = 0.5 + place * broad
            yield Part(np.array([(x, waist + 0.08), (x, 0.88)]), dark, 0.03)
    elif pattern == 1:  # a band
        yield Part(_oval(0.5, middle, broad * 0.95, 0.05, 4.0), dark)
    pale = _shade(hue, strength * 0.6, min(0.9, light + 0.3))
    for spot in range(n_spots):
        v = waist + 0.1 + 0.42 * (spot + 0.5) / n_spots
        for side in (-1, 1):
            yield Part(_oval(0.5 + side * broad * 0.4, v, 0.05, 0.03, 2.0), pale)
    yield Part(np.array([(0.5, waist), (0.5, 0.99)]), dark, 0.02)
    yield Part(_oval(0.5 - broad_front * 0.3, waist * 0.6, 0.04, 0.05, 2.0), pale)


def _oval(x: float, y: float, half_width: float, half_length: float, power: float) -> Floats:
    """A superellipse; ``power`` 2 is an ellipse, larger ones are more square."""
    turn = np.arange(40) * (2 * np.pi / 40)
    cos, sin = np.cos(turn), np.sin(turn)
    across = np.sign(cos) * np.abs(cos) ** (2 / power)
    along = np.sign(sin) * np.abs(sin) ** (2 / power)
    return np.stack([x + half_width * across, y + half_length * along], axis=1)


def _shade(hue: float, strength: float, light: float) -> Colour:
    red, green, blue = colorsys.hls_to_rgb(hue, light, strength)
    return round(255 * red), round(255 * green), round(255 * blue)


def _pairs(points: Floats) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points.tolist()]
