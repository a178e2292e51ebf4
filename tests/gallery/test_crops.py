"""Crops show the right part of an image, whatever its size, format and EXIF orientation."""

import numpy as np
import pytest
from PIL import Image
from support.image_files import write_huge_png

from benchmark_eval.core.drawing import Style, outline
from benchmark_eval.core.image_files import ORIENTATION
from benchmark_eval.formats.images import ImageFiles, annotated_frame
from benchmark_eval.gallery.cases import Box
from benchmark_eval.gallery.pictures import (
    CROP_SIDE,
    STYLES,
    WHOLE_SIDE,
    Crop,
    Sheet,
    draw_sheet,
    draw_sheets,
    region,
)

PATCH = (60.0, 40.0, 80.0, 60.0)
"""x, y, w, h of a white patch on a grey picture of 400 x 240 px."""
SIZE = (400, 240)


def grey(size=SIZE, patch=PATCH, mode="RGB"):
    pixels = np.full((size[1], size[0]), 90, np.uint8)
    x, y, w, h = map(int, patch)
    pixels[y : y + h, x : x + w] = 255
    return Image.fromarray(pixels).convert(mode)


BOX = Box("detection", PATCH)


def sheet(path, boxes=(BOX,), annotated=SIZE, folder=None):
    home = folder or path.parent / "out"
    home.mkdir(exist_ok=True)
    crop = Crop(home / "crop.jpg", tuple(boxes), tuple(boxes[:1]))
    return Sheet(path, "image 'a'", annotated, home / "whole.jpg", (crop,))


def pixels(path):
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L"), float)


def inside_and_outside(picture, region_, box):
    """Mean brightness well inside of the box, and around it."""
    left, top, side_x, side_y = region_
    height, width = picture.shape
    x, y, w, h = box
    columns = (np.arange(width) + 0.5) * side_x / width + left
    rows = (np.arange(height) + 0.5) * side_y / height + top
    inner = np.ix_((rows > y + 0.2 * h) & (rows < y + 0.8 * h),
                   (columns > x + 0.2 * w) & (columns < x + 0.8 * w))  # fmt: skip
    outer = (rows < y - 0.1 * h) | (rows > y + 1.1 * h)
    return picture[inner].mean(), picture[outer].mean()


@pytest.mark.parametrize("orientation", [None, *range(1, 9)])
@pytest.mark.parametrize("frame", ["upright", "stored"])
def test_boxes_fit_in_every_exif_orientation(tmp_path, orientation, frame):
    """The patch is where the annotation says, in the frame that its size tells."""
    exif = Image.Exif()
    if orientation:
        exif[ORIENTATION] = orientation
    stored = grey()
    if frame == "upright":
        undo = {2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE",
                6: "ROTATE_90", 7: "TRANSVERSE", 8: "ROTATE_270"}  # fmt: skip
        if orientation and orientation > 1:
            stored = stored.transpose(Image.Transpose[undo[orientation]])
    elif orientation and orientation < 5:
        return  # both frames have the same size: that of the displayed image counts
    stored.save(tmp_path / "a.jpg", exif=exif)
    drawn = draw_sheet(sheet(tmp_path / "a.jpg"))
    assert drawn.problem is None
    found = inside_and_outside(pixels(tmp_path / "out/crop.jpg"), region([BOX], SIZE), PATCH)
    assert found[0] > 240
    assert found[1] < 120
    whole = pixels(tmp_path / "out/whole.jpg")
    assert whole.shape == SIZE[::-1]
    found = inside_and_outside(whole, (0, 0, *SIZE), PATCH)
    assert found[0] > 240


