"""Error types: small cases by hand, counts that add up, agreement with the package tidecv."""

import random

import pytest
from support import tide
from support.scoring import Split, Taxon, evaluate, score

from benchmark_eval.results.schema import ERROR_TYPES

TAXA = {
    1: Taxon("Ips", "Ipini"),
    2: Taxon("Ips", "Ipini"),
    3: Taxon("Orthotomicus", "Ipini"),
    4: Taxon("Xyleborus", "Xyleborini"),
}
BOX = [0, 0, 100, 100]


def shifted(iou, box=BOX):
    """``box`` with its height scaled so that its IoU with ``box`` is ``iou``."""
    x, y, w, h = box
    return [x, y, w, h * iou]


def counts(truth, rows, split="iid_test", **options):
    """The types that occur, with their counts; wrong names only by kind."""
    errors = score(truth, rows, split, taxa=TAXA, **options)["errors"]
    return {name: errors[name]["n"] for name in ERROR_TYPES if errors.get(name, {}).get("n")}


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        (1, "correct"),
        (2, "wrong_name_congener"),
        (3, "wrong_name_same_tribe"),
        (4, "wrong_name_other"),
    ],
)
def test_a_true_positive_is_typed_by_its_name(category, kind):
    assert counts([[1, 1, BOX]], [[1, category, BOX, 0.9]]) == {kind: 1}


@pytest.mark.parametrize(
    ("iou", "right", "wrong"),
    [
        (0.05, "background", "background"),
        (0.0999, "background", "background"),
        (0.1, "poor_box", "both"),
        (0.3, "poor_box", "both"),
        (0.4999, "poor_box", "both"),
        (0.5, "correct", "wrong_name_other"),
    ],
)
def test_iou_decides_between_background_poor_box_and_match(iou, right, wrong):
    missed = {} if iou >= 0.5 else {"missed": 1}
    assert counts([[1, 1, BOX]], [[1, 1, shifted(iou), 0.9]]) == {right: 1} | missed
    assert counts([[1, 1, BOX]], [[1, 4, shifted(iou), 0.9]]) == {wrong: 1} | missed


@pytest.mark.parametrize(("iou", "kind"), [(0.69, "poor_box"), (0.7, "correct"), (0.75, "correct")])
def test_the_limit_is_the_option_iou(iou, kind):
    missed = {"missed": 1} if kind == "poor_box" else {}
    found = counts([[1, 1, BOX]], [[1, 1, shifted(iou), 0.9]], iou=0.7)
    assert found == {kind: 1} | missed
    # AP@.5 does not depend on it
    errors = score([[1, 1, BOX]], [[1, 1, shifted(iou), 0.9]], taxa=TAXA, iou=0.7)["errors"]
    assert errors["correct"]["n_class_aware"] == 1


@pytest.mark.parametrize("iou", [0.4, 0.5, 0.75])
def test_class_aware_errors_do_not_depend_on_the_option_iou(iou):
    """IoU 0.6 with the specimen, 0.75 with the crowd region."""
    truth = [[1, 1, BOX], [1, 1, [0, 0, 100, 80], 1]]
    errors = score(truth, [[1, 4, [0, 0, 100, 60], 0.9]], taxa=TAXA, iou=iou)["errors"]
    wrong = [errors[name] for name in errors if name.startswith("wrong_name")]
    assert max(one["n_class_aware"] for one in wrong) == 1
    assert errors["missed"]["n_class_aware"] == 0


def test_a_second_detection_of_a_specimen_is_a_duplicate_whatever_its_name():
    rows = [[1, 1, BOX, 0.9], [1, 1, shifted(0.5), 0.8], [1, 4, shifted(0.9), 0.7]]
    assert counts([[1, 1, BOX]], rows) == {"correct": 1, "duplicate": 2}


def test_equal_scores_match_in_file_order():
    rows = [[1, 4, BOX, 0.5], [1, 1, BOX, 0.5]]
    assert counts([[1, 1, BOX]], rows) == {"wrong_name_other": 1, "duplicate": 1}
    assert counts([[1, 1, BOX]], rows[::-1]) == {"correct": 1, "duplicate": 1}


def test_a_specimen_of_the_right_name_decides_before_a_nearer_one_of_another():
    truth = [[1, 4, BOX], [1, 1, [0, 60, 100, 100]]]
    # IoU 0.4 with the first, 0.25 with the second
    row = [1, 1, [0, 60, 100, 40], 0.9]
    assert counts(truth, [row]) == {"poor_box": 1, "missed": 2}


