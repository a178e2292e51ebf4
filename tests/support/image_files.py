"""Image files that Pillow does not write: huge ones, and ones with a strange EXIF orientation."""

import struct
import zlib

ODD_ORIENTATIONS = {
    "float inf": (11, struct.pack("<f", float("inf"))),
    "float nan": (11, struct.pack("<f", float("nan"))),
    "double inf": (12, struct.pack("<d", float("inf"))),
    "9": (3, struct.pack("<HH", 9, 0)),
    "text": (2, b"abc\x00"),
}
"""TIFF type and bytes of orientations that are not 1 to 8."""


def write_huge_png(path, width, height):
    """A PNG of this size without pixels, which no decoder may try to hold in memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", b"") + _chunk(b"IEND", b"")
    )
    return path


def _chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write_tiff(path, orientation):
    """A grey TIFF of 20 x 12 px; ``orientation`` is the type and the bytes of its EXIF tag."""
    kind, data = orientation
    extra = 8 + 2 + 9 * 12 + 4
    tags = [
        (256, 4, struct.pack("<I", 20)),
        (257, 4, struct.pack("<I", 12)),
        (258, 3, struct.pack("<HH", 8, 0)),
        (262, 3, struct.pack("<HH", 1, 0)),
        (273, 4, struct.pack("<I", extra + 8)),
        (274, kind, data if len(data) == 4 else struct.pack("<I", extra)),
        (277, 3, struct.pack("<HH", 1, 0)),
        (278, 4, struct.pack("<I", 12)),
        (279, 4, struct.pack("<I", 240)),
    ]
    entries = b"".join(struct.pack("<HHI", tag, type_, 1) + value for tag, type_, value in tags)
    head = b"II*\x00" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + data.ljust(8, b"\x00") + bytes(240))
    return path
