"""Opening image files: usual formats only, sizes without a limit, EXIF orientations."""

import struct
from pathlib import Path

import pytest
from PIL import Image
from support.image_files import ODD_ORIENTATIONS, write_huge_png, write_tiff

from benchmark_eval.core.image_files import exif_orientation, open_image, unreadable_image

PACKAGE = Path(__file__).parents[2] / "benchmark_eval"


def refused(path):
    """What is reported for a file that cannot be opened."""
    try:
        with open_image(path) as picture:
            picture.load()
    except Exception as error:
        return unreadable_image(path, error)
    raise AssertionError("opened")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP", "BMP", "GIF", "MPO"])
def test_the_usual_formats_are_opened(tmp_path, kind):
    more = {"save_all": True, "append_images": [Image.new("RGB", (8, 4))]} if kind == "MPO" else {}
    Image.new("RGB", (8, 4)).save(tmp_path / "a.jpg", kind, **more)
    with open_image(tmp_path / "a.jpg") as picture:
        assert (picture.size, picture.format) == ((8, 4), kind)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n", "a PostScript file"),
        (b"\xc5\xd0\xd3\xc6" + bytes(40), "a PostScript file"),
        (b"%PDF-1.7", "a PDF file"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG file"),
        (b"<!DOCTYPE html><title>Log in</title>", "an HTML page"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "a HEIC image"),
        (b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00", "an AVIF image"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00", "a video"),
        (b"8BPS\x00\x01", "a Photoshop file"),
        (bytes(128) + b"DICM", "a DICOM file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"", "an empty file"),
        (b"hello", "an unreadable image (of no known format)"),
    ],
)
def test_other_files_are_named_by_their_first_bytes(tmp_path, data, found):
    (tmp_path / "a.jpg").write_bytes(data)
    assert refused(tmp_path / "a.jpg")[0].startswith(found)


def test_postscript_never_reaches_ghostscript(tmp_path, monkeypatch):
    """Whatever its name says: Pillow would run Ghostscript when the image is loaded."""
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "EpsImageFile", None)
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", None)
    (tmp_path / "a.jpg").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n")
    assert refused(tmp_path / "a.jpg") == ("a PostScript file", "a file of another type that is "
                                           "named .jpg")  # fmt: skip


def test_the_size_of_a_huge_image_is_read_without_decoding(tmp_path):
    path = write_huge_png(tmp_path / "a.png", 20_000, 10_000)
    with open_image(path, decoded=False) as picture:
        assert picture.size == (20_000, 10_000)
    assert refused(path) == (
        "an image of over 178,956,970 pixels",
        "a large scan; reduce it to draw it",
    )


def test_a_device_and_a_missing_file_are_not_opened(tmp_path):
    assert refused(Path("/dev/zero"))[0] == "an unreadable file (a device, not a regular file)"
    assert refused(tmp_path / "a.jpg")[0] == "an unreadable file (No such file or directory)"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, 1), (6, 6), (8, 8), (0, None), (9, None), (-1, None), (float("inf"), None),
     (float("nan"), None), ("6", None), ((6, 6), None), (b"x", None), (6.0, 6)],
)  # fmt: skip
def test_exif_orientations(value, expected):
    picture = Image.new("RGB", (1, 1))
    picture.getexif()[0x0112] = value
    assert exif_orientation(picture) == expected


@pytest.mark.parametrize("name", ODD_ORIENTATIONS)
def test_invalid_orientations_of_a_file(tmp_path, name):
    with open_image(write_tiff(tmp_path / "a.tif", ODD_ORIENTATIONS[name])) as picture:
        assert exif_orientation(picture) is None
    with open_image(write_tiff(tmp_path / "b.tif", (3, b"\x06\x00\x00\x00"))) as picture:
        assert exif_orientation(picture) == 6


def test_damaged_exif_data_has_no_valid_orientation():
    class Damaged:
        def getexif(self):
            raise struct.error("unpack requires a buffer of 2 bytes")

    assert exif_orientation(Damaged()) is None


def test_no_other_module_opens_images():
    users = [path.name for path in PACKAGE.rglob("*.py") if "Image.open(" in path.read_text()]
    assert users == ["image_files.py"]
