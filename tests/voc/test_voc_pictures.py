"""Plots and annotated images of ``benchmark-eval map``, and unusable image folders."""

import numpy as np
import pytest
from PIL import Image
from support.image_files import ODD_ORIENTATIONS, write_huge_png, write_tiff
from support.voc_files import score, write_folder

from benchmark_eval.core import fonts
from benchmark_eval.core.errors import InputError
from benchmark_eval.voc import pictures, plots, run_map, score_voc_folders
from benchmark_eval.voc.pictures import (
    DETECTED_OBJECT_STYLE,
    DIFFICULT_STYLE,
    FALSE_POSITIVE_STYLE,
    MISSED_STYLE,
    TRUE_POSITIVE_STYLE,
    draw,
    marks,
)

pytestmark = pytest.mark.slow  # draws plots

TRUTH = {
    "a": [
        "x 100 100 199 199",  # detected at 0.9, again at 0.3
        "x 300 100 399 199",  # detected at 0.2 only
        "x 500 100 599 199 difficult",
    ],
    "b": ["y 10 10 60 60"],
}
FOUND = {
    "a": [
        "x 0.3 101 100 199 199",
        "x 0.9 100 100 199 190",
        "x 0.2 300 100 399 199",
        "x 0.8 500 100 599 199",
        "z 0.7 100 300 199 399",
    ]
}


def color(text):
    return tuple(bytes.fromhex(text[1:]))


def image_folder(folder, **sizes):
    folder.mkdir(exist_ok=True)
    for name, size in sizes.items():
        Image.new("RGB", size, "#404040").save(folder / f"{name}.png")
    return folder


@pytest.fixture
def folders(tmp_path):
    write_folder(tmp_path / "gt", TRUTH)
    write_folder(tmp_path / "det", FOUND)
    return tmp_path / "det", tmp_path / "gt"


def drawn(folders, image, confidence):
    _, matches = score_voc_folders(*folders)
    return [(m.style, m.label, m.corners[0]) for m in marks(matches, image, confidence)]


# --------------------------------------------------------------------------- pictures


def test_boxes_drawn_at_a_confidence_threshold(folders):
    assert drawn(folders, 0, 0.0) == [
        (FALSE_POSITIVE_STYLE, "x 0.30", 101),
        (FALSE_POSITIVE_STYLE, "z 0.70", 100),
        (DETECTED_OBJECT_STYLE, "", 100),
        (DETECTED_OBJECT_STYLE, "", 300),
        (DIFFICULT_STYLE, "x", 500),
        (TRUE_POSITIVE_STYLE, "x 0.20", 300),
        (TRUE_POSITIVE_STYLE, "x 0.90", 100),
    ]
    # from 0.25 on the second object is missed
    assert drawn(folders, 0, 0.25) == [
        (FALSE_POSITIVE_STYLE, "x 0.30", 101),
        (FALSE_POSITIVE_STYLE, "z 0.70", 100),
        (DETECTED_OBJECT_STYLE, "", 100),
        (MISSED_STYLE, "x", 300),
        (DIFFICULT_STYLE, "x", 500),
        (TRUE_POSITIVE_STYLE, "x 0.90", 100),
    ]
    assert drawn(folders, 1, 0.0) == [(MISSED_STYLE, "y", 10)]


def test_boxes_are_drawn_at_their_positions_in_their_colours(folders):
    _, matches = score_voc_folders(*folders)
    grey = (64, 64, 64)
    sheet = draw(Image.new("RGB", (800, 600), grey), marks(matches, 0, 0.25), "a", 0.25)
    assert sheet.size[0] == 800
    assert sheet.size[1] > 600  # a caption below
    assert sheet.getpixel((100, 150)) == color(TRUE_POSITIVE_STYLE.color)
    assert sheet.getpixel((150, 300)) == color(FALSE_POSITIVE_STYLE.color)
    left_edge = {sheet.getpixel((300, y)) for y in range(105, 195)}
    assert left_edge == {color(MISSED_STYLE.color), (0, 0, 0)}  # dashed over a dark border
    assert sheet.getpixel((150, 150)) == grey  # boxes are not filled
    assert sheet.getpixel((799, sheet.size[1] - 1)) == (255, 255, 255)


@pytest.mark.parametrize(
    ("size", "expected"),
    [((4000, 2000), (1600, 800)), ((64, 32), (640, 320)), ((900, 700), (900, 700))],
)
def test_pictures_are_scaled_to_a_legible_size(size, expected):
    sheet = draw(Image.new("RGB", size), [], "a", 0.5)
    caption = draw(Image.new("RGB", expected), [], "a", 0.5).size[1] - expected[1]
    assert sheet.size == (expected[0], expected[1] + caption)


def test_extreme_image_shapes_and_boxes_far_outside(folders):
    _, matches = score_voc_folders(*folders)
    far = [m._replace(corners=(-1e9, -1e9, 1e9, 1e9)) for m in marks(matches, 0, 0)]
    for size in ((1, 1), (5000, 1), (1, 5000)):
        assert draw(Image.new("RGB", size), far, "a" * 250, 0.25).size[0] >= 640


