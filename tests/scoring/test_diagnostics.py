"""Each warning fires on a file with its mistake, gives the evidence, and on no valid file."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.layout import write_predictions, write_split, write_taxonomy

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.text import percent
from benchmark_eval.inputs.benchmark_index import read_index, save_index
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.prediction_files import predictions_file
from benchmark_eval.inputs.predictions import (
    OutOfVocabulary,
    Predictions,
    check_predictions,
    read_predictions,
)
from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.scoring.diagnostics import (
    BENCHMARK_WARNINGS,
    EXPECTED,
    WARNINGS,
    named_warnings,
    notes_of,
    warnings_of,
)
from benchmark_eval.scoring.diagnostics.evidence import Evidence
from benchmark_eval.scoring.diagnostics.ids import with_likely_causes
from benchmark_eval.scoring.evaluate import Options, evaluate, run_evaluation
from benchmark_eval.synthetic import make_synthetic


def evidence(benchmark, folder, split, on_invalid="error"):
    predictions = read_predictions(predictions_file(folder, split), benchmark, split, on_invalid)
    return Evidence(predictions, benchmark.split(split), benchmark)


def problems_of(path, benchmark, split):
    """The problems that an evaluation reports for an invalid file."""
    return with_likely_causes(check_predictions(path, benchmark, split), benchmark, split)


def fired(evidence):
    texts = {kind: list(warning(evidence)) for kind, warning in WARNINGS.items()}
    return {kind: text for kind, text in texts.items() if text}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A synthetic benchmark, its path, and the folder of one good model's predictions."""
    made = make_synthetic(tmp_path_factory.mktemp("tree"), scale=0.03, test_scale=0.4, jobs=1)
    (model,) = made.predictions_dir.iterdir()
    return load_benchmark(made.benchmark_dir), made.benchmark_dir, model


def sizes(benchmark_dir, split):
    content = json.loads((benchmark_dir / f"detection/annotations_coco/{split}.json").read_text())
    return {image["id"]: (image["width"], image["height"]) for image in content["images"]}


def file_names(benchmark_dir, split):
    content = json.loads((benchmark_dir / f"detection/annotations_coco/{split}.json").read_text())
    return {image["id"]: image["file_name"] for image in content["images"]}


def trained(benchmark):
    categories = benchmark.categories
    return categories.ids[categories.n_train_images > 0].tolist()


def each(change):
    """A mistake that changes every record independently."""

    def plant(records, context):
        for record in records:
            change(record, context)
        return [r for r in records if r["category_id"] in set(context["ids"])]

    return plant


def shift(by):
    def change(record, context):
        record["category_id"] += by

    return each(change)


def class_numbers(first):
    def change(record, context):
        record["category_id"] = context["trained"].index(record["category_id"]) + first

    return each(change)


@each
def corners(record, context):
    x, y, w, h = record["bbox"]
    record["bbox"] = [x, y, x + w, y + h]


@each
def centres(record, context):
    x, y, w, h = record["bbox"]
    record["bbox"] = [x + w / 2, y + h / 2, w, h]


@each
def swapped(record, context):
    x, y, w, h = record["bbox"]
    record["bbox"] = [y, x, h, w]


@each
def normalised(record, context):
    width, height = context["sizes"][record["image_id"]]
    x, y, w, h = record["bbox"]
    record["bbox"] = [x / width, y / height, w / width, h / height]


@each
def normalised_centres(record, context):
    width, height = context["sizes"][record["image_id"]]
    x, y, w, h = record["bbox"]
    record["bbox"] = [(x + w / 2) / width, (y + h / 2) / height, w / width, h / height]


@each
def larger_image(record, context):
    record["bbox"] = [2 * value for value in record["bbox"]]


def resized(to):
    """Boxes that are not scaled back to the image: to(width, height) -> (scale, pad)."""

    @each
    def plant(record, context):
        (sx, sy), (px, py) = to(*context["sizes"][record["image_id"]])
        x, y, w, h = record["bbox"]
        record["bbox"] = [x * sx + px, y * sy + py, w * sx, h * sy]

    return plant


def longest(length):
    return resized(lambda w, h: ((length / max(w, h),) * 2, (0, 0)))


def shortest(short, long):
    return resized(lambda w, h: ((min(short / min(w, h), long / max(w, h)),) * 2, (0, 0)))


def padded(length):
    def to(w, h):
        scale = length / max(w, h)
        return (scale, scale), ((length - w * scale) / 2, (length - h * scale) / 2)

    return resized(to)


def thresholded(threshold):
    def plant(records, context):
        return [record for record in records if record["score"] >= threshold]

    return plant


@each
def one_score(record, context):
    record["score"] = 0.5


