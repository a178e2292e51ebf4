"""Round trips: content that a format can represent is preserved, even by chains of formats."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_eval.formats import FORMATS, BoxTable, Options, read_boxes, write_boxes
from benchmark_eval.formats.classes import read_class_names
from benchmark_eval.formats.images import images_of
from benchmark_eval.formats.table import Classes, corners_and_size, to_corners, to_normalised
from benchmark_eval.formats.yolo import CLASSES
from benchmark_eval.inputs.benchmark import Categories

NAMES = ("Ips typographus", "Käfer ø", "007", "x", "Xylosandrus cf. crassiusculus", "0.5 mm")
FILES = ("a.jpg", "b.v2.png", "Ünï côde.JPG", "0001.tif", "with blank.jpeg")
DETECTIONS = [n for n, f in FORMATS.items() if f.supports("scores")]
TRUTH = [n for n, f in FORMATS.items() if f.supports("no scores")]


@st.composite
def tables(draw, scored, decimals=9):
    """A table of up to 9 boxes (10 small ones would look normalised), px of few decimals."""
    n_images = draw(st.integers(1, len(FILES)))
    classes = tuple(draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))])
    if scored is False:  # a number at the end of a class name may be read as a confidence
        classes = tuple(n for n in classes if n != "0.5 mm") or ("x",)
    sizes = [
        (float(draw(st.integers(1, 9000))), float(draw(st.integers(1, 9000))))
        for _ in range(n_images)
    ]
    unit = 10**decimals
    rows = []
    for _ in range(draw(st.integers(0, 9))):
        image = draw(st.integers(0, n_images - 1))
        spans = []
        for side in sizes[image]:
            ends = sorted(draw(st.integers(0, int(side) * unit)) for _ in "12")
            spans.append([end / unit for end in ends])
        (left, right), (top, bottom) = spans
        label = draw(st.integers(0, len(classes) - 1))
        score = draw(st.floats(0, 1)) if scored else np.nan
        ignored = not scored and draw(st.booleans())
        rows.append((image, label, left, top, right, bottom, score, ignored))
    rows.sort(key=lambda row: row[0])  # files are per image
    columns = np.array(rows, np.float64).reshape(-1, 8)
    corners, size = corners_and_size(columns[:, 2:6], "corners")
    order = np.argsort(FILES[:n_images])  # folders are read in the order of file names
    images = images_of([FILES[i] for i in order], list(range(5, 5 + n_images)),
                       [sizes[i] for i in order])  # fmt: skip
    place = np.argsort(order)
    image = place[columns[:, 0].astype(np.int64)]
    by_image = np.argsort(image, kind="stable")
    return BoxTable(
        images,
        Classes(classes, np.array([NAMES.index(name) + 1 for name in classes])),
        image[by_image],
        columns[by_image, 1].astype(np.int64),
        corners[by_image],
        size[by_image],
        columns[by_image, 6],
        columns[by_image, 7] == 1,
    )


def categories():
    """Categories of a benchmark with every class; ids start at 1."""
    n = len(NAMES)
    code = np.zeros(n, np.int32)
    return Categories(np.arange(1, n + 1), NAMES, code, code, code, code, NAMES, NAMES, NAMES,
                      np.zeros(n, np.int64), np.zeros(n, np.int64))  # fmt: skip


CATEGORIES = categories()


def through(table, name, folder, pixels="edges"):
    """Write a table as ``name`` and read it back, with options for what the format lacks."""
    known = FORMATS[name]
    place = folder if known.container == "folder" else folder / "all.json"
    write_boxes(table, place, name, pixels=pixels)
    names = None
    if known.container == "file" and known.supports("numbers") and table.classes.names:
        names = read_class_names(folder / CLASSES)
    options = Options(
        names=names,
        first_class=1,
        numbers_are_ids=known.supports("ids"),
        images=table.images,
        categories=CATEGORIES,
        pixels=pixels,
        scores=table.scored,
    )
    if name == "yolo":
        options = replace(options, first_class=None)
    return read_boxes(place, name, options)[0]


def facts(table):
    """The content of a table, independent of the order of its classes."""
    return [
        (table.images.names[i], table.classes.names[c], tuple(box), tuple(size), score, ignored)
        for i, c, box, size, score, ignored in zip(
            table.image.tolist(), table.label.tolist(), table.corners.tolist(),
            table.size.tolist(), table.score.tolist(), table.ignored.tolist(), strict=True,
        )
    ]  # fmt: skip


def plain_facts(table):
    """The same, with None in place of NaN."""
    return [tuple(None if x != x else x for x in row) for row in facts(table)]


@pytest.mark.parametrize("name", DETECTIONS)
@given(table=tables(scored=True))
@settings(max_examples=25, deadline=None)
def test_round_trip_of_detections(tmp_path_factory, name, table):
    assert facts(through(table, name, tmp_path_factory.mktemp("trip"))) == facts(table)


@pytest.mark.parametrize("name", TRUTH)
@given(table=tables(scored=False))
@settings(max_examples=25, deadline=None)
def test_round_trip_of_ground_truth(tmp_path_factory, name, table):
    if not FORMATS[name].supports("ignored"):
        table = table.rows(~table.ignored)
    back = through(table, name, tmp_path_factory.mktemp("trip"))
    assert plain_facts(back) == plain_facts(table)


@pytest.mark.slow  # property test
@given(
    table=tables(scored=True, decimals=6),
    chain=st.lists(
        st.tuples(st.sampled_from(DETECTIONS), st.sampled_from(["edges", "inclusive", "voc"])),
        min_size=2,
        max_size=4,
    ),
)
@settings(max_examples=40, deadline=None)
def test_chains_of_formats_and_pixel_rules_are_lossless(tmp_path_factory, table, chain):
    """Up to six decimals, because a pixel rule may add a digit before the decimal point."""
    folder = tmp_path_factory.mktemp("chain")
    # inclusive pixels cannot represent boxes below one pixel; writers refuse them
    now = table = table.rows((table.size >= 1).all(axis=1))
    for step, (name, pixels) in enumerate(chain):
        now = through(now, name, folder / str(step), pixels)
    assert facts(now) == facts(table)


@pytest.mark.slow  # property test
@given(table=tables(scored=True))
@settings(max_examples=20, deadline=None)
def test_output_is_deterministic(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("twice")
    for name, known in FORMATS.items():
        if not known.supports("scores"):
            continue
        places = [folder / part / name / "x.json" for part in "ab"]
        if known.container == "folder":
            places = [place.parent for place in places]
        for place in places:
            write_boxes(table, place, name)
        files = [sorted(p for p in place.parent.rglob("*") if p.is_file()) for place in places]
        assert [f.read_bytes() for f in files[0]] == [f.read_bytes() for f in files[1]]


@pytest.mark.slow  # property test
@given(
    normalised=st.lists(
        st.tuples(*(st.integers(0, 10**12).map(lambda v: v / 10**12) for _ in range(4))),
        min_size=1,
        max_size=20,
    ),
    side=st.integers(1, 20_000),
)
@settings(max_examples=200, deadline=None)
def test_normalised_coordinates_of_twelve_decimals_are_preserved(normalised, side):
    """Ultralytics writes six digits."""
    values = np.array(normalised)
    sizes = np.full((len(values), 2), float(side))
    corners, size = corners_and_size(values, "centre", sizes=sizes)
    images = images_of(["a"], [1], [(float(side), float(side))])
    zero = np.zeros(len(values), np.int64)
    table = BoxTable(images, Classes(("x",), zero[:1]), zero, zero, corners, size,
                     np.full(len(values), 0.5), zero == 1)  # fmt: skip
    assert to_normalised(table).tolist() == values.tolist()


@pytest.mark.slow  # property test
@given(st.lists(st.tuples(*(st.floats(0, 5000) for _ in range(4))), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_round_trip_is_exact_for_the_native_layout(tmp_path_factory, numbers):
    """COCO keeps x, y, w, h, and corner formats keep left, top, right, bottom, bit by bit."""
    values = np.array(numbers)
    folder = tmp_path_factory.mktemp("exact")
    images = images_of(["a.jpg"], [1])
    zero = np.zeros(len(values), np.int64)
    score = np.full(len(values), 0.5)
    for layout, names in (("xywh", ["coco-results"]), ("corners", ["darkflow", "xyxy-text"])):
        given_ = values
        if layout == "corners":
            given_ = np.concatenate([values[:, :2], values[:, :2] + values[:, 2:]], axis=1)
        corners, size = corners_and_size(given_, layout)
        table = BoxTable(images, Classes(("x",), zero[:1] + 4), zero, zero, corners, size, score,
                         zero == 1)  # fmt: skip
        for name in names:
            back = through(table, name, folder / name)
            found = back.xywh if layout == "xywh" else to_corners(back, "edges")
            assert found.tolist() == given_.tolist()


def test_class_numbers_follow_classes_txt(tmp_path):
    table = BoxTable(
        images_of(["a.jpg"], [1], [(10.0, 10.0)]),
        Classes(("B", "A"), np.array([-1, -1])),
        np.array([0, 0]),
        np.array([1, 0]),
        np.array([[0.0, 0, 5, 5], [0, 0, 1, 1]]),
        np.array([[5.0, 5], [1, 1]]),
        np.array([0.5, 0.25]),
        np.array([False, False]),
    )
    write_boxes(table, tmp_path / "u" / "p.json", "ultralytics-json")
    assert [r["category_id"] for r in json.loads((tmp_path / "u" / "p.json").read_text())] == [2, 1]
    assert (tmp_path / "u" / CLASSES).read_text() == "B\nA\n"
