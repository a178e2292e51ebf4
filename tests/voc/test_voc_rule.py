"""The VOC rule: worked examples, comparison with an independent implementation, invariances."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.voc_files import of, score
from support.voc_reference import reference

from benchmark_eval.voc import rule

# ------------------------------------------------------------- worked examples


def test_curve_envelope_and_area_of_a_worked_example(tmp_path):
    # four objects; by confidence: TP, FP, TP, FP, FP, TP
    # precision 1, 1/2, 2/3, 1/2, 2/5, 1/2 at recall 1/4, 1/4, 2/4, 2/4, 2/4, 3/4
    # envelope at the three steps of recall: 1, 2/3, 1/2; 0 for the fourth object
    truth = {"a": [f"beetle {x} 0 {x + 9} 9" for x in (0, 100, 200, 300)]}
    found = {
        "a": [
            "beetle 0.9 0 0 9 9",
            "beetle 0.8 500 0 509 9",
            "beetle 0.7 100 0 109 9",
            "beetle 0.6 600 0 609 9",
            "beetle 0.5 700 0 709 9",
            "beetle 0.4 200 0 209 9",
        ]
    }
    result = score(tmp_path, truth, found)
    beetle = of(result, "beetle")
    ap = beetle.AP
    assert ap == pytest.approx((1 + 2 / 3 + 1 / 2) / 4, abs=1e-15)
    points = result.curves["beetle"]
    assert points.precision.tolist() == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2, 2 / 5, 1 / 2])
    assert points.recall.tolist() == [0.25, 0.25, 0.5, 0.5, 0.5, 0.75]
    assert points.envelope.tolist() == pytest.approx([1, 2 / 3, 2 / 3, 1 / 2, 1 / 2, 1 / 2])
    assert points.confidence.tolist() == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    assert (beetle.n_true_positives, beetle.n_false_positives) == (3, 3)


def test_map_is_the_mean_over_classes_of_the_ground_truth(tmp_path):
    truth = {"a": ["x 0 0 9 9", "y 50 50 59 59"]}
    result = score(tmp_path, truth, {"a": ["x 0.5 0 0 9 9", "z 0.9 0 0 9 9", "z 0.8 1 1 2 2"]})
    assert [(s.name, s.AP) for s in result.classes] == [("x", 1.0), ("y", 0.0)]
    assert result.mAP == 0.5
    assert result.mAP_percent == 50.0
    assert result.detections_without_class == {"z": 2}


def test_objects_without_detection_file_are_missed(tmp_path):  # field case FB42
    truth = {"a": ["x 0 0 9 9"], "b": ["x 0 0 9 9"]}
    result = score(tmp_path, truth, {"a": ["x 0.9 0 0 9 9"]})
    assert result.mAP == 0.5
    assert result.images_without_detections == ("b",)
    assert any(
        "1 of 2 images without a detection file (b): their objects count as missed" in note
        for note in result.notes
    )


@pytest.mark.parametrize(
    "detections",
    [["x 0.9 100 0 109 9", "x 0.8 0 0 9 9"], ["x 0.8 0 0 9 9"]],
    ids=["difficult and plain", "plain only"],
)
def test_a_difficult_object_is_neither_detected_nor_missed(tmp_path, detections):  # field case FB43
    truth = {"a": ["x 0 0 9 9", "x 100 0 109 9 difficult"]}
    result = score(tmp_path, truth, {"a": detections})
    assert result.mAP == 1.0
    assert of(result, "x").n_on_difficult == len(detections) - 1
    assert of(result, "x").n_false_positives == 0
    assert (of(result, "x").n_objects, of(result, "x").n_difficult) == (1, 1)


def test_two_detections_on_a_difficult_object_are_both_not_counted(tmp_path):
    truth = {"a": ["x 0 0 9 9", "x 100 0 109 9 difficult"]}
    found = {"a": ["x 0.9 100 0 109 9", "x 0.8 101 0 109 9", "x 0.7 0 0 9 9"]}
    result = score(tmp_path, truth, found)
    assert result.mAP == 1.0
    assert of(result, "x").n_on_difficult == 2


@pytest.mark.parametrize(
    ("coordinates", "threshold", "ap"),
    [
        ("pixel", 0.5, 1.0),
        ("pixel", 0.5000001, 0.0),
        ("continuous", 0.5, 0.0),
        ("continuous", 4 / 9, 1.0),
        ("continuous", 0.4445, 0.0),
    ],
)
def test_pixel_and_continuous_coordinates(tmp_path, coordinates, threshold, ap):  # field case FB44
    # 10 x 10 and 10 x 5 pixels overlap by 50 of 100; 9 x 9 and 9 x 4 points by 36 of 81
    result = score(
        tmp_path,
        {"a": ["x 0 0 9 9"]},
        {"a": ["x 0.9 0 0 9 4"]},
        coordinates=coordinates,
        iou=threshold,
    )
    assert result.mAP == ap


def test_iou_values():
    boxes = np.array([[0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9]], dtype=float)
    others = np.array([[0, 0, 9, 4], [9, 9, 19, 19], [10, 0, 19, 9], [0, 0, 9, 9]], dtype=float)
    assert rule.iou(boxes, others, 1).tolist() == [0.5, 1 / (100 + 121 - 1), 0.0, 1.0]
    assert rule.iou(boxes, others, 0).tolist() == [36 / 81, 0.0, 0.0, 1.0]
    point = np.zeros((1, 4))
    assert rule.iou(point, point, 1).tolist() == [1.0]
    assert rule.iou(point, point, 0).tolist() == [0.0]


def test_a_detection_is_matched_with_its_best_object_only(tmp_path):
    # both overlap A best (the second by 9 of 11 and 8 of 12 columns), so B is not considered
    truth = {"a": ["x 0 0 9 9", "x 3 0 12 9"]}
    found = {"a": ["x 0.9 0 0 9 9", "x 0.8 1 0 10 9"]}
    result = score(tmp_path, truth, found)
    assert of(result, "x").n_true_positives == 1
    assert of(result, "x").n_false_positives == 1
    assert result.mAP == 0.5


def test_the_first_object_is_taken_on_equal_iou(tmp_path):
    # identical objects: both detections are matched with the first
    truth = {"a": ["x 0 0 9 9", "x 0 0 9 9"]}
    result = score(tmp_path, truth, {"a": ["x 0.9 0 0 9 9", "x 0.8 0 0 9 9"]})
    assert (of(result, "x").n_true_positives, of(result, "x").n_false_positives) == (1, 1)
    # the same with a difficult object first, then second
    truth = {"a": ["x 0 0 9 9 difficult", "x 0 0 9 9"]}
    assert of(score(tmp_path, truth, {"a": ["x 0.9 0 0 9 9"]}), "x").n_on_difficult == 1
    truth = {"a": ["x 0 0 9 9", "x 0 0 9 9 difficult"]}
    assert of(score(tmp_path, truth, {"a": ["x 0.9 0 0 9 9"]}), "x").n_true_positives == 1


def test_tied_scores_are_ordered_by_image_name_then_line(tmp_path):
    truth = {"a": ["x 0 0 9 9"], "b": ["x 0 0 9 9"]}
    tp, fp = "x 0.5 0 0 9 9", "x 0.5 50 50 59 59"
    # a: FP, TP; b: TP -> precision at the two TP 1/2 and 2/3, envelope 2/3
    assert score(tmp_path, truth, {"b": [tp], "a": [fp, tp]}).mAP == pytest.approx(2 / 3)
    # a: TP, FP; b: TP -> 1 and 2/3
    assert score(tmp_path, truth, {"b": [tp], "a": [tp, fp]}).mAP == pytest.approx(5 / 6)
    # a: TP; b: TP, FP -> 1 and 1
    assert score(tmp_path, truth, {"b": [tp, fp], "a": [tp]}).mAP == 1.0


def test_files_are_ordered_by_image_name_without_suffix(tmp_path):
    # the file name "a.txt" sorts after "a-b.txt", but image "a" sorts before "a-b"
    truth = {"a": ["x 0 0 9 9"], "a-b": ["x 0 0 9 9"]}
    found = {"a": ["x 0.5 0 0 9 9"], "a-b": ["x 0.5 50 50 59 59", "x 0.5 0 0 9 9"]}
    assert score(tmp_path, truth, found).mAP == pytest.approx((1 + 2 / 3) / 2)


def test_iou_thresholds_per_class(tmp_path):
    truth = {"a": ["x 0 0 9 9", "y 0 0 9 9"]}
    found = {"a": ["x 0.9 0 0 9 5", "y 0.9 0 0 9 5"]}  # IoU 0.6 each
    assert score(tmp_path, truth, found).mAP == 1.0
    strict = score(tmp_path, truth, found, class_iou={"y": 0.61})
    assert [(s.AP, s.iou_threshold) for s in strict.classes] == [(1.0, 0.5), (0.0, 0.61)]
    lenient = score(tmp_path, truth, found, iou=0.9, class_iou={"x": 0.6})
    assert [(s.AP, s.iou_threshold) for s in lenient.classes] == [(1.0, 0.6), (0.0, 0.9)]


def test_ignored_classes_are_excluded_on_both_sides(tmp_path):
    truth = {"a": ["x 0 0 9 9", "y 0 0 9 9"]}
    found = {"a": ["x 0.9 0 0 9 9", "z 0.9 0 0 9 9"]}
    result = score(tmp_path, truth, found, ignore=["y", "z", "w"])
    assert [s.name for s in result.classes] == ["x"]
    assert result.mAP == 1.0
    assert result.detections_without_class == {}
    assert result.ignored == ("w", "y", "z")
    assert result.notes == ("ignored class 'w' does not occur in any file",)


def test_map_is_undefined_if_all_classes_are_ignored(tmp_path):
    truth, found = {"a": ["x 0 0 9 9"]}, {"a": ["x 0.9 0 0 9 9", "y 0.9 0 0 9 9"]}
    result = score(tmp_path, truth, found, ignore=["x", "y"])
    assert (result.mAP, result.classes, result.detections_without_class) == (None, (), {})


def test_map_is_undefined_without_scored_objects(tmp_path):
    truth = {"a": ["x 0 0 9 9 difficult"]}
    result = score(tmp_path, truth, {"a": ["x 0.9 0 0 9 9", "x 0.8 50 50 59 59"]})
    assert result.mAP is None
    assert result.mAP_percent is None
    x = of(result, "x")
    assert (x.AP, x.log_average_miss_rate) == (None, None)
    assert (x.n_objects, x.n_difficult, x.n_on_difficult, x.n_false_positives) == (0, 1, 1, 1)
    assert result.curves == {}


def test_no_detections_give_ap_0_and_miss_rate_1(tmp_path):
    result = score(tmp_path, {"a": ["x 0 0 9 9"]}, {"a": ""})
    assert (of(result, "x").AP, of(result, "x").log_average_miss_rate) == (0.0, 1.0)
    assert of(result, "x").n_detections == 0


def test_log_average_miss_rate_of_a_worked_example(tmp_path):
    # ten images, four objects; by confidence: TP, FP, TP, FP, FP, FP
    # up to 0.056 false positives per image: after the first TP, 3/4 missed (4 points of 9)
    # from 0.1 on: after the second TP, 2/4 missed (5 points)
    truth = {f"i{k}": [] for k in range(10)}
    truth["i0"] = [f"x {x} 0 {x + 9} 9" for x in (0, 100, 200, 300)]
    found = {
        "i0": ["x 0.9 0 0 9 9", "x 0.7 100 0 109 9"],
        "i1": ["x 0.8 0 0 9 9", "x 0.6 0 0 9 9"],
        "i2": ["x 0.5 0 0 9 9", "x 0.4 0 0 9 9"],
    }
    result = score(tmp_path, truth, found)
    assert of(result, "x").log_average_miss_rate == pytest.approx(
        (0.75**4 * 0.5**5) ** (1 / 9), rel=1e-14
    )


def test_the_nine_reference_points_and_a_miss_rate_of_zero(tmp_path):
    points = rule.FALSE_POSITIVES_PER_IMAGE
    assert points == pytest.approx(np.logspace(-2, 0, 9).tolist())
    assert points[::4] == (0.01, 0.1, 1.0)
    result = score(tmp_path, {"a": ["x 0 0 9 9"]}, {"a": ["x 0.9 0 0 9 9"]})
    assert of(result, "x").log_average_miss_rate == pytest.approx(1e-10, rel=1e-12)


# ------------------------------------------------- an independent implementation


def corners(low=0, high=6):
    number = st.integers(low, high)
    return st.tuples(number, number, number, number).map(
        lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
    )


NAMES = st.sampled_from(["Ips", "Ips typographus", "x"])
TENTHS = st.integers(0, 10).map(lambda n: n / 10)


@st.composite
def scenes(draw):
    """Ground truth and detections of a few images, with many ties and overlaps."""
    images = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    gt_object = st.tuples(NAMES, corners(), st.booleans())
    detection = st.tuples(NAMES, TENTHS, corners())
    objects = {image: draw(st.lists(gt_object, max_size=5)) for image in sorted(images)}
    objects[min(images)].append((draw(NAMES), draw(corners()), False))
    with_file = draw(st.lists(st.sampled_from(sorted(images)), min_size=1, unique=True))
    detections = {image: draw(st.lists(detection, max_size=8)) for image in sorted(with_file)}
    return objects, detections


def text(objects, detections):
    truth = {
        image: [
            f"{name} {' '.join(map(str, box))}{' difficult' if difficult else ''}"
            for name, box, difficult in lines
        ]
        for image, lines in objects.items()
    }
    found = {
        image: [f"{name} {conf} {' '.join(map(str, box))}" for name, conf, box in lines]
        for image, lines in detections.items()
    }
    return truth, found


def scored(objects, detections, **options):
    with tempfile.TemporaryDirectory() as folder:
        return score(Path(folder), *text(objects, detections), **options)


def numbers(result):
    return [
        (s.name, s.AP, s.n_true_positives, s.n_false_positives, s.log_average_miss_rate)
        for s in result.classes
    ]


@pytest.mark.slow  # property test
@settings(max_examples=300, deadline=None)
@given(scenes(), st.sampled_from([0.25, 0.5, 0.6, 1.0]), st.sampled_from([0.3, 0.5, 0.75]))
def test_agrees_with_an_independent_implementation(scene, default, special):
    objects, detections = scene
    known = {name for lines in objects.values() for name, *_ in lines}
    thresholds = {"Ips": special} if "Ips" in known else {}
    mean, classes = reference(objects, detections, thresholds=thresholds, default=default)
    result = scored(objects, detections, class_iou=thresholds, iou=default)
    assert {s.name for s in result.classes} == set(classes)
    for s in result.classes:
        ap, n_tp, n_fp, n_not_counted, miss_rate = classes[s.name]
        assert (s.n_true_positives, s.n_false_positives, s.n_on_difficult) == (
            n_tp,
            n_fp,
            n_not_counted,
        )
        found_ap = s.AP
        assert found_ap == (None if ap is None else pytest.approx(float(ap), abs=1e-14))
        assert s.log_average_miss_rate == (
            None if miss_rate is None else pytest.approx(miss_rate, rel=1e-12)
        )
    assert result.mAP == (None if mean is None else pytest.approx(float(mean), abs=1e-14))


@pytest.mark.slow  # property test
@settings(max_examples=100, deadline=None)
@given(scenes(), st.sampled_from([0.3, 0.5, 0.75]))
def test_agrees_with_continuous_coordinates_and_an_ignored_class(scene, threshold):
    objects, detections = scene
    # objects without area are invalid in continuous coordinates
    objects = {
        image: [(n, (b[0], b[1], b[2] + 1, b[3] + 1), d) for n, b, d in lines]
        for image, lines in objects.items()
    }
    mean, classes = reference(objects, detections, default=threshold, ignore=["x"], side=0)
    result = scored(objects, detections, iou=threshold, ignore=["x"], coordinates="continuous")
    assert {s.name: s.n_true_positives for s in result.classes} == {
        name: row[1] for name, row in classes.items()
    }
    assert result.mAP == (None if mean is None else pytest.approx(float(mean), abs=1e-14))


def test_blocks_of_pairs_do_not_change_the_matching(monkeypatch):
    generator = np.random.default_rng(4)
    group = generator.integers(0, 5, 200)
    boxes = np.sort(generator.integers(0, 20, (200, 2, 2)), axis=1).reshape(200, 4).astype(float)
    object_group, objects = group[:90].copy(), boxes[:90] + generator.integers(0, 2, (90, 1))
    whole = rule.nearest_objects(group, boxes, object_group, objects, 1)
    for size in (1, 7, 50):
        monkeypatch.setattr(rule, "MAX_PAIRS", size)
        pieces = rule.nearest_objects(group, boxes, object_group, objects, 1)
        assert np.array_equal(whole[0], pieces[0])
        assert np.array_equal(whole[1], pieces[1])


# ------------------------------------------------------------------ invariances


@pytest.mark.slow  # property test
@settings(max_examples=60, deadline=None)
@given(scenes(), st.randoms(use_true_random=False))
def test_invariant_to_order_without_ties(scene, random):
    objects, detections = scene
    total = sum(map(len, detections.values()))
    confidences = random.sample(range(1, 1000), total)
    detections = {
        image: [(name, confidences.pop() / 1000, box) for name, _, box in lines]
        for image, lines in detections.items()
    }
    shuffled = {image: random.sample(lines, len(lines)) for image, lines in detections.items()}
    names = random.sample("pqr", 3)
    renamed = dict(zip("abc", names, strict=True))
    assert numbers(scored(objects, detections)) == numbers(
        scored(
            {renamed[image]: lines for image, lines in objects.items()},
            {renamed[image]: lines for image, lines in shuffled.items()},
        )
    )


@pytest.mark.slow  # property test
@settings(max_examples=60, deadline=None)
@given(scenes(), st.sampled_from([2, 8, 1024]), st.integers(-50, 50))
def test_invariant_to_scale_and_translation(scene, scale, shift):
    objects, detections = scene
    objects = {
        image: [(n, (b[0], b[1], b[2] + 1, b[3] + 1), d) for n, b, d in lines]
        for image, lines in objects.items()
    }

    def moved(box, times):
        return tuple(times * number + shift for number in box)

    def other(times):
        return (
            {i: [(n, moved(b, times), d) for n, b, d in lines] for i, lines in objects.items()},
            {i: [(n, c, moved(b, times)) for n, c, b in lines] for i, lines in detections.items()},
        )

    assert numbers(scored(objects, detections)) == numbers(scored(*other(1)))
    assert numbers(scored(objects, detections, coordinates="continuous")) == numbers(
        scored(*other(scale), coordinates="continuous")
    )


@pytest.mark.slow  # property test
@settings(max_examples=60, deadline=None)
@given(scenes())
def test_duplicates_at_lower_confidence_are_false_positives_only(scene):
    objects, detections = scene
    doubled = {
        image: [(n, 0.5 + c / 2, b) for n, c, b in lines] + [(n, c / 4, b) for n, c, b in lines]
        for image, lines in detections.items()
    }
    once, twice = scored(objects, detections), scored(objects, doubled)
    for a, b in zip(once.classes, twice.classes, strict=True):
        assert (a.AP, a.n_true_positives, a.log_average_miss_rate) == (
            b.AP,
            b.n_true_positives,
            b.log_average_miss_rate,
        )
        assert b.n_on_difficult == 2 * a.n_on_difficult
        assert b.n_false_positives == 2 * a.n_false_positives + a.n_true_positives


@pytest.mark.slow  # property test
@settings(max_examples=60, deadline=None)
@given(scenes())
def test_invariant_to_monotonic_confidences(scene):
    objects, detections = scene
    squared = {
        image: [(n, round(c * c, 4), b) for n, c, b in lines] for image, lines in detections.items()
    }
    assert numbers(scored(objects, detections)) == numbers(scored(objects, squared))