@each
def rounded_scores(record, context):
    record["score"] = round(record["score"], 1)


@each
def held_out(record, context):
    if record["image_id"] % 3 == 0:
        record["category_id"] = context["held_out"][0]


def image_positions(records, context):
    """From 0; the records of the first image are invalid and dropped."""
    for record in records:
        record["image_id"] -= 1
    return records


def turned(every):
    """Boxes of every n-th image as in the stored image, which is displayed turned by 90 degrees."""

    @each
    def plant(record, context):
        width, _ = context["sizes"][record["image_id"]]
        x, y, w, h = record["bbox"]
        if record["image_id"] % every == 0:
            record["bbox"] = [y, width - x - w, h, w]

    return plant


def name_positions(first):
    """Positions in the sorted file names."""

    def plant(records, context):
        names = context["file_names"]
        order = sorted(names, key=names.get)
        place = {number: at for at, number in enumerate(order, start=first)}
        for record in records:
            record["image_id"] = place[record["image_id"]]
        return records

    return plant


def written_twice(records, context):
    return records + [dict(r) for r in records[:50]]


def percent_scores(records, context):
    for record in records[:7]:
        record["score"] *= 100
    return records


PLANTS = {
    # name: (split, mistake, kinds that fire, part of the text of the first kind)
    "ids from 0": ("iid_test", shift(-1), ["shifted ids", "held-out ids"], "likely 0-based ids"),
    "ids one too high": ("iid_test", shift(1), ["shifted ids", "held-out ids"], "shifted by one"),
    "class numbers from 0": (
        "iid_test",
        class_numbers(0),
        ["shifted ids", "held-out ids"],
        "numbers the 65 trained species from 0",
    ),
    "class numbers from 1": (
        "iid_test",
        class_numbers(1),
        ["shifted ids", "held-out ids"],
        "numbers the 65 trained species from 1",
    ),
    "corners": ("iid_test", corners, ["box layout", "boxes outside"], "corners [x1, y1, x2, y2]"),
    "corners on semantic_ood": (
        "semantic_ood",
        corners,
        ["box layout", "boxes outside"],
        "corners [x1, y1, x2, y2]",
    ),
    "centres": (
        "iid_test",
        centres,
        ["box layout", "boxes outside", "turned images"],
        "centres [cx, cy, w, h]",
    ),
    "x and y swapped": (
        "iid_test",
        swapped,
        ["box layout", "boxes outside", "turned images"],
        "[y, x, h, w]",
    ),
    "normalised": ("iid_test", normalised, ["normalised boxes"], "likely normalised coordinates"),
    "normalised centres": (
        "iid_test",
        normalised_centres,
        ["normalised boxes"],
        "instead of pixels, and centres",
    ),
    "another size": ("iid_test", larger_image, ["boxes outside"], "an image of another size"),
    "longest side 640": ("iid_test", longest(640), ["resized images"], "a longest side of 640 px"),
    "longest side 700": ("iid_test", longest(700), ["resized images"], "a longest side of "),
    "longest side 1024 on semantic_ood": (
        "semantic_ood",
        longest(1024),
        ["resized images"],
        "a longest side of 1024 px; the largest coordinate is 1023.",
    ),
    "shortest side 800": (
        "iid_test",
        shortest(800, 1333),
        ["resized images"],
        "a shortest side of 800 px and a longest of at most 1333 px",
    ),
    "stretched": (
        "iid_test",
        resized(lambda w, h: ((512 / w, 512 / h), (0, 0))),
        ["resized images"],
        "stretched to 512x512 px",
    ),
    "padded": ("iid_test", padded(640), ["resized images"], "640 px and centred in a square"),
    "half of the size": (
        "iid_test",
        resized(lambda w, h: ((0.5, 0.5), (0, 0))),
        ["resized images"],
        "scaled down by a factor of 2",
    ),
    "threshold 0.05": ("iid_test", thresholded(0.05), ["score threshold"], "no score below 0.05"),
    "threshold 0.25": ("iid_test", thresholded(0.25), ["score threshold"], "no score below 0.25"),
    "threshold 0.5": (
        "semantic_ood",
        thresholded(0.5),
        ["score threshold"],
        "likely a confidence threshold; AP",
    ),
    "threshold 0.25 on semantic_ood": (
        "semantic_ood",
        thresholded(0.25),
        ["score threshold"],
        "no score below 0.25",
    ),
    "constant score": ("iid_test", one_score, ["tied scores"], "scores are 0.5"),
    "rounded scores": ("iid_test", rounded_scores, ["tied scores"], "distinct scores in"),
    "held-out ids": ("iid_test", held_out, ["held-out ids"], "of species without training images"),
    "held-out ids on semantic_ood": (
        "semantic_ood",
        held_out,
        ["held-out ids"],
        "of species without training images",
    ),
    "image positions": (
        "iid_test",
        image_positions,
        ["image positions", "dropped records", "boxes outside"],
        "if image_id numbers the images in ascending order of their ids from 0: likely positions",
    ),
    "positions in sorted names": (
        "iid_test",
        name_positions(1),
        ["image positions", "boxes outside"],
        "if image_id numbers the images in the order of their file names from 1: likely positions",
    ),
    "every fifth image turned": (
        "iid_test",
        turned(5),
        ["turned images", "boxes outside"],
        "all of which fit with width and height swapped: likely boxes in another EXIF orientation",
    ),
    "every fourth image of inat_test turned": (
        "inat_test",
        turned(4),
        ["turned images", "boxes outside"],
        "fit a specimen only if the image is turned by 90 degrees",
    ),
    "written twice": ("iid_test", written_twice, ["repeated records"], "50 duplicates"),
    "dropped": (
        "iid_test",
        percent_scores,
        ["dropped records"],
        "7 invalid records dropped",
    ),
}


