"""Damaged files of every format give a known error or valid boxes, never another exception."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.format_files import lay, lay_file, write_benchmark

from benchmark_eval.core.errors import BenchmarkEvalError
from benchmark_eval.formats import FORMATS, Options, detect_format, read_boxes, split_images
from benchmark_eval.formats.options import ClassNames
from benchmark_eval.inputs.benchmark_reader import load_benchmark

pytestmark = pytest.mark.slow  # property tests

CORNERS = {"topleft": {"x": 1, "y": 2}, "bottomright": {"x": 30, "y": 40}}
BOX = {"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}
RECORD = {"image_id": 11, "category_id": 3, "bbox": [1, 2, 30, 40], "score": 0.5}
SOURCES = {
    "coco-results": [RECORD, RECORD],
    "detectron2": [RECORD, {**RECORD, "segmentation": {"counts": "x"}}],
    "ultralytics-json": [{**RECORD, "image_id": "007", "file_name": "007.jpg"}, RECORD],
    "huggingface": {
        "007.jpg": {"scores": [0.5], "labels": [1], "boxes": [[1, 2, 3, 4]]},
        "c.v2.png": [{"score": 0.5, "label": 2, "box": BOX}],
    },
    "coco": {
        "images": [{"id": 1, "file_name": "007.jpg", "width": 200, "height": 100}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4],
                         "iscrowd": 0}],
        "categories": [{"id": 3, "name": "Ips typographus"}],
    },
    "darkflow": [{"label": "Ips typographus", "confidence": 0.5, **CORNERS}],
    "yolo": "2 0.5 0.5 0.25 0.25 0.9\n0 0.1 0.1 0.05 0.05 0.5\n",
    "xyxy-text": "Ips typographus 0.9 1 2 30 40\nHylastes ater 0.5 1 2 3 4\n",
    "xywh-text": "Ips typographus 0.9 20 20 5 5\nHylastes ater 0.5 1 2 3 4\n",
    "mmdetection": [RECORD],
    "ultralytics-results": [{"name": "Ips typographus", "class": 0, "confidence": 0.5,
                             "box": {"x1": 1, "y1": 2, "x2": 30, "y2": 40}}],
    "voc-xml": "<annotation><filename>007.jpg</filename><size><width>200</width><height>100"
    "</height></size><object><name>Ips typographus</name><difficult>0</difficult><bndbox>"
    "<xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object></annotation>",
}  # fmt: skip
SUFFIX = {"darkflow": ".json", "ultralytics-results": ".json", "voc-xml": ".xml"}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([[1]]),
    st.just(1e308),
)


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    benchmark = write_benchmark(tmp_path_factory.mktemp("benchmark"))
    return Options(
        names=ClassNames(("Hylastes ater", "Hylastes opacus", "Ips typographus", "x"), "names"),
        first_class=0,
        categories=load_benchmark(benchmark).categories,
        images=split_images(benchmark, "iid_test"),
        missing_is_empty=True,
        scores=True,
    )


def paths(tree, at=()):
    """The path of every value in a JSON tree."""
    inner = []
    if isinstance(tree, dict):
        inner = list(tree.items())
    elif isinstance(tree, list):
        inner = list(enumerate(tree))
    return [at, *(place for key, value in inner for place in paths(value, (*at, key)))]


@st.composite
def damaged(draw, name):
    """The text of a source with one to three random edits."""
    source = SOURCES[name]
    for _ in range(draw(st.integers(1, 3))):
        if isinstance(source, str) or draw(st.booleans()):
            text = source if isinstance(source, str) else json.dumps(source)
            start = draw(st.integers(0, len(text)))
            end = draw(st.integers(start, min(len(text), start + 12)))
            source = text[:start] + draw(st.text(max_size=4)) + text[end:]
        else:
            source = json.loads(json.dumps(source))
            places = paths(source)[1:]
            if places:
                *way, last = draw(st.sampled_from(places))
                parent = source
                for key in way:
                    parent = parent[key]
                if draw(st.booleans()):
                    parent[last] = draw(ODD)
                else:
                    del parent[last]
    return source if isinstance(source, str) else json.dumps(source)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_damaged_files_are_reported_or_valid(tmp_path_factory, options, name, data):
    text = data.draw(damaged(name)).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    folder = tmp_path_factory.mktemp("fuzz")
    place = lay_file(folder / "x.json", text)
    if FORMATS[name].container == "folder":
        place = lay(folder / "x", {f"007{SUFFIX.get(name, '.txt')}": text})
    try:
        boxes, _ = read_boxes(place, name, options)
    except BenchmarkEvalError as error:
        assert str(error)
    else:
        assert len(boxes) == len(boxes.score) == len(boxes.corners)
        assert (boxes.size >= 0).all()
    try:
        assert detect_format(place) in FORMATS
    except BenchmarkEvalError as error:
        assert "--from" in str(error)
