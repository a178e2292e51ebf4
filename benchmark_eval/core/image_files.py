"""Opening image files: only the usual formats, whatever Pillow could open besides.

Pillow recognises a file by its first bytes, not by its name: a PostScript file named ``.jpg`` would
be run by Ghostscript.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_eval.core.first_bytes import SNIFFED, foreign
from benchmark_eval.core.safe_read import open_input

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp", ".gif"})
"""Suffixes of image files, in lower case."""
FORMATS = ("JPEG", "PNG", "TIFF", "WEBP", "BMP", "GIF")
"""Pillow's names of the formats that are opened; JPEG includes MPO."""
EXPECTED = "a JPEG, PNG, TIFF, WebP, BMP or GIF image"
ORIENTATION = 0x0112
"""Number of the EXIF tag."""
_DAMAGED = "a truncated or damaged file, or no image"
_FOREIGN = (
    (0, b"%!PS", "a PostScript file"),
    (0, b"\xc5\xd0\xd3\xc6", "a PostScript file"),
    (0, b"%PDF", "a PDF file"),
    (0, b"<?xml", "an XML file, such as SVG"),
    (0, b"<svg", "an SVG file"),
    (4, b"ftyphei", "a HEIC image"),
    (4, b"ftyphev", "a HEIC image"),
    (4, b"ftypmif1", "a HEIC image"),
    (4, b"ftypavif", "an AVIF image"),
    (4, b"ftyp", "a video"),
    (0, b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image"),
    (0, b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (0, b"\x00\x00\x00\x0cJXL ", "a JPEG XL image"),
    (0, b"\xff\x0a", "a JPEG XL image"),
    (0, b"8BPS", "a Photoshop file"),
    (128, b"DICM", "a DICOM file"),
)
"""Offset, first bytes and name of files that are not opened, besides those of ``foreign``."""


@contextlib.contextmanager
def open_image(path: str | Path, *, decoded: bool = True) -> Iterator[Image]:
    """Open an image file with Pillow, without decoding it yet.

    If it will not be ``decoded``, its number of pixels is not limited: 179 million are Pillow's
    limit. Raises what Pillow raises, of any type; ``unreadable_image`` describes it.
    """
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    with open_input(path) as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unusual metadata and large scans are valid
        try:
            if not decoded:
                Image.MAX_IMAGE_PIXELS = None
            picture = Image.open(stream, formats=FORMATS)
        finally:
            Image.MAX_IMAGE_PIXELS = limit
        with picture:
            yield picture


def exif_orientation(picture: Image) -> int | None:
    """The EXIF orientation, 1 to 8 (1 without one); None if it is not valid."""
    try:
        value = picture.getexif().get(ORIENTATION, 1)
        return next((number for number in range(1, 9) if number == value), None)
    except Exception:  # damaged EXIF data raises exceptions of any type
        return None


def as_rgb(picture: Image) -> Image:
    """8-bit RGB; greyscale of more bits is stretched from its darkest to its brightest pixel."""
    if picture.mode in {"I", "F"} or picture.mode.startswith("I;"):
        import numpy as np
        from PIL import Image

        grey = np.nan_to_num(np.asarray(picture, dtype=np.float64), posinf=0, neginf=0)
        low, high = float(grey.min()), float(grey.max())
        stretched = (grey - low) * (255 / (high - low)) if high > low else grey * 0
        picture = Image.fromarray(stretched.round().astype(np.uint8))
    return picture.convert("RGB")


def unreadable_image(path: str | Path, error: Exception) -> tuple[str, str]:
    """What was found in place of an image, and the likely cause, which may be unknown.

    Neither contains the path.
    """
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, Image.DecompressionBombError):
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        return f"an image of over {most:,} pixels", "a large scan; reduce it to draw it"
    if isinstance(error, OSError) and error.strerror:
        return f"an unreadable file ({error.strerror})", ""
    start = b""
    with contextlib.suppress(OSError), open_input(path) as stream:
        start = stream.read(SNIFFED)
        if not start:
            return "an empty file", "an interrupted download or copy"
    if known := foreign(start):
        return known
    for offset, magic, name in _FOREIGN:
        if start[offset:].lower().startswith(magic.lower()):
            return name, f"a file of another type that is named {Path(path).suffix}"
    what = " ".join(str(error).split())[:200] or type(error).__name__
    if isinstance(error, UnidentifiedImageError):  # its text has the path
        what = "of no known format"
    return f"an unreadable image ({what})", _DAMAGED
