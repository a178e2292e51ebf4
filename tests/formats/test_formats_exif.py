"""Images with an EXIF orientation: boxes are converted between frames, checked with pixels."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps
from support.format_files import lay, lay_file, run, write_benchmark
from support.image_files import ODD_ORIENTATIONS, write_huge_png, write_tiff

from benchmark_eval.core.errors import InputError
from benchmark_eval.formats.images import reorient_corners

ORIENTATION = 0x0112
BOX = (3, 5, 10, 9)
"""Left, top, right, bottom of a white patch on the stored 20 x 12 pixels."""


def save(path, orientation, size=(20, 12), box=BOX):
    """Save an image with a white patch and an EXIF orientation."""
    pixels = np.zeros((size[1], size[0]), np.uint8)
    pixels[box[1] : box[3], box[0] : box[2]] = 255
    picture = Image.fromarray(pixels)
    exif = Image.Exif()
    if orientation:
        exif[ORIENTATION] = orientation
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, exif=exif)
    return path


def patch(picture):
    """Corners of the white patch."""
    rows, columns = np.nonzero(np.asarray(picture) > 127)
    return (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_are_reoriented_like_pixels(tmp_path, orientation):
    path = save(tmp_path / "x.png", orientation)
    with Image.open(path) as picture:
        assert patch(picture) == BOX
        upright = ImageOps.exif_transpose(picture)
    found = reorient_corners(
        np.array([BOX], float), np.array([orientation]), np.array([[20.0, 12.0]])
    )
    assert found.tolist() == [list(patch(upright))]
    back = reorient_corners(found, -np.array([orientation]), np.array([upright.size], float))
    assert back.tolist() == [list(BOX)]


@given(
    st.lists(st.tuples(st.integers(2, 8), *(st.integers(0, 10**6) for _ in range(4))), min_size=1)
)
def test_reorientation_is_invertible(boxes):
    columns = np.array(boxes)
    orientation = columns[:, 0]
    near, far = columns[:, 1:3] / 1000, columns[:, 3:] / 1000
    corners = np.concatenate([np.minimum(near, far), np.maximum(near, far)], axis=1)
    sizes = np.tile([1200.5, 1000.25], (len(columns), 1))
    upright_sizes = np.where((orientation >= 5)[:, None], sizes[:, ::-1], sizes)
    upright = reorient_corners(corners, orientation, sizes)
    assert (upright[:, :2] <= upright[:, 2:]).all()
    assert reorient_corners(upright, -orientation, upright_sizes).tolist() == corners.tolist()


def setting(tmp_path, orientation, annotated, size=(20, 12)):
    """A benchmark of one image of ``annotated`` size, its file, and YOLO labels (upright)."""
    folder = write_benchmark(tmp_path / "b", images={11: ("x.png", *annotated)})
    images = folder / "detection" / "images" / "iid_test"
    with Image.open(save(images / "x.png", orientation, size)) as picture:
        upright = ImageOps.exif_transpose(picture)
    left, top, right, bottom = patch(upright)
    width, height = upright.size
    line = (
        f"0 {(left + right) / 2 / width} {(top + bottom) / 2 / height} "
        f"{(right - left) / width} {(bottom - top) / height} 0.9\n"
    )
    labels = lay(tmp_path / "labels", {"x.txt": line})
    names = lay_file(tmp_path / "names.txt", "Ips typographus\n")
    args = [labels, tmp_path / "out", "--to", "benchmark", "--benchmark-dir", folder, "--splits",
            "iid_test", "--names", names, "--images-dir", images]  # fmt: skip
    return args, patch(upright)


def written(tmp_path):
    (record,) = json.loads((tmp_path / "out" / "iid_test_predictions.json").read_text())
    left, top, width, height = record["bbox"]
    return (left, top, left + width, top + height)


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_upright_boxes_with_stored_annotations(tmp_path, orientation):
    """The size in the annotations is that of the stored image; boxes are upright."""
    args, _ = setting(tmp_path, orientation, (20, 12))
    assert run(*args, "--frame", "upright").exception is None
    assert written(tmp_path) == BOX


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_upright_boxes_with_upright_annotations(tmp_path, orientation):
    args, upright = setting(tmp_path, orientation, (12, 20))
    assert run(*args, "--frame", "upright").exception is None
    assert written(tmp_path) == upright


@pytest.mark.parametrize("orientation", [2, 3, 4])
def test_the_target_frame_is_required_if_sizes_do_not_determine_it(tmp_path, orientation):
    args, upright = setting(tmp_path, orientation, (20, 12))
    said = str(run(*args, "--frame", "upright").exception)
    assert "1 image with an EXIF orientation and the same size in both frames" in said
    assert "--to-frame" in said
    assert run(*args, "--frame", "upright", "--to-frame", "stored").exception is None
    assert written(tmp_path) == BOX
    assert run(*args, "--frame", "upright", "--to-frame", "upright").exception is None
    assert written(tmp_path) == upright


def test_exif_orientations_are_never_ignored_silently(tmp_path):
    args, _ = setting(tmp_path, 6, (20, 12))
    said = str(run(*args).exception)
    assert "1 image with an EXIF orientation (first: 'x.png')" in said
    assert "--frame upright or --frame stored" in said
    assert not (tmp_path / "out").exists()


def test_no_frame_is_required_without_exif_orientations(tmp_path):
    args, _ = setting(tmp_path, 1, (20, 12))
    result = run(*args)
    assert result.exception is None
    assert written(tmp_path) == BOX
    assert "EXIF" not in result.output


def test_missing_sizes_are_read_from_the_images(tmp_path):
    args, upright = setting(tmp_path, 6, (None, None))
    assert run(*args, "--frame", "upright").exception is None
    assert written(tmp_path) == upright  # boxes stay in the frame of the source
    assert run(*args, "--frame", "upright", "--to-frame", "stored").exception is None
    assert written(tmp_path) == BOX


def test_wrong_sizes_and_missing_or_broken_images_are_reported_together(tmp_path):
    images = {1: ("a.png", 20, 12), 2: ("b.png", 99, 99), 3: ("c.png", 5, 5), 4: ("d.jpg", 5, 5)}
    folder = write_benchmark(tmp_path / "b", images=images)
    files = tmp_path / "images"
    save(files / "a.png", 0)
    save(files / "b.png", 0)
    (files / "d.jpg").write_text("no image")
    source = lay_file(
        tmp_path / "r.json", [{"image_id": 1, "category_id": 3, "bbox": [1, 1, 2, 2], "score": 1}]
    )
    result = run(
        source, tmp_path / "out", "--to", "benchmark", "--benchmark-dir", folder, "--splits",
        "iid_test", "--images-dir", files,
    )  # fmt: skip
    assert isinstance(result.exception, InputError)
    said = str(result.exception)
    assert "image 'b.png': found 99 x 99 px in the annotations, 20 x 12 px in the file" in said
    assert "image 'c.png': no file" in said
    assert "image 'd.jpg': found an unreadable image (of no known format)" in said


def test_yolo_labels_with_images_and_without_a_benchmark(tmp_path):
    """Convert labels to XML ground truth with sizes read from the images."""
    save(tmp_path / "images" / "x.png", 0)
    labels = lay(tmp_path / "labels", {"x.txt": "0 0.5 0.5 0.5 0.5\n", "classes.txt": "A b\n"})
    result = run(labels, tmp_path / "xml", "--to", "voc-xml", "--images-dir", tmp_path / "images")
    assert result.exception is None
    text = (tmp_path / "xml" / "x.xml").read_text()
    assert "<filename>x.png</filename>" in text
    for value in ("<width>20</width>", "<xmin>5</xmin>", "<ymin>3</ymin>", "<xmax>15</xmax>"):
        assert value in text
    empty = run(labels, tmp_path / "y", "--to", "voc-xml", "--images-dir", tmp_path / "labels")
    assert "no image file; expected a folder of images" in str(empty.exception)


@pytest.mark.parametrize("orientation", ODD_ORIENTATIONS)
def test_an_orientation_that_is_not_1_to_8_is_ignored_and_counted(tmp_path, orientation):
    folder = write_benchmark(tmp_path / "b", images={11: ("x.tif", 20, 12)})
    write_tiff(tmp_path / "images" / "x.tif", ODD_ORIENTATIONS[orientation])
    labels = lay(tmp_path / "labels", {"x.txt": "0 0.5 0.5 0.5 0.5 0.9\n"})
    result = run(labels, tmp_path / "out", "--to", "benchmark", "--benchmark-dir", folder,
                 "--splits", "iid_test", "--images-dir", tmp_path / "images", "--names",
                 lay_file(tmp_path / "n.txt", "Ips typographus\n"))  # fmt: skip
    assert result.exception is None
    assert "not carried over: EXIF orientations other than 1 to 8 (ignored): 1" in result.output
    (record,) = json.loads((tmp_path / "out" / "iid_test_predictions.json").read_text())
    assert record["bbox"] == [5.0, 3.0, 10.0, 6.0]


def test_sizes_of_images_of_over_179_megapixels_are_read(tmp_path):
    write_huge_png(tmp_path / "images" / "x.png", 20_000, 10_000)
    labels = lay(tmp_path / "labels", {"x.txt": "0 0.5 0.5 0.5 0.5 0.9\n"})
    result = run(labels, tmp_path / "out.json", "--to", "huggingface", "--images-dir",
                 tmp_path / "images", "--names", lay_file(tmp_path / "n.txt", "Ips\n"))  # fmt: skip
    assert result.exception is None
    (image,) = json.loads((tmp_path / "out.json").read_text()).values()
    assert image[0]["box"] == {"xmin": 5000.0, "ymin": 2500.0, "xmax": 15000.0, "ymax": 7500.0}


def test_a_file_that_is_no_image_is_named(tmp_path):
    images = lay(tmp_path / "images", {"x.jpg": "%!PS-Adobe-3.0 EPSF-3.0\n"})
    labels = lay(tmp_path / "labels", {"x.txt": "0 0.5 0.5 0.5 0.5 0.9\n"})
    result = run(labels, tmp_path / "out.json", "--to", "huggingface", "--images-dir", images,
                 "--names", lay_file(tmp_path / "n.txt", "Ips\n"))  # fmt: skip
    assert "image 'x.jpg': found a PostScript file; expected a JPEG, PNG," in str(result.exception)