def planted(tree, folder, split, plant):
    benchmark, benchmark_dir, model = tree
    records = json.loads((model / f"{split}_predictions.json").read_text())
    ids = benchmark.categories.ids.tolist()
    context = {
        "sizes": sizes(benchmark_dir, split),
        "file_names": file_names(benchmark_dir, split),
        "ids": ids,
        "trained": trained(benchmark),
        "held_out": sorted(set(ids) - set(trained(benchmark))),
    }
    (folder / f"{split}_predictions.json").write_text(json.dumps(plant(records, context)))
    return evidence(benchmark, folder, split, "drop")


@pytest.mark.parametrize("name", PLANTS)
def test_each_warning_fires_on_its_mistake(tree, tmp_path, name):
    split, plant, kinds, words = PLANTS[name]
    found = fired(planted(tree, tmp_path, split, plant))
    assert sorted(found) == sorted(kinds)
    assert words in found[kinds[0]][0]


def test_numbers_of_file_names_instead_of_image_ids_are_reported(tree, tmp_path):
    """Images 000123.jpg with other ids; detectors that keep stems as numbers write 123."""
    _, directory, model = tree
    shutil.copytree(directory, tmp_path / "b")
    path = tmp_path / "b/detection/annotations_coco/iid_test.json"
    content = json.loads(path.read_text())
    ids = [image["id"] for image in content["images"]]
    shuffled = np.random.default_rng(0).permutation(ids)
    number = dict(zip(ids, (3 * shuffled + 5).tolist(), strict=True))
    for image in content["images"]:
        image["file_name"] = f"{number[image['id']]:06d}.jpg"
    path.write_text(json.dumps(content))
    records = json.loads((model / "iid_test_predictions.json").read_text())
    for record in records:
        record["image_id"] = number[record["image_id"]]
    records = [record for record in records if record["image_id"] in ids]  # the others are unknown
    (tmp_path / "iid_test_predictions.json").write_text(json.dumps(records))
    benchmark = load_benchmark(tmp_path / "b")
    save_index(benchmark, tmp_path / "index.npz")
    for source in (benchmark, read_index(tmp_path / "index.npz")):
        (text,) = fired(evidence(source, tmp_path, "iid_test"))["image positions"]
        assert "if image_id is the number in the file name: likely numbers of file names" in text


def test_a_warning_explained_by_a_more_specific_one_is_omitted(tree, tmp_path):
    for name, kinds in (("corners", ["box layout"]), ("ids from 0", ["shifted ids"])):
        split, plant, fire, _ = PLANTS[name]
        evidence = planted(tree, tmp_path, split, plant)
        assert set(kinds) < set(fire) == set(fired(evidence))
        assert [kind for kind, _ in named_warnings(evidence)] == kinds
    split, plant, fire, _ = PLANTS["another size"]
    assert [kind for kind, _ in named_warnings(planted(tree, tmp_path, split, plant))] == fire
    assert set(EXPECTED) == set(WARNINGS) - {"dropped records"}


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (-1, "if 1 is added to every category_id: likely 0-based ids; every record is"),
        (
            1,
            "if 1 is subtracted from every category_id: likely ids shifted by one; every record is",
        ),
    ],
)
@pytest.mark.parametrize("split", TEST_SPLITS)
def test_unknown_ids_are_explained_by_a_shift_of_all_ids(tree, tmp_path, split, by, words):
    """Even if the shifted first or last id makes the file invalid; on every split."""
    benchmark, _, model = tree
    ends = (int(benchmark.categories.ids.min()), int(benchmark.categories.ids.max()))
    assert set(ends) <= set(trained(benchmark))
    records = json.loads((model / f"{split}_predictions.json").read_text())
    records[3]["category_id"] = ends[by > 0]
    for entry in records:
        entry["category_id"] += by
    path = tmp_path / f"{split}_predictions.json"
    path.write_text(json.dumps(records))
    problems = problems_of(path, benchmark, split)
    (cause,) = {problem.cause for problem in problems}
    assert words in cause
    by_species = "best detections that fit a specimen, " in cause
    assert by_species or "have the id of a trained species" in cause
    assert by_species == (split == "iid_test")
    with pytest.raises(InputError) as error:
        evaluate(benchmark, tmp_path, "m", Options(splits=(split,)))
    assert error.value.problems == problems