@pytest.mark.parametrize(
    ("annotated", "stored", "orientation", "frame"),
    [
        ((40, 20), (40, 20), 1, "upright"),
        ((40, 20), (20, 40), 6, "upright"),
        ((20, 40), (20, 40), 6, "stored"),
        ((40, 20), (20, 40), 3, None),
        ((30, 30), (30, 30), 8, "upright"),  # both fit
        ((41, 20), (40, 20), 1, None),
        ((float("nan"), float("nan")), (40, 20), 6, "upright"),
    ],
)
def test_the_frame_of_annotations(annotated, stored, orientation, frame):
    assert annotated_frame(annotated, stored, orientation) == frame


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA", "YCbCr", "I;16"])
def test_every_image_mode(tmp_path, mode):
    suffix = {"CMYK": "jpg", "YCbCr": "jpg"}.get(mode, "png")
    if mode == "I;16":
        picture = Image.fromarray(np.asarray(grey(mode="L"), np.uint16) * 200)
    else:
        picture = grey(mode=mode)
    picture.save(tmp_path / f"a.{suffix}")
    assert draw_sheet(sheet(tmp_path / f"a.{suffix}")).problem is None
    crop = pixels(tmp_path / "out/crop.jpg")
    assert inside_and_outside(crop, region([BOX], SIZE), PATCH)[0] > 240


def test_a_large_jpeg_is_decoded_at_a_reduced_size(tmp_path):
    size, patch = (4000, 2400), tuple(20 * c for c in PATCH)
    grey(size, patch).save(tmp_path / "a.jpg")
    box = Box("detection", patch)
    assert draw_sheet(sheet(tmp_path / "a.jpg", [box], size)).problem is None
    crop, whole = pixels(tmp_path / "out/crop.jpg"), pixels(tmp_path / "out/whole.jpg")
    assert max(crop.shape) == CROP_SIDE
    assert max(whole.shape) == WHOLE_SIDE
    for picture, window in ((crop, region([box], size)), (whole, (0, 0, *size))):
        found = inside_and_outside(picture, window, patch)
        assert found[0] > 240
        assert found[1] < 120


@pytest.mark.parametrize(
    ("boxes", "size", "expected"),
    [
        ([(100, 100, 200, 50)], (1000, 800), (20, 0, 360, 360)),  # moved inside
        ([(900, 700, 100, 100)], (1000, 800), (820, 620, 180, 180)),
        ([(500, 400, 10, 10)], (1000, 800), (445, 345, 120, 120)),  # not too small
        ([(0, 0, 900, 700)], (1000, 800), (0, 0, 1000, 800)),  # the whole image
        ([(100, 100, 20, 20), (180, 100, 20, 20)], (1000, 800), (60, 20, 180, 180)),
        ([(2, 2, 3, 3)], (5, 8), (0, 0, 5, 8)),  # an image smaller than a crop
        ([(-50, -50, 20, 20)], (1000, 800), (0, 0, 126, 126)),  # outside the image
    ],
)
def test_the_region_of_a_crop(boxes, size, expected):
    found = region([Box("detection", box) for box in boxes], size)
    if boxes[0][0] < 0:
        assert found == (0, 0, 120, 120)
    else:
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("box", [(0, 0, 1e9, 1e9), (-1e7, 3, 2e7, 0), (399, 239, 0.5, 0.5)])
@pytest.mark.parametrize("size", [SIZE, (1, 1), (3, 2000)])
def test_strange_boxes_and_sizes(tmp_path, box, size):
    grey(size, (0, 0, 1, 1)).save(tmp_path / "a.png")
    drawn = draw_sheet(sheet(tmp_path / "a.png", [Box("specimen", box)], size))
    assert drawn.problem is None
    assert max(drawn.sizes[0]) == CROP_SIDE


def refused(path, annotated=SIZE):
    drawn = draw_sheet(sheet(path, annotated=annotated))
    assert drawn.sizes == ()
    assert not list(path.parent.glob("out/*"))
    return drawn.problem