def test_detections_on_crowd_have_no_type():
    truth = [[1, 1, BOX], [1, 1, [500, 0, 100, 100], 1]]
    rows = [
        [1, 1, BOX, 0.9],
        [1, 4, [500, 0, 100, 100], 0.8],  # IoU 1 with the crowd region
        [1, 1, [500, 0, 100, 50], 0.7],  # IoU 0.5
        [1, 1, [500, 0, 100, 49], 0.6],  # on the background, near the region
        [1, 1, [500, 0, 100, 9], 0.5],
    ]
    errors = score(truth, rows, taxa=TAXA)["errors"]
    assert errors["on_crowd"] == 2
    assert errors["background_near_crowd"] == 1
    assert counts(truth, rows) == {"correct": 1, "background": 2}
    # COCO: of its own species by intersection over its area, so three are ignored; the detection
    # of another species on the region is a false positive, but has no type
    assert errors["background"]["n_class_aware"] == 0
    assert errors["background"]["dAP_50"] == 0.0


def test_a_detection_that_matches_a_specimen_on_a_crowd_region_has_a_type():
    truth = [[1, 1, BOX], [1, 1, BOX, 1]]
    assert counts(truth, [[1, 4, BOX, 0.9]]) == {"wrong_name_other": 1}


def test_unseen_species_have_no_wrong_names():
    truth = [[1, 4, BOX], [1, 4, [200, 0, 100, 100]], [1, 4, [400, 0, 100, 100]]]
    rows = [
        [1, 1, BOX, 0.9],
        [1, 2, shifted(0.8), 0.8],
        [1, 1, shifted(0.3, [200, 0, 100, 100]), 0.7],
        [1, 1, [800, 0, 9, 9], 0.6],
    ]
    errors = score(truth, rows, "semantic_ood", taxa=TAXA)["errors"]
    assert {"wrong_name", "wrong_name_other", "both"} & errors.keys() == set()
    found = {name: errors[name]["n"] for name in errors if isinstance(errors[name], dict)}
    expected = {"correct": 1, "duplicate": 1, "poor_box": 1, "background": 1, "missed": 2}
    assert found == expected
    # class-agnostic: the poor box can be repaired, so only the third specimen is missed
    assert errors["missed"]["n_class_aware"] == 1


@pytest.mark.parametrize("split", ["iid_test", "semantic_ood"])
def test_nothing_predicted_and_nothing_annotated(split):
    nothing = score([], [], split, listed=[1], images=[1], taxa=TAXA)["errors"]
    assert {name: nothing[name]["n"] for name in ERROR_TYPES if name in nothing} == dict.fromkeys(
        [name for name in ERROR_TYPES if name in nothing], 0
    )
    assert nothing["missed"]["dAP_50"] is None
    missed = score([[1, 1, BOX]], [], split, taxa=TAXA)["errors"]
    assert (missed["missed"]["n"], missed["missed"]["n_class_aware"]) == (1, 1)
    assert missed["missed"]["dAP_50"] == 0.0  # nothing is left, as in tidecv
    wild = score([], [[1, 1, BOX, 0.5]], split, images=[1, 2], taxa=TAXA)["errors"]
    assert wild["background"]["n"] == 1
    assert wild["background"]["dAP_50"] is None


def test_per_100_images_counts_at_the_operating_threshold_of_iid_test():
    iid = Split(
        [[1, 1, BOX]],
        [[1, 1, BOX, 0.6], [1, 1, [500, 0, 9, 9], 0.4], [1, 1, [700, 0, 9, 9], 0.3]],
        [1, 4],
        [1, 2, 3, 4],
    )
    inat = Split(
        [[1, 1, BOX], [2, 1, BOX]],
        [[1, 1, BOX, 0.7], [2, 1, BOX, 0.59], [2, 1, [500, 0, 9, 9], 0.6]],
    )
    result = evaluate({"inat_test": inat, "iid_test": iid}, TAXA)
    assert result["operating_threshold"] == {"confidence": 0.6, "source": "best F1 on iid_test"}
    assert list(result["per_split"]) == ["inat_test", "iid_test"]
    errors = result["per_split"]["iid_test"]["errors"]
    assert errors["background"]["n"] == 2
    assert errors["background"]["n_operating"] == 0
    assert errors["correct"]["per_100_images"] == 25.0
    errors = result["per_split"]["inat_test"]["errors"]
    assert errors["missed"] | {"dAP_50": 0} == {
        "n": 0, "n_operating": 1, "per_100_images": 50.0, "n_class_aware": 0, "dAP_50": 0
    }  # fmt: skip
    assert errors["background"]["per_100_images"] == 50.0