EXTREME = [-(2**63), -7, -3, -1, 0, 2, 10**9, 2**53 + 1, 2**63 - 1]
"""Ids from which no size of an array may be taken, ascending."""


def spread(ids):
    """Other ids in the same order: negative ones first, very large ones last."""
    ids = sorted(ids)
    middle = range(10, 10 + 3 * (len(ids) - len(EXTREME)), 3)
    return dict(zip(ids, [*EXTREME[:6], *middle, *EXTREME[6:]], strict=True))


@pytest.mark.parametrize("shifted", [False, True])
def test_negative_and_very_large_ids_change_nothing(tree, tmp_path, shifted):
    """Ids of categories, images and annotations in the same order give the same results."""
    benchmark, directory, model = tree
    shutil.copytree(directory, tmp_path / "b")
    shutil.copytree(model, tmp_path / "p")
    categories = spread(benchmark.categories.ids.tolist())
    images = {}
    for split in TEST_SPLITS:
        images[split] = spread(benchmark.split(split).image_ids.tolist())
        path = tmp_path / "b/detection/annotations_coco" / f"{split}.json"
        content = json.loads(path.read_text())
        numbers = spread(note["id"] for note in content["annotations"])
        for image in content["images"]:
            image["id"] = images[split][image["id"]]
        for note in content["annotations"]:
            note["id"] = numbers[note["id"]]
            note["image_id"] = images[split][note["image_id"]]
            note["category_id"] = categories[note["category_id"]]
        for category in content["categories"]:
            category["id"] = categories[category["id"]]
        path.write_text(json.dumps(content))
        path = tmp_path / "p" / f"{split}_predictions.json"
        records = json.loads(path.read_text())
        for entry in records:
            entry["image_id"] = images[split][entry["image_id"]]
            entry["category_id"] = categories[entry["category_id"]]
        path.write_text(json.dumps(records))
    path = tmp_path / "b/detection/annotations_coco/train.json"
    content = json.loads(path.read_text())
    for note in (*content["annotations"], *content["categories"]):
        key = "category_id" if "category_id" in note else "id"
        note[key] = categories[note[key]]
    path.write_text(json.dumps(content))
    if shifted:  # each id of a trained species as its place among them, from 0
        place = {categories[i]: n for n, i in enumerate(trained(benchmark))}
        path = tmp_path / "p" / "iid_test_predictions.json"
        records = json.loads(path.read_text())
        for entry in records:
            entry["category_id"] = place[entry["category_id"]]
        path.write_text(json.dumps(records))
        loaded = load_benchmark(tmp_path / "b")
        problems = problems_of(path, loaded, "iid_test")
        assert "if category_id numbers the 65 trained species from 0" in problems[0].cause
        return
    before = run_evaluation(directory, model, quiet=True)["per_split"]
    after = run_evaluation(tmp_path / "b", tmp_path / "p", quiet=True)["per_split"]
    for split in TEST_SPLITS:
        renamed = {str(categories[int(k)]): v for k, v in before[split]["per_species"].items()}
        assert after[split] == {**before[split], "per_species": renamed}


def test_one_unknown_id_is_not_explained_by_a_shift(tree, tmp_path):
    benchmark, _, model = tree
    for split in TEST_SPLITS:
        records = json.loads((model / f"{split}_predictions.json").read_text())
        for wrong in (0, int(benchmark.categories.ids.max()) + 1):
            records[3]["category_id"] = wrong
            path = tmp_path / f"{split}_predictions.json"
            path.write_text(json.dumps(records))
            (problem,) = problems_of(path, benchmark, split)
            assert "model's class indices" in problem.cause
            assert ("0-based" if wrong == 0 else "shifted by one, or") in problem.cause
            assert "every record" not in problem.cause


