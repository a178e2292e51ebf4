"""The drawn pictures: as annotated, the same bytes, species told apart by shape and colour."""

import csv
import hashlib
import io
import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image, ImageOps

from benchmark_eval.cli.main import cli
from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.image_files import exif_orientation, open_image
from benchmark_eval.synthetic import invented_species, make_synthetic
from benchmark_eval.synthetic.ground_truth import MOST_ON_A_PLATE, GroundTruth, SyntheticBenchmark
from benchmark_eval.synthetic.pictures import MARK, picture_file

SPLITS = ("train", "iid_test", "inat_test", "semantic_ood")
SPECIES = invented_species()


def make(folder, **options):
    return make_synthetic(folder, scale=0.005, detections_per_specimen=1, **options)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return make(tmp_path_factory.mktemp("pictures"), images=3, jobs=1)


def pictures(tree, split):
    """The images that the annotations list, in their order, and the folder of the pictures."""
    coco = json.loads((tree.benchmark_dir / f"detection/annotations_coco/{split}.json").read_text())
    return coco["images"], tree.benchmark_dir / "detection/images" / split


def one_image(boxes, species, size=(300, 200), split="iid_test"):
    """A benchmark whose only image has these boxes (x, y, w, h in px) of these species (rows)."""
    truth = GroundTruth(
        split=split,
        width=np.array([size[0]]),
        height=np.array([size[1]]),
        image=np.zeros(len(boxes), np.int64),
        species=np.array(species, np.int64),
        box=np.array(boxes, float).reshape(-1, 4),
        crowd=np.zeros(len(boxes), bool),
    )
    return SyntheticBenchmark(0, 1.0, 1.0, SPECIES, {split: truth}, np.zeros(175, np.int64))


def displayed(data):
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))), float)


def test_the_first_images_of_each_split_are_drawn_in_their_annotated_size(tree):
    assert tree.n_images == 12
    for split in SPLITS:
        images, folder = pictures(tree, split)
        assert sorted(p.name for p in folder.iterdir()) == sorted(
            image["file_name"] for image in images[:3]
        )
        for image in images[:3]:
            with open_image(folder / image["file_name"]) as picture:
                assert picture.format == "JPEG"
                assert picture.info["comment"] == MARK.encode()
                assert ImageOps.exif_transpose(picture).size == (image["width"], image["height"])


def test_only_the_list_of_files_depends_on_the_pictures(tree, tmp_path):
    without = make(tmp_path / "without", jobs=1)
    assert without.n_images == 0
    for path in without.benchmark_dir.rglob("*.*"):
        name = path.relative_to(without.benchmark_dir)
        same = path.read_bytes() == (tree.benchmark_dir / name).read_bytes()
        assert same is (name.name != "MANIFEST.csv")
    with (tree.benchmark_dir / "MANIFEST.csv").open(newline="") as stream:
        rows = {row["path"]: row for row in csv.DictReader(stream)}
    listed = [name for name in rows if name.startswith("detection/images/")]
    assert len(listed) == 12
    for name in listed:
        data = (tree.benchmark_dir / name).read_bytes()
        assert rows[name]["sha256"] == hashlib.sha256(data).hexdigest()
        assert rows[name]["bytes"] == str(len(data))


def test_the_bytes_do_not_depend_on_the_number_of_processes(tree, tmp_path):
    again = make(tmp_path / "again", images=3, jobs=2)
    for path in tree.benchmark_dir.rglob("*.*"):
        name = path.relative_to(tree.benchmark_dir)
        assert path.read_bytes() == (again.benchmark_dir / name).read_bytes(), name


def test_progress_counts_models_and_images(tmp_path):
    seen = []
    make(tmp_path / "t", images=1, jobs=1, progress=lambda *call: seen.append(call))
    assert seen == [(done, 5) for done in range(1, 6)]


def test_pictures_of_an_earlier_call_are_removed(tmp_path):
    make(tmp_path / "t", images=2, jobs=1)
    tree = make(tmp_path / "t", images=1, jobs=1)
    assert len(list((tree.benchmark_dir / "detection/images").rglob("*.jpg"))) == 4