def test_without_iid_test_the_operating_threshold_is_undefined():
    split = Split([[1, 1, BOX]], [[1, 1, BOX, 0.6]])
    result = evaluate({"inat_test": split}, TAXA)
    assert result["operating_threshold"] == {
        "confidence": None,
        "source": "undefined: iid_test was not scored",
    }
    errors = result["per_split"]["inat_test"]["errors"]
    assert errors["correct"]["n"] == 1
    assert errors["correct"]["n_operating"] is None
    assert errors["correct"]["per_100_images"] is None
    assert result["per_split"]["inat_test"]["reliability"]["detected"]["operating"] is None
    empty = evaluate({"iid_test": Split([[1, 1, BOX]], [])}, TAXA)["operating_threshold"]
    assert empty == {
        "confidence": None,
        "source": "undefined: no detection or no scored specimen on iid_test",
    }


def test_repairing_a_wrong_name_recovers_the_specimen():
    """One of two specimens has a wrong name: AP 0.5 of species 1, 1.0 after the repair."""
    truth = [[1, 1, BOX], [2, 1, BOX], [3, 4, BOX]]
    rows = [[1, 1, BOX, 0.9], [2, 4, BOX, 0.8], [3, 4, BOX, 0.7]]
    errors = score(truth, rows, taxa=TAXA)["errors"]
    # before: species 1 has 51 of 101 recall points, species 4 a precision of 1/2
    gain = 1.0 - (51 / 101 + 0.5) / 2
    assert errors["wrong_name"]["dAP_50"] == pytest.approx(gain, abs=1e-12)
    assert errors["wrong_name_other"]["dAP_50"] == pytest.approx(gain, abs=1e-12)
    assert errors["wrong_name_congener"]["dAP_50"] == 0.0
    assert errors["missed"]["n_class_aware"] == 0  # a wrong name covers it


def test_only_the_best_error_on_a_specimen_is_repaired():
    truth = [[1, 1, BOX]]
    rows = [[1, 1, shifted(0.3), 0.9], [1, 1, shifted(0.4), 0.8], [1, 1, [500, 0, 9, 9], 0.7]]
    errors = score(truth, rows, taxa=TAXA)["errors"]
    assert errors["poor_box"]["n_class_aware"] == 2
    assert errors["poor_box"]["dAP_50"] == 1.0  # the first matches, the second is removed
    assert errors["missed"]["n_class_aware"] == 0


def draw(seed):
    """Images, specimens and detections with distinct scores, all species annotated, no crowd."""
    dice = random.Random(seed)
    n_species = dice.choice([1, 2, 5])
    images = list(range(1, dice.randint(2, 6)))

    def box(low=20):
        return [
            dice.uniform(0, 120),
            dice.uniform(0, 120),
            dice.uniform(low, 50),
            dice.uniform(low, 50),
        ]

    truth = [[images[0], category, box()] for category in range(1, n_species + 1)]
    for image in images:
        truth += [[image, dice.randint(1, n_species), box()] for _ in range(dice.randint(0, 5))]
    rows = [[images[0], 1, box(), dice.random()]]
    for image in images:
        here = [row for row in truth if row[0] == image]
        for _ in range(dice.randint(0, 25)):
            name, where = dice.randint(1, n_species), box(5)
            if here and dice.random() < 0.85:
                _, true, (x, y, w, h) = dice.choice(here)
                s = dice.choice([1, 5, 15, 30])
                where = [x + dice.gauss(0, s), y + dice.gauss(0, s)]
                where += [max(5.0, w + dice.gauss(0, s)), max(5.0, h + dice.gauss(0, s))]
                name = true if dice.random() < 0.6 else name
            rows.append([image, name, where, dice.random()])
    return images, truth, rows


@pytest.mark.parity
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("split", ["iid_test", "semantic_ood"])
def test_equals_tidecv_without_crowd(seed, split):
    images, truth, rows = draw(seed)
    one = split == "semantic_ood"  # class-agnostic
    found = score(truth, rows, split, taxa={c: Taxon() for c in {t[1] for t in truth}})["errors"]
    n, gain, _ = tide.errors(
        images,
        [[image, 1 if one else name, box] for image, name, box in truth],
        [[image, 1 if one else name, *rest] for image, name, *rest in rows],
    )
    if one:
        assert n.pop("wrong_name") == n.pop("both") == 0
        gain = {name: gain[name] for name in n}
    assert {name: found[name]["n_class_aware"] for name in n} == n
    assert {name: found[name]["dAP_50"] for name in n} == pytest.approx(gain, abs=1e-12)


@pytest.mark.parity
def test_tidecv_has_something_to_repair_in_every_type():
    """The draws would not show a difference in a type that never occurs."""
    totals = dict.fromkeys(tide.TYPES, 0.0)
    for seed in range(25):
        for name, value in tide.errors(*draw(seed))[1].items():
            totals[name] += value
    assert min(totals.values()) > 0.01