def test_predictions_of_another_split_are_detected_if_all_ids_are_valid(tree, tmp_path):
    benchmark, _, model = tree
    kept = set(benchmark.split("iid_test").image_ids.tolist())
    records = json.loads((model / "semantic_ood_predictions.json").read_text())
    records = [r for r in records if r["image_id"] in kept]
    (tmp_path / "iid_test_predictions.json").write_text(json.dumps(records))
    found = fired(evidence(benchmark, tmp_path, "iid_test"))
    assert list(found) == ["another split", "boxes outside"]
    assert "likely the predictions of semantic_ood" in found["another split"][0]


def test_every_kind_of_warning_is_tested():
    kinds = {kind for _, _, expected, _ in PLANTS.values() for kind in expected}
    assert kinds | {"another split", "untrained species"} == set(WARNINGS)
    # tested in test_evaluate_command
    assert set(BENCHMARK_WARNINGS) == {"taxonomy", "stray files", "shared names"}


@pytest.mark.slow  # 153 models
def test_no_warning_on_any_model_of_the_synthetic_sweep(tmp_path):
    made = make_synthetic(
        tmp_path, sweep=True, scale=0.01, test_scale=0.15, detections_per_specimen=10, jobs=2
    )
    benchmark = load_benchmark(made.benchmark_dir)
    seen = {}
    for model in sorted(made.predictions_dir.iterdir()):
        for split in TEST_SPLITS:
            seen[model.name, split] = warnings_of(evidence(benchmark, model, split))
    assert len(seen) == 153 * 3
    assert {key: texts for key, texts in seen.items() if texts} == {}


# --------------------------------------------------------------------------------------------
# Edge cases with hand-computed results
# --------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path):
    """Writes 40 images with one specimen each and the given detections; returns the evidence."""

    def make(rows, *, split="iid_test", listed=(1, 2), size=(1000, 1000)):
        truth = [[i, 1 + i % 2, [100, 200, 50, 60]] for i in range(1, 41)]
        write_split(tmp_path, split, truth, listed=listed, size=size)
        write_taxonomy(tmp_path, range(1, 200))
        write_predictions(tmp_path, split, rows)
        return evidence(load_benchmark(tmp_path), tmp_path, split)

    return make


def correct(score=lambda i: 0.5 + i / 100):
    return [[i, 1 + i % 2, [100, 200, 50, 60], score(i)] for i in range(1, 41)]


def test_no_warning_on_valid_and_empty_files(small):
    assert warnings_of(small(correct())) == []
    empty = small([])
    assert warnings_of(empty) == []
    assert notes_of(empty) == ["no detections: every specimen is missed"]


def test_constant_species_is_not_a_shift(small):
    rows = [[i, 2 - i % 2, box, score] for i, _, box, score in correct()]
    # 1 and 2 swapped: shifting by one corrects half of them, so it explains;
    # one species for all is just a bad model
    assert list(fired(small(rows))) == ["shifted ids"]
    assert warnings_of(small([[i, 1, box, score] for i, _, box, score in correct()])) == []


@pytest.mark.parametrize(("beyond", "warned"), [(2, True), (1, False)])
def test_fraction_of_boxes_outside_the_image(small, beyond, warned):
    rows = correct()
    for row in rows[:beyond]:
        row[2] = [900, 200, 111.5, 60]
    evidence = small(rows)
    text = "5 % of boxes extend outside their 1000x1000 image (x+w=1011.5)"
    assert any(text in warning for warning in warnings_of(evidence)) == warned
    assert ("1 box partly outside the image" in notes_of(evidence)) == (not warned)


def test_boxes_may_overshoot_by_one_percent_and_a_pixel(small):
    rows = [[i, c, [900, 200, 111, 60], s] for i, c, _, s in correct()]
    assert "boxes outside" not in fired(small(rows))
    rows = [[i, c, [-11, 200, 50, 60], s] for i, c, _, s in correct()]
    assert "boxes outside" not in fired(small(rows))
    rows = [[i, c, [-11.5, 200, 50, 60], s] for i, c, _, s in correct()]
    assert "(x=-11.5)" in fired(small(rows))["boxes outside"][0]


def test_no_warning_on_images_of_unknown_size(small):
    rows = [[i, c, [9000, 200, 50, 60], s] for i, c, _, s in correct()]
    assert warnings_of(small(rows, size=(None, None))) == []


def test_no_warning_on_few_equal_scores(small):
    assert warnings_of(small(correct(lambda i: 0.5)[:19])) == []
    assert list(fired(small(correct(lambda i: 0.5)[:20]))) == ["tied scores"]