def test_images_that_are_not_drawn(tmp_path):
    grey().save(tmp_path / "a.jpg")
    data = (tmp_path / "a.jpg").read_bytes()
    assert str(refused(tmp_path / "a.jpg", (800, 480))) == (
        f"{tmp_path}/a.jpg, image 'a': found 400 x 240 px in the file; expected 800 x 480 px, as "
        "in the annotations (a resized image, or an image of another data set)"
    )
    for name, content, found in (
        ("cut.jpg", data[: len(data) // 2], "an unreadable image"),
        ("text.jpg", b"hello", "an unreadable image (of no known format)"),
        ("empty.jpg", b"", "an empty file"),
        ("page.jpg", b"<!doctype html>", "an HTML page"),
    ):
        (tmp_path / name).write_bytes(content)
        problem = refused(tmp_path / name)
        assert problem.found.startswith(found)
        assert str(tmp_path) not in problem.found  # the page shows it
    assert refused(write_huge_png(tmp_path / "huge.png", 20000, 10000)).found.startswith(
        "an image of over"
    )
    (tmp_path / "folder.jpg").mkdir()
    assert "a folder" in refused(tmp_path / "folder.jpg").found


def test_the_files_do_not_depend_on_the_number_of_processes(tmp_path):
    grey().save(tmp_path / "a.jpg")
    files = []
    calls = []
    for jobs in (1, 2):
        sheets = [
            sheet(tmp_path / "a.jpg", folder=tmp_path / f"{jobs}-{number}") for number in range(3)
        ]
        draw_sheets(sheets, jobs, lambda *call: calls.append(call))
        files.append([p.read_bytes() for p in sorted(tmp_path.glob(f"{jobs}-*/*"))])
    assert files[0] == files[1]
    assert len(files[0]) == 6
    assert calls == [(1, 3), (2, 3), (3, 3)] * 2
    assert draw_sheets([], 2, None) == []


def test_kinds_of_boxes_differ_in_colour_and_dash():
    assert len({style.color for style in STYLES.values()}) == len(STYLES)
    dashes = [STYLES[role].dash for role in ("detection", "specimen", "matched")]
    assert len(set(dashes)) == 3


def test_a_dashed_box_leaves_the_one_below_it_visible():
    from PIL import ImageDraw

    picture = Image.new("RGB", (200, 200), "white")
    pen = ImageDraw.Draw(picture)
    outline(pen, (50, 50, 150, 150), STYLES["detection"], 3, open_gaps=True)
    outline(pen, (50, 50, 150, 150), STYLES["specimen"], 3, open_gaps=True)
    colours = {picture.getpixel((x, 50)) for x in range(60, 140)}
    assert {(213, 94, 0), (86, 180, 233)} <= colours
    closed = Image.new("RGB", (200, 200), "white")
    outline(ImageDraw.Draw(closed), (50, 50, 150, 150), Style("", "#56B4E9", 4, ""), 3)
    colours = {closed.getpixel((x, 50)) for x in range(60, 140)}
    assert colours == {(0, 0, 0), (86, 180, 233)}


def test_finding_images(tmp_path):
    for name in ("iid_test/a.jpg", "train/b.jpg", "c.jpg", "iid_test/d.png", "d.jpg", "x/e.jpg",
                 "iid_test/f.png", "iid_test/f.tif", ".a.jpg", "iid_test/image 1.jpg"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    files = ImageFiles(tmp_path)

    def find(name):
        found = files.find_in(("iid_test", "."), name)
        return [path.relative_to(tmp_path).as_posix() for path in found]

    assert find("a.jpg") == ["iid_test/a.jpg"]
    assert find("b.jpg") == []  # of another split
    assert find("train/b.jpg") == ["train/b.jpg"]
    assert find("c.jpg") == ["c.jpg"]
    assert find("c.JPG") == ["c.jpg"]
    assert find("d.jpg") == ["d.jpg"]  # the same suffix before the same folder
    assert find("d.bmp") == ["iid_test/d.png"]
    assert find("e.jpg") == []
    assert find("f.jpg") == ["iid_test/f.png", "iid_test/f.tif"]
    assert find("iid_test/a.jpg") == ["iid_test/a.jpg"]
    assert find("folder/a.jpg") == ["iid_test/a.jpg"]
    assert find("image 1.jpg") == ["iid_test/image 1.jpg"]
    for outside in ("../a.jpg", "/etc/passwd", "../../etc/passwd", ".", "..", ""):
        assert all(tmp_path in path.parents for path in files.find_in(("iid_test", "."), outside))