def test_pictures_of_a_run(folders, tmp_path):
    images = image_folder(tmp_path / "img", a=(700, 400), b=(100, 100), unknown=(10, 10))
    result = run_map(*folders, image_dir=images, output_dir=tmp_path / "out", plots=False)
    assert {p.name for p in (tmp_path / "out" / "images").iterdir()} == {"a.jpg", "b.jpg"}
    assert not (tmp_path / "out" / "animation.gif").exists()
    assert Image.open(tmp_path / "out" / "images" / "a.jpg").size[0] == 700
    assert not [note for note in result.notes if "image folder" in note]


def test_animation_has_one_frame_per_image_in_one_size(folders, tmp_path):
    images = image_folder(tmp_path / "img", a=(700, 400), b=(100, 300))
    out = tmp_path / "out"
    run_map(*folders, image_dir=images, output_dir=out, plots=False, animate=True)
    with Image.open(out / "animation.gif") as animation:
        assert animation.n_frames == 2
        assert animation.info["loop"] == 0  # endless
        assert animation.info["duration"] == pictures.FRAME_MS
        assert max(animation.size) == pictures.FRAME_SIDE


def test_a_long_animation_shows_evenly_selected_images(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_FRAMES", 3)
    names = [f"i{k}" for k in range(9)]
    write_folder(tmp_path / "gt", dict.fromkeys(names, "x 1 1 9 9"))
    images = image_folder(tmp_path / "img", **dict.fromkeys(names, (80, 80)))
    result = run_map(
        *folders, image_dir=images, output_dir=tmp_path / "out", plots=False, animate=True
    )
    with Image.open(tmp_path / "out" / "animation.gif") as animation:
        assert animation.n_frames == 3
    assert "the animation shows 3 of 9 images" in result.notes
    assert "2 images of the ground truth missing from the image folder" in result.notes


def test_objects_outside_their_image_are_noted(folders, tmp_path):
    # 599 + 1 pixels fit into 600; one pixel of tolerance for rounding
    images = image_folder(tmp_path / "img", a=(598, 400), b=(58, 100))
    result = run_map(*folders, image_dir=images, output_dir=tmp_path / "out", plots=False)
    assert [n for n in result.notes if "outside" in n] == [
        "1 object outside the image bounds (check that the images belong to the ground truth and "
        "have their original size)"
    ]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "I", "F", "YCbCr"])
def test_every_image_mode_is_converted_to_rgb(tmp_path, mode):
    suffix = {"CMYK": "jpg", "YCbCr": "jpg", "I": "tif", "F": "tif"}.get(mode, "png")
    if mode == "I;16":
        picture = Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000)
    else:
        picture = Image.new("L", (8, 8), 100).convert(mode)
    picture.save(tmp_path / f"a.{suffix}")
    opened = pictures._open(tmp_path / f"a.{suffix}")
    assert (opened.mode, opened.size) == ("RGB", (8, 8))
    if mode == "I;16":
        assert opened.getpixel((0, 0)) == (0, 0, 0)
        assert opened.getpixel((7, 7)) == (255, 255, 255)