def test_one_duplicate_record_in_forty_is_reported(small):
    rows = correct()
    text = fired(small([*rows, rows[6]]))["repeated records"][0]
    assert text.startswith(
        "1 duplicate (2 % of detections) with identical values, for example on image 7 with"
    )
    rows.append([7, 1, [100, 200, 50, 60], rows[6][3]])  # another species: no duplicate
    rows.append([7, 2, [100, 200, 50, 60.5], rows[6][3]])
    assert warnings_of(small(rows)) == []


def test_images_with_only_out_of_vocabulary_detections_are_noted(tmp_path):
    write_split(tmp_path, "iid_test", [[i, 1, [0, 0, 9, 9]] for i in (1, 2, 3)])
    write_split(tmp_path, "train", [[1, 2, [0, 0, 9, 9]]])
    write_taxonomy(tmp_path, [1, 2])
    benchmark = load_benchmark(tmp_path)

    def last_note(*rows):
        write_predictions(tmp_path, "iid_test", [[i, c, [0, 0, 9, 9], 0.5] for i, c in rows])
        return notes_of(evidence(benchmark, tmp_path, "iid_test"))[-1]

    assert last_note((1, 1), (2, 2)) == (
        "2 of 3 images without a detection of a category that iid_test lists"
    )
    assert last_note((1, 1), (1, 2)) == "2 of 3 images without a detection"


def test_empty_boxes_are_noted(small):
    rows = correct()
    rows[0][2] = [100, 200, 0, 60]
    assert notes_of(small(rows)) == [
        "1 detection with zero width or height: always false positives"
    ]


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 5, "0 %"),
        (5, 5, "100 %"),
        (1, 3, "33 %"),
        (1, 1000, "0.1 %"),
        (1, 30_000, "0.003 %"),
        (999, 1000, "99.9 %"),
    ],
)
def test_percent_never_rounds_to_0_or_100(part, whole, text):
    assert percent(part, whole) == text


def test_scores_of_five_decimals_are_not_tied(small):
    generator = np.random.default_rng(0)
    scores = np.round(0.001 * np.exp(generator.random(4000) ** 2.2 * 6.9), 5).tolist()
    boxes = generator.random((4000, 4)) * 400
    rows = [
        [1 + i % 40, 1, b, s] for i, (b, s) in enumerate(zip(boxes.tolist(), scores, strict=True))
    ]
    assert "tied scores" not in fired(small(rows))


@pytest.mark.parametrize("n_duplicates", [0, 49, 600])
def test_duplicates_are_found_in_large_files(small, n_duplicates):
    """Above ``LARGE`` detections only a part is sorted at first."""
    generator = np.random.default_rng(1)
    boxes = (generator.random((51_000, 4)) * 400).tolist()
    scores = generator.random(51_000).tolist()
    rows = [[1 + i % 40, 1, boxes[i], scores[i]] for i in range(51_000)]
    found = fired(small(rows + rows[:n_duplicates]))
    if n_duplicates == 600:
        assert found["repeated records"][0].startswith("600 duplicates (1 % of detections)")
    else:
        assert "repeated records" not in found


# --------------------------------------------------------------------------------------------
# Properties of the warnings that could most easily mistake a bad model for an error
# --------------------------------------------------------------------------------------------

N = 40
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def sizable(tmp_path_factory):
    """Evidence for a file on ``N`` images: made(sizes, specimens, image, boxes, score)."""
    folder = tmp_path_factory.mktemp("sizable")
    write_split(folder, "iid_test", [[i, 1, [1, 1, 9, 9]] for i in range(1, N + 1)], listed=[1])
    write_taxonomy(folder, [1])
    benchmark = load_benchmark(folder)
    nothing = OutOfVocabulary(*(np.zeros(shape) for shape in (0, 0, (0, 4), 0, 0)))

    def made(sizes, specimens, image, boxes, score):
        truth = replace(benchmark.split("iid_test"), sizes=sizes, boxes=specimens)
        category = np.zeros(len(image), np.int64)
        predictions = Predictions(image, category, boxes, score, nothing, {}, "", "")
        return Evidence(predictions, truth, replace(benchmark, splits={"iid_test": truth}))

    return made


def scene(generator):
    """Sizes of images, and a specimen in each."""
    sizes = generator.integers(1500, 6000, (N, 2)).astype(float)
    extent = generator.uniform(0.05, 0.3, (N, 2)) * sizes
    return sizes, np.concatenate([generator.random((N, 2)) * (sizes - extent), extent], axis=1)