def test_some_pictures_are_stored_rotated_and_some_names_have_a_blank():
    benchmark = one_image([[20, 30, 100, 60]], [0])
    upright = None
    seen = set()
    for seed in range(60):
        rotated = SyntheticBenchmark(
            seed, 1.0, 1.0, SPECIES, benchmark.splits, benchmark.train_images
        )
        data = picture_file(rotated, "iid_test", 0)
        with Image.open(io.BytesIO(data)) as picture:
            seen.add(exif_orientation(picture))
        # the beetle is where the annotation says, whatever the orientation of the file
        upright = displayed(data)
        assert upright.shape == (200, 300, 3)
        assert inked(upright, 20, 30, 100, 60) > 20 * inked(upright, 180, 30, 100, 60)
    assert seen == {1, 3, 6, 8}


def inked(picture, x, y, w, h):
    """How much a region differs from the card."""
    card = np.median(picture.reshape(-1, 3), axis=0)
    region = picture[y : y + h, x : x + w]
    return float((np.abs(region - card).max(axis=2) > 60).mean()) + 1e-6


def test_some_names_have_a_blank(tmp_path):
    tree = make(tmp_path / "t", jobs=1)
    names = [image["file_name"] for split in SPLITS for image in pictures(tree, split)[0]]
    blank = [name for name in names if " " in name]
    assert 0.02 < len(blank) / len(names) < 0.15


@pytest.mark.parametrize("box", [[20, 10, 120, 160], [150, 60, 140, 70], [5, 5, 12, 9]])
def test_a_beetle_fills_its_box(box):
    picture = displayed(picture_file(one_image([box], [3]), "iid_test", 0))
    card = np.median(picture.reshape(-1, 3), axis=0)
    rows, columns = np.nonzero(np.abs(picture[:185] - card).max(axis=2) > 60)
    x, y, w, h = box
    found = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
    # antennae and legs are thin, and JPEG blurs them
    assert found == pytest.approx((x, y, x + w, y + h), abs=max(4, 0.06 * max(w, h)))


def test_a_full_plate_is_drawn():
    boxes = [[20 * (i % 20) + 1, 18 * (i // 20) + 1, 18, 16] for i in range(MOST_ON_A_PLATE)]
    species = [i % 175 for i in range(MOST_ON_A_PLATE)]
    picture = displayed(picture_file(one_image(boxes, species, (402, 200)), "iid_test", 0))
    assert all(inked(picture, x, y, w, h) > 0.1 for x, y, w, h in boxes)


def colour(row):
    """The mean colour of a beetle of a species."""
    picture = displayed(picture_file(one_image([[100, 20, 100, 160]], [row]), "iid_test", 0))
    return picture[90:150, 130:170].reshape(-1, 3).mean(axis=0)


def test_congeners_look_alike_and_tribes_differ():
    by_genus, by_tribe = {}, {}
    for row, species in enumerate(SPECIES):
        by_genus.setdefault(species.genus, []).append(row)
        by_tribe.setdefault(species.tribe, []).append(row)
    congeners = [rows[:2] for rows in by_genus.values() if len(rows) > 1]
    near = [np.abs(colour(a) - colour(b)).max() for a, b in congeners]
    tribes = [rows[0] for rows in by_tribe.values()]
    far = [np.abs(colour(a) - colour(b)).max() for a, b in itertools.pairwise(tribes)]
    assert np.median(far) > 2 * np.median(near)
    assert min(near) > 0  # but they are not the same


@pytest.mark.parametrize("images", [-1, 1.5, "some"])
def test_numbers_of_images_that_are_refused(tmp_path, images):
    with pytest.raises(UsageError, match=r"images must be >= 0, or all; got"):
        make(tmp_path / "t", images=images)
    assert not (tmp_path / "t").exists()


def test_the_option(tmp_path):
    def run(*words):
        line = ["synth", "--output-dir", str(tmp_path / "t"), "--scale", "0.005", "--jobs", "1"]
        return CliRunner().invoke(cli, [*line, *words])

    assert "4 pictures drawn" in run("--images", "1").output
    assert "drawn" not in run().output
    refused = run("--images", "1.5")
    assert refused.exit_code == 2
    assert "found '1.5'; expected a number of images, or all" in refused.output
    # without a number, and with another option behind it
    shown = CliRunner().invoke(cli, ["synth", "--images", "--help"])
    assert shown.exit_code == 0