def test_the_exif_orientation_is_applied(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    Image.new("RGB", (30, 20)).save(tmp_path / "a.jpg", exif=exif)
    assert pictures._open(tmp_path / "a.jpg").size == (20, 30)


def test_all_unusable_images_are_reported(folders, tmp_path):
    images = image_folder(tmp_path / "img", a=(700, 400))
    whole = (images / "a.png").read_bytes()
    (images / "a.png").write_bytes(whole[: len(whole) // 2])
    (images / "b.jpeg").write_text("no image")
    (images / "b.PNG").write_bytes(whole)
    out = tmp_path / "out"
    run_map(*folders, output_dir=out)
    with pytest.raises(InputError) as caught:
        run_map(*folders, image_dir=images, output_dir=out)
    assert [p.kind for p in caught.value.problems] == ["two-images", "image"]
    assert "another image of this name, b.jpeg; expected one image per name" in str(
        caught.value.problems[0]
    )
    assert "a.png: found an unreadable image" in str(caught.value.problems[1])
    assert list(out.iterdir()) == []  # earlier results are removed


def test_postscript_named_jpg_is_reported_and_not_run(folders, tmp_path):
    images = image_folder(tmp_path / "img", b=(80, 80))
    (images / "a.jpg").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n")
    with pytest.raises(InputError, match=r"a.jpg: found a PostScript file; expected a JPEG, PNG"):
        run_map(*folders, image_dir=images, output_dir=tmp_path / "out", plots=False)


def test_names_that_the_font_lacks(tmp_path, monkeypatch, caplog, recwarn):
    """An installed font is used; one warning names the characters that none has."""
    stix = fonts.plot_font().with_name("STIXGeneral.ttf")
    monkeypatch.setattr(fonts, "_installed", lambda: (stix,))
    fonts._fallback.cache_clear()
    write_folder(tmp_path / "gt", {"a": ["ᶁ 10 10 60 60", "虫 10 10 60 60"]})
    write_folder(tmp_path / "det", {"a": ["ᶁ 0.9 10 10 60 60"]})
    images = image_folder(tmp_path / "img", a=(80, 80))
    out = tmp_path / "out"
    run_map(tmp_path / "det", tmp_path / "gt", image_dir=images, output_dir=out)
    assert pictures._font(20, "ᶁ").getname()[0] == "STIXGeneral"
    assert pictures._font(20, "a").getname()[0] == "DejaVu Sans"
    fonts._fallback.cache_clear()
    (record,) = caplog.records
    assert "plots: no installed font has the characters 虫; images show" in record.getMessage()
    assert not recwarn.list


@pytest.mark.parametrize("name", ODD_ORIENTATIONS)
def test_an_invalid_exif_orientation_is_ignored(tmp_path, name):
    path = write_tiff(tmp_path / "a.tif", ODD_ORIENTATIONS[name])
    assert pictures._open(path).size == (20, 12)


def test_an_image_too_large_to_draw_is_reported(folders, tmp_path):
    images = image_folder(tmp_path / "img", b=(80, 80))
    write_huge_png(images / "a.png", 20_000, 10_000)
    with pytest.raises(InputError, match=r"a.png: found an image of over 178,956,970 pixels"):
        run_map(*folders, image_dir=images, output_dir=tmp_path / "out", plots=False)


def test_an_image_folder_without_matching_images(folders, tmp_path):
    images = image_folder(tmp_path / "img", other=(10, 10))
    with pytest.raises(InputError, match=r"expected images named .* such as a\.jpg"):
        run_map(*folders, image_dir=images, output_dir=tmp_path / "out")


# ------------------------------------------------------------------------------ plots


def test_the_curve_shows_points_envelope_and_area(tmp_path):
    result = score(tmp_path, TRUTH, FOUND)
    figure = plots._curve(result, result.classes[0])
    axes = figure.axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    points = result.curves["x"]
    assert lines["measured"].get_xdata().tolist() == points.recall.tolist()
    assert lines["measured"].get_ydata().tolist() == points.precision.tolist()
    # from recall 0 to the maximum recall, then down
    assert lines["envelope"].get_xdata().tolist() == [0, *points.recall, points.recall[-1]]
    assert lines["envelope"].get_ydata().tolist() == [
        points.envelope[0],
        *points.envelope,
        0,
    ]
    assert axes.get_title(loc="left").startswith("x: AP = ")
    assert "2 objects, 4 detections" in axes.get_title(loc="left")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", "precision")


def test_bars_show_the_numbers_of_the_table(tmp_path):
    result = score(tmp_path, TRUTH, FOUND)

    def lengths(figure):
        return [[bar.get_width() for bar in one] for one in figure.axes[0].containers]

    assert lengths(plots._ap_bars(result)) == [[100 * s.AP for s in result.classes]]
    assert lengths(plots._object_bars(result)) == [[2, 1], [1, 0]]
    labels = [text.get_text() for text in plots._object_bars(result).axes[0].get_yticklabels()]
    assert labels == ["x", "y"]
    # x: 2 true positives, 1 false positive, 1 on difficult; z: 1; y: none
    assert lengths(plots._detection_bars(result)) == [[2, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]]
    rates = sorted(s.log_average_miss_rate for s in result.classes)
    assert lengths(plots._miss_rate_bars(result)) == [rates]


@pytest.mark.parametrize(
    "name",
    ["$x_1$ \\frac", "_hidden", "../../etc/passwd", "a/b:c*?", "x" * 300, "日本甲虫", "%s {}"],
)
def test_unusual_class_names_are_safe_as_file_names(tmp_path, name, recwarn):
    write_folder(tmp_path / "gt", {"a": [f"{name} 0 0 9 9"]})
    write_folder(tmp_path / "det", {"a": [f"{name} 0.9 0 0 9 9"]})
    out = tmp_path / "out"
    run_map(tmp_path / "det", tmp_path / "gt", output_dir=out)
    (curve,) = (out / "plots" / "precision_recall").iterdir()
    assert curve.suffix == ".png"
    assert {p.name for p in tmp_path.iterdir()} == {"gt", "det", "out"}
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


def test_bar_charts_state_that_classes_are_omitted(tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "MAX_BARS", 5)
    result = score(tmp_path, {"a": [f"c{k:02} 0 0 {k} 9" for k in range(12)]}, {"a": ""})
    axes = plots._object_bars(result).axes[0]
    assert len(axes.get_yticklabels()) == 5
    assert "the first 5 of 12 classes" in axes.get_title(loc="left")


def test_plots_without_any_detection_or_ap(tmp_path):
    write_folder(tmp_path / "gt", {"a": ["x 0 0 9 9 difficult", "y 0 0 9 9"]})
    write_folder(tmp_path / "det", {"a": ""})
    run_map(tmp_path / "det", tmp_path / "gt", output_dir=tmp_path / "out")
    curves = tmp_path / "out" / "plots" / "precision_recall"
    assert [p.name for p in curves.iterdir()] == ["2_y.png"]
    run_map(tmp_path / "det", tmp_path / "gt", output_dir=tmp_path / "out", ignore=["y"])
    assert not curves.exists()