@given(seed=seeds, length=st.integers(200, 1300), jitter=st.floats(0, 0.1))
def test_resized_images_are_detected_at_any_length(sizable, seed, length, jitter):
    generator = np.random.default_rng(seed)
    sizes, specimens = scene(generator)
    found = specimens * (length / sizes.max(axis=1, keepdims=True))
    found[:, :2] += jitter * found[:, 2:] * generator.uniform(-1, 1, (N, 2))
    (text,) = WARNINGS["resized images"](
        sizable(sizes, specimens, np.arange(N), found, generator.random(N))
    )
    assert f"{N} in pixels of an image" in text


@given(
    seed=seeds,
    size=st.floats(0.05, 4),
    shift=st.floats(0, 3),
    images=st.integers(1, N),
    place=st.sampled_from(["specimen", "anywhere", "corner"]),
)
def test_bad_models_are_not_mistaken_for_resized_images(sizable, seed, size, shift, images, place):
    """Boxes that are too small, too large, shifted or at random."""
    generator = np.random.default_rng(seed)
    sizes, specimens = scene(generator)
    centre = specimens[:, :2] + specimens[:, 2:] / 2
    if place != "specimen":
        centre = generator.random((N, 2)) * sizes * (1 if place == "anywhere" else 0.3)
    extent = specimens[:, 2:] * size
    found = np.concatenate([centre - extent / 2, extent], axis=1)
    found[:, :2] += shift * specimens[:, 2:] * generator.uniform(-1, 1, (N, 2))
    image = np.arange(images)
    file = sizable(sizes, specimens, image, found[:images], generator.random(images))
    assert list(WARNINGS["resized images"](file)) == []


@given(
    seed=seeds, threshold=st.floats(0.05, 0.6), n=st.integers(2000, 4000), tail=st.floats(0.3, 0.8)
)
def test_score_thresholds_are_detected(sizable, seed, threshold, n, tail):
    """Low scores are the most frequent ones, as in any detector."""
    generator = np.random.default_rng(seed)
    score = threshold + (1 - threshold) * generator.beta(tail, 1, n)
    image = generator.integers(0, N, n)
    boxes = generator.random((n, 4))
    sizes, specimens = scene(generator)
    file = sizable(sizes, specimens, image, boxes, score)
    (text,) = WARNINGS["score threshold"](file)
    assert text.startswith(f"no score below {score.min():.4g}, where the {n:,} scores end")
    low = score.copy()
    low[0] = 0.0499
    assert list(WARNINGS["score threshold"](sizable(sizes, specimens, image, boxes, low))) == []


@given(
    seed=seeds,
    n=st.integers(0, 3000),
    low=st.floats(0.05, 0.6),
    shape=st.tuples(st.floats(4, 20), st.floats(0.5, 20)),
)
def test_scores_that_thin_out_have_no_threshold(sizable, seed, n, low, shape):
    """For any confidence of the model and any number of detections."""
    generator = np.random.default_rng(seed)
    score = low + (1 - low) * generator.beta(*shape, n)
    image = generator.integers(0, N, n)
    sizes, specimens = scene(generator)
    boxes = generator.random((n, 4))
    assert list(WARNINGS["score threshold"](sizable(sizes, specimens, image, boxes, score))) == []
    few = generator.uniform(low, 1, 99)
    file = sizable(sizes, specimens, image[:1].repeat(99), boxes[:1].repeat(99, axis=0), few)
    assert n == 0 or list(WARNINGS["score threshold"](file)) == []


def few_scores(sizable, generator, score):
    sizes, specimens = scene(generator)
    image, boxes = generator.integers(0, N, len(score)), generator.random((len(score), 4))
    return list(WARNINGS["score threshold"](sizable(sizes, specimens, image, boxes, score)))


def test_a_score_threshold_is_detected_in_43_detections(sizable):
    generator = np.random.default_rng(0)
    for threshold in (0.05, 0.25, 0.3, 0.5):
        score = threshold + (1 - threshold) * generator.beta(0.4, 1, 43)
        (text,) = few_scores(sizable, generator, score)
        assert text.startswith(f"no score below {score.min():.4g}, where the 43 scores end")
        assert few_scores(sizable, generator, np.r_[score, 0.0499]) == []
        assert few_scores(sizable, generator, score[:19]) == []


def test_43_detections_without_a_low_score_are_noted(tree, tmp_path):
    """If their scores do not show whether a threshold or the model is the reason."""
    benchmark, _, model = tree
    records = json.loads((model / "iid_test_predictions.json").read_text())
    high = [r for r in records if r["score"] > 0.25]
    kept = [high[i] for i in np.linspace(0, len(high) - 1, 43).astype(int)]

    def found(records):
        (tmp_path / "iid_test_predictions.json").write_text(json.dumps(records))
        return evidence(benchmark, tmp_path, "iid_test")

    file = found(kept)
    assert warnings_of(file) == []
    least = min(r["score"] for r in kept)
    assert notes_of(file)[-1].startswith(f"43 detections, none with a score below {least:.4g}: too")
    low = [r for r in records if r["score"] < 0.05]
    assert "none with a score below" not in notes_of(found([*kept, low[0]]))[-1]
    assert "none with a score below" not in notes_of(found(kept[:19]))[-1]


def test_few_scores_of_a_sound_model_are_no_score_threshold(sizable):
    """Scores of a confident model that thin out, none below 0.05."""
    generator = np.random.default_rng(0)
    fired = 0
    for _ in range(1000):
        low, n = generator.uniform(0.05, 0.6), int(generator.integers(20, 100))
        shape = generator.uniform(4, 20), generator.uniform(0.5, 20)
        fired += len(few_scores(sizable, generator, low + (1 - low) * generator.beta(*shape, n)))
    assert fired == 0


def test_an_untrained_species_of_train_json_is_no_shift_of_ids(tree, tmp_path):
    """train.json lists it, but no training image holds it; predicted in 1 % of detections."""
    _, directory, model = tree
    shutil.copytree(directory, tmp_path / "b")
    path = tmp_path / "b/detection/annotations_coco/train.json"
    content = json.loads(path.read_text())
    empty = content["annotations"][0]["category_id"]
    content["annotations"] = [a for a in content["annotations"] if a["category_id"] != empty]
    path.write_text(json.dumps(content))
    benchmark = load_benchmark(tmp_path / "b")
    records = json.loads((model / "iid_test_predictions.json").read_text())
    others = [r for r in records if r["category_id"] != empty]

    def found(every):
        changed = [dict(r, category_id=empty) for r in others[::every]]
        rest = [r for n, r in enumerate(others) if n % every]
        (tmp_path / "iid_test_predictions.json").write_text(json.dumps(changed + rest))
        return evidence(benchmark, tmp_path, "iid_test")

    ((kind, text),) = named_warnings(found(100))
    assert kind == "untrained species"
    assert text == (
        f"1 % of detections are of species that train.json lists, but has no annotation of "
        f"(category_id {empty}): likely a model trained on other annotations than train.json"
    )
    few = found(1000)
    assert warnings_of(few) == []
    assert "of a species without training images" in notes_of(few)[-1]
    (tmp_path / "iid_test_predictions.json").write_text(json.dumps(others))
    assert warnings_of(evidence(benchmark, tmp_path, "iid_test")) == []


@pytest.mark.parametrize("first", [0, 1])
def test_positions_in_a_list_of_images_are_not_another_size(tree, tmp_path, first):
    """In a file whose image ids do not ascend; all are ids of the split unless one is 0."""
    _, directory, model = tree
    shutil.copytree(directory, tmp_path / "b")
    path = tmp_path / "b/detection/annotations_coco/iid_test.json"
    content = json.loads(path.read_text())
    order = np.random.default_rng(0).permutation(len(content["images"]))
    content["images"] = [content["images"][i] for i in order]
    path.write_text(json.dumps(content))
    place = {image["id"]: n for n, image in enumerate(content["images"], first)}
    benchmark = load_benchmark(tmp_path / "b")
    records = json.loads((model / "iid_test_predictions.json").read_text())
    path = tmp_path / "iid_test_predictions.json"
    path.write_text(json.dumps(records))
    assert warnings_of(evidence(benchmark, tmp_path, "iid_test")) == []
    for entry in records:
        entry["image_id"] = place[entry["image_id"]]
    path.write_text(json.dumps(records))
    words = f"if image_id numbers the images in the order of the annotation file from {first}"
    if first == 0:
        problems = problems_of(path, benchmark, "iid_test")
        assert all(words in p.cause for p in problems if p.times == 1)
        return
    ((kind, text),) = named_warnings(evidence(benchmark, tmp_path, "iid_test"))
    assert kind == "image positions"
    assert words in text
    index = tmp_path / "i.npz"
    save_index(benchmark, index)
    assert warnings_of(evidence(read_index(index), tmp_path, "iid_test")) == [text]


def test_a_cap_on_detections_per_image_is_not_a_score_threshold(sizable):
    """The best ten detections of each image can all have high scores."""
    generator = np.random.default_rng(0)
    image = np.arange(N).repeat(10)
    score = generator.uniform(0.3, 1, len(image))
    sizes, specimens = scene(generator)
    file = sizable(sizes, specimens, image, generator.random((len(image), 4)), score)
    assert list(WARNINGS["score threshold"](file)) == []
    file = sizable(sizes, specimens, *(c[5:] for c in (image, file.predictions.boxes, score)))
    assert list(WARNINGS["score threshold"](file)) == []
