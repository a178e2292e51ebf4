"""Training subsets: known counts, nested draws, targets with small budgets, expected budgets."""

import csv
import itertools
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from support.factories import SPECIES, write_benchmark

from benchmark_eval.cli.subsets import command
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.manifest import parse_budget, read_manifest
from benchmark_eval.protocol import REGIMES
from benchmark_eval.training.budgets import Budget, exact_budget
from benchmark_eval.training.regimes import GRID, condition_name, n_drawn
from benchmark_eval.training.subsets import Draw, TrainingPool, write_subsets

GU, IN, IUT = REGIMES
TARGETS = {1, 3, 5}
"""Category ids of the factories' target species; 2 is also on image 1, 4 on image 7."""
ANNOTATIONS = "detection/annotations_coco/train.json"


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    folder = write_benchmark(tmp_path_factory.mktemp("benchmark"))
    name_images(folder)
    return folder


def name_images(folder):
    """Give the factories' training images file names and some fields of the real records."""
    path = folder / ANNOTATIONS
    coco = json.loads(path.read_text())
    for image in coco["images"]:
        image["file_name"] = f"beetle_{image['id']:02d}.jpg"
        image["license_name"] = "CC BY 4.0"
    for note in coco["annotations"]:
        note["source_record_id"] = f"r{note['id']}"
        note["bbox"][0] += 0.1
    coco["info"] = {"version": "0.0"}
    coco["licenses"] = []
    path.write_text(json.dumps(coco))


@pytest.fixture(scope="module")
def pool(benchmark):
    return TrainingPool(benchmark)


def trained(pool, regime, k_or_p, seed=0):
    """The (image id, category id) pairs that a subset trains on, and the subset."""
    subset = pool.draw(Draw(regime, k_or_p, seed))
    rows = np.flatnonzero(subset.trained)
    return {(int(pool.columns.image[r]), int(pool.columns.category[r])) for r in rows}, subset


def images_of(pairs, species):
    return {image for image, category in pairs if category == species}


# --- counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("regime", "k_or_p", "expected"),
    [
        (GU, "1", (1, 1, 1, 1, 1)),
        (GU, "2", (2, 2, 2, 2, 1)),
        (GU, "all", (4, 2, 2, 6, 1)),
        (IN, "0.01", (1, 1, 1, 1, 1)),
        (IN, "0.25", (1, 1, 1, 2, 1)),  # 6 x 0.25 + 0.5 = 2, floor 2
        (IN, "0.375", (2, 1, 1, 2, 1)),  # 4 x 0.375 + 0.5 = 2; 6 x 0.375 + 0.5 = 2.75
        (IN, "0.5", (2, 1, 1, 3, 1)),
        (IN, "1", (4, 2, 2, 6, 1)),
        (IUT, "0", (0, 2, 0, 6, 0)),
        (IUT, "1", (1, 2, 1, 6, 1)),
        (IUT, "3", (3, 2, 2, 6, 1)),
    ],
)
def test_number_of_images_drawn_per_species(pool, regime, k_or_p, expected):
    for seed in range(5):
        pairs, _ = trained(pool, regime, k_or_p, seed)
        assert tuple(len(images_of(pairs, s)) for s in (1, 2, 3, 4, 5)) == expected


def test_halves_are_rounded_up_and_p_is_an_exact_decimal():
    n = np.array([5, 15, 50, 1, 0, 150])
    nobody = np.zeros(6, bool)
    # 0.1 x 5 = 0.5 -> 1; 0.1 x 15 = 1.5 -> 2; in binary 0.15 x 50 + 0.5 would be just below 8
    assert n_drawn(IN, "0.1", n, nobody).tolist() == [1, 2, 5, 1, 0, 15]
    assert n_drawn(IN, "0.15", n, nobody).tolist() == [1, 2, 8, 1, 0, 23]
    assert n_drawn(IN, "0.29", np.array([50]), nobody[:1]).tolist() == [15]  # 14.5 + 0.5


def test_k_0_excludes_targets_only(pool):
    pairs, subset = trained(pool, IUT, "0")
    assert {s for _, s in pairs} == {2, 4}
    # images 1 and 5 hold species 2, 7 to 12 species 4; image 1 also holds species 1, 7 species 3
    ids = pool.columns.image_ids[subset.images].tolist()
    assert ids == [1, 5, 7, 8, 9, 10, 11, 12]
    assert (subset.budget.n_images, subset.budget.n_specimens) == (8, 4 + 6)


# --- nesting and independence -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("regime", "grid"),
    [
        (GU, ["1", "2", "3", "5", "all"]),
        (IN, ["0.01", "0.1", "0.25", "0.4", "0.5", "1"]),
        (IUT, ["0", "1", "2", "10"]),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_subsets_of_a_regime_and_seed_are_nested(pool, regime, grid, seed):
    for less, more in itertools.pairwise(grid):
        small, a = trained(pool, regime, less, seed)
        large, b = trained(pool, regime, more, seed)
        assert small <= large
        assert not (a.trained & ~b.trained).any()
        assert not (a.images & ~b.images).any()


def test_seeds_and_regimes_draw_differently(pool):
    by_seed = {frozenset(trained(pool, GU, "2", s)[0]) for s in range(20)}
    assert len(by_seed) > 10
    # the same count of images from species 4, but another order for another regime
    uniform = [images_of(trained(pool, GU, "3", s)[0], 4) for s in range(20)]
    natural = [images_of(trained(pool, IN, "0.5", s)[0], 4) for s in range(20)]
    assert uniform != natural


def test_the_draw_of_a_species_is_independent_of_other_species_and_file_order(tmp_path, pool):
    folder = write_benchmark(tmp_path / "other")
    name_images(folder)
    path = folder / ANNOTATIONS
    coco = json.loads(path.read_text())
    coco["annotations"] = [a for a in coco["annotations"] if a["category_id"] != 3][::-1]
    coco["images"].reverse()
    path.write_text(json.dumps(coco))
    other = TrainingPool(folder)
    for seed in range(5):
        for species in (1, 2, 4, 5):
            ours = images_of(trained(pool, GU, "2", seed)[0], species)
            assert images_of(trained(other, GU, "2", seed)[0], species) == ours


def test_the_draw_is_the_same_on_every_machine(pool):
    """Fixed values: another numpy, platform or Python must draw the same images."""
    drawn = {
        seed: [sorted(images_of(trained(pool, GU, "2", seed)[0], s)) for s in (1, 2, 3, 4, 5)]
        for seed in (0, 1)
    }
    assert drawn == GOLDEN


GOLDEN = {
    0: [[3, 4], [1, 5], [6, 7], [8, 11], [13]],
    1: [[2, 4], [1, 5], [6, 7], [7, 8], [13]],
}


@st.composite
def training_sets(draw):
    """(image, species, boxes) incidence of a small benchmark: 1-6 species on 1-12 images."""
    n_species = draw(st.integers(1, 6))
    n_images = draw(st.integers(1, 12))
    cells = st.tuples(st.integers(1, n_images), st.integers(1, n_species), st.integers(1, 4))
    return draw(st.lists(cells, min_size=1, max_size=30)), draw(st.sets(st.integers(1, n_species)))


def write_training_set(folder, cells, targets):
    coco = folder / "detection" / "annotations_coco"
    coco.mkdir(parents=True, exist_ok=True)
    species = sorted({s for _, s, _ in cells})
    rows = [
        f"Species s{s},S,T,G,trainable,{'near_genus' if s in targets else ''},near_genus"
        for s in species
    ]
    header = (
        "scientificName,subfamily,tribe,genus,benchmark_role,target_band,distance_band_vs_trainable"
    )
    (folder / "species_taxonomy.csv").write_text("\n".join([header, *rows]) + "\n")
    notes = [
        {"image_id": i, "category_id": s, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}
        for i, s, n in cells
        for _ in range(n)
    ]
    content = {
        "images": [
            {"id": i, "file_name": f"{i}.jpg", "width": 99, "height": 99}
            for i in sorted({i for i, _, _ in cells})
        ],
        "annotations": [{"id": at, **note} for at, note in enumerate(notes, start=1)],
        "categories": [{"id": s, "name": f"Species s{s}"} for s in species],
    }
    (coco / "train.json").write_text(json.dumps(content))
    return folder


@given(training_sets(), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_every_benchmark_gives_nested_subsets_of_the_right_size(tmp_path_factory, made, seed):
    cells, targets = made
    pool = TrainingPool(write_training_set(tmp_path_factory.mktemp("any"), cells, targets))
    has = {s: {i for i, t, _ in cells if t == s} for s in {s for _, s, _ in cells}}
    for regime, grid in ((GU, "1 2 4 all"), (IN, "0.1 0.5 1"), (IUT, "0 1 3")):
        before = set()
        for k_or_p in grid.split():
            pairs, subset = trained(pool, regime, k_or_p, seed)
            assert before <= pairs
            before = pairs
            for s, images in has.items():
                drawn = images_of(pairs, s)
                assert drawn <= images
                if regime == IN:
                    n = min(len(images), max(1, math.floor(float(k_or_p) * len(images) + 0.5)))
                elif k_or_p == "all" or (regime == IUT and s not in targets):
                    n = len(images)
                else:
                    n = min(int(k_or_p), len(images))
                assert len(drawn) == n
            assert subset.images.sum() == len({i for i, _ in pairs})


# --- files ------------------------------------------------------------------------------------


def test_a_subset_has_the_records_of_train_json_with_undrawn_boxes_as_crowd(benchmark, tmp_path):
    write_subsets(benchmark, tmp_path, conditions=[(IUT, "1"), (GU, "all")], seeds=[4])
    whole = json.loads((benchmark / ANNOTATIONS).read_text())
    subset = json.loads((tmp_path / "iut_k1_s4" / "train.json").read_text())
    notes = {a["id"]: a for a in whole["annotations"]}
    pairs, drawn = trained(TrainingPool(benchmark), IUT, "1", 4)
    kept = set(TrainingPool(benchmark).columns.image_ids[drawn.images].tolist())
    assert [i for i in whole["images"] if i["id"] in kept] == subset["images"]
    assert subset["categories"] == whole["categories"]
    assert subset["licenses"] == []
    # all boxes of the included images are in the file, in file order
    assert [a["id"] for a in subset["annotations"]] == [
        a["id"] for a in whole["annotations"] if a["image_id"] in kept
    ]
    for note in subset["annotations"]:
        crowd = int((note["image_id"], note["category_id"]) not in pairs)
        assert note == {**notes[note["id"]], "iscrowd": crowd}
    assert subset["info"]["version"] == "0.0"
    assert subset["info"]["training_subset"]["seed"] == 4
    names = (tmp_path / "iut_k1_s4" / "images.txt").read_text().split()
    assert names == [i["file_name"] for i in subset["images"]]
    everything = json.loads((tmp_path / "gu_kall_s4" / "train.json").read_text())
    assert everything["annotations"] == whole["annotations"]
    assert everything["images"] == whole["images"]


def test_undrawn_targets_on_mixed_images_are_crowd(benchmark, tmp_path):
    write_subsets(benchmark, tmp_path, conditions=[(IUT, "0")], seeds=[0])
    notes = json.loads((tmp_path / "iut_k0_s0" / "train.json").read_text())["annotations"]
    crowd = {(a["image_id"], a["category_id"]) for a in notes if a["iscrowd"]}
    assert crowd == {(1, 1), (7, 3)}  # targets on images that species 2 and 4 have drawn
    assert not TARGETS & {a["category_id"] for a in notes if not a["iscrowd"]}


def test_crowd_of_train_json_stays_crowd_and_is_never_drawn(tmp_path):
    folder = write_training_set(tmp_path / "b", [(1, 1, 1), (2, 1, 1)], set())
    path = folder / ANNOTATIONS
    coco = json.loads(path.read_text())
    coco["annotations"][1]["iscrowd"] = 1
    path.write_text(json.dumps(coco))
    for seed in range(4):
        pairs, subset = trained(TrainingPool(folder), GU, "1", seed)
        assert pairs == {(1, 1)}
        assert subset.budget.n_specimens == 1


def test_crowd_counts_in_no_budget(tmp_path):
    """Five images with seven boxes, of which three on three images are not crowd."""
    cells = [(1, 1, 2), (2, 1, 1), (3, 2, 2), (4, 2, 1), (5, 2, 1)]
    folder = write_training_set(tmp_path / "b", cells, {2})
    path = folder / ANNOTATIONS
    coco = json.loads(path.read_text())
    for row in (1, 4, 5, 6):  # half of image 1, half of 3, all of 4 and 5
        coco["annotations"][row]["iscrowd"] = 1
    path.write_text(json.dumps(coco))
    made = write_subsets(folder, tmp_path / "s", seeds=[0])
    whole = {r.draw.k_or_p: r for r in made.rows if r.draw.regime == GU}["all"]
    assert (whole.exact.n_images, whole.exact.n_specimens) == (3.0, 3.0)
    assert whole.expected == whole.exact
    truth = load_benchmark(folder)
    assert exact_budget(path, truth).budget == whole.exact  # train.json itself
    rows = {(r.draw.regime, r.draw.k_or_p): r for r in made.rows}
    for row in rows.values():
        written = made.folder / row.draw.name / "train.json"
        assert exact_budget(written, truth).budget == row.exact
    # k = 1: species 1 draws one of images 1 and 2, species 2 its only image
    assert rows[GU, "1"].expected == rows[GU, "1"].exact == Budget(2.0, 2.0)
    assert rows[IUT, "0"].expected == rows[IUT, "0"].exact == Budget(2.0, 2.0)
    # in the metrics the benchmark's evaluator counts crowd, and so do we
    assert truth.categories.n_train_images.tolist() == [2, 3]
    assert truth.categories.n_train_objects.tolist() == [3, 4]


def test_training_annotations_of_crowd_only_have_a_budget_of_zero(tmp_path):
    folder = write_training_set(tmp_path / "b", [(1, 1, 2)], set())
    path = folder / ANNOTATIONS
    path.write_text(path.read_text().replace('"iscrowd": 0', '"iscrowd": 1'))
    budget = TrainingPool(folder).expected.budget(GU, "all")
    assert budget == exact_budget(path, load_benchmark(folder)).budget == Budget(0.0, 0.0)


def test_the_grid_is_reproducible_and_has_exact_budgets(benchmark, tmp_path):
    a = write_subsets(benchmark, tmp_path / "a")
    b = write_subsets(str(benchmark), tmp_path / "else" / "b")
    files = sorted(p.relative_to(a.folder) for p in a.folder.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(b.folder) for p in b.folder.rglob("*") if p.is_file())
    assert len(files) == 51 * 2 + 3  # and the record
    for name in files:
        assert (a.folder / name).read_bytes() == (b.folder / name).read_bytes()
    manifest = read_manifest(a.manifest)
    assert len(manifest.models) == 51
    truth = load_benchmark(benchmark)
    rows = {(r.draw.regime, r.draw.k_or_p, r.draw.seed): r for r in a.rows}
    for entry in manifest.models:
        counted = exact_budget(entry.train_annotations, truth).budget
        assert counted == rows[entry.regime, entry.k_or_p, entry.seed].exact
    with (a.folder / "budgets.csv").open() as stream:
        table = list(csv.DictReader(stream))
    k2 = [r for r in table if (r["regime"], r["k_or_p"]) == (GU, "all")]
    assert [(r["n_images"], r["expected_n_images"], r["n_specimens"]) for r in k2] == [
        ("13", "13.0", "22")
    ] * 3


def test_a_subset_loads_as_a_benchmark_split(benchmark, tmp_path):
    made = write_subsets(benchmark, tmp_path, conditions=[(GU, "1")], seeds=[0])
    layout = tmp_path / "as_benchmark"
    (layout / "detection/annotations_coco").mkdir(parents=True)
    (layout / "species_taxonomy.csv").write_bytes((benchmark / "species_taxonomy.csv").read_bytes())
    subset = made.folder / "gu_k1_s0" / "train.json"
    (layout / ANNOTATIONS).write_bytes(subset.read_bytes())
    loaded = load_benchmark(layout)
    assert loaded.splits["train"].n_scored == made.rows[0].exact.n_specimens


# --- expected against simulated ---------------------------------------------------------------


@pytest.mark.parametrize(("regime", "k_or_p"), [(GU, "1"), (GU, "2"), (IN, "0.4"), (IUT, "1")])
def test_mean_budgets_over_many_seeds_match_the_expected_budgets(pool, regime, k_or_p):
    draws = [pool.draw(Draw(regime, k_or_p, seed)).budget for seed in range(600)]
    expected = pool.expected.budget(regime, k_or_p)
    for name in ("n_images", "n_specimens"):
        values = np.array([getattr(d, name) for d in draws])
        error = values.std(ddof=1) / math.sqrt(len(values))
        assert abs(values.mean() - getattr(expected, name)) < 4 * error


def test_every_image_of_a_species_is_drawn_equally_often(pool):
    n = 900
    counts = np.zeros(13)
    for seed in range(n):
        for image in images_of(trained(pool, GU, "2", seed)[0], 4):
            counts[image] += 1
    fraction = counts[7:13] / n  # 2 of 6 images
    assert np.abs(fraction - 1 / 3).max() < 4 * math.sqrt(2 / 9 / n)


# --- the manifest -----------------------------------------------------------------------------


def test_architectures_share_their_subsets(benchmark, tmp_path):
    conditions = [(GU, "1"), (IN, "0.10")]
    made = write_subsets(
        benchmark, tmp_path, conditions=conditions, seeds=[0, 1], architectures=["yolo11x", "detr"]
    )
    entries = read_manifest(made.manifest).models
    assert len(entries) == 8
    assert len({e.train_annotations for e in entries}) == 4
    assert entries[0].model_name == "yolo11x_gu_k1_s0"
    assert entries[-1].model_name == "detr_in_p010_s1"
    assert entries[-1].k_or_p == "0.1"
    assert all(e.train_annotations.is_file() for e in entries)


def test_filling_in_a_manifest_changes_nothing_else(benchmark, tmp_path):
    sheet = tmp_path / "project" / "sweep.csv"
    sheet.parent.mkdir()
    sheet.write_text(
        "seed,architecture,model_name,k_or_p,regime,predictions_dir\n"
        f"1,x,007,1.0,{GU},p/007\n"
        f'0,x,"NA, or so",1e-1,{IN},\n'
        f"1,y,null,1,{GU},\n"
    )
    made = write_subsets(benchmark, tmp_path / "project" / "subsets", manifest=sheet)
    assert sheet.read_text().splitlines() == [
        "seed,architecture,model_name,k_or_p,regime,predictions_dir,train_annotations",
        f"1,x,007,1.0,{GU},p/007,subsets/gu_k1_s1/train.json",
        f'0,x,"NA, or so",1e-1,{IN},,subsets/in_p010_s0/train.json',
        f"1,y,null,1,{GU},,subsets/gu_k1_s1/train.json",
    ]
    assert len(made.rows) == 2
    before = sheet.read_text()
    write_subsets(benchmark, tmp_path / "project" / "subsets", manifest=sheet)
    assert sheet.read_text() == before


def test_other_annotations_in_the_manifest_are_not_overwritten(benchmark, tmp_path):
    sheet = tmp_path / "m.csv"
    sheet.write_text(
        f"model_name,regime,k_or_p,seed,train_annotations\na,{GU},1,0,mine.json\nb,{GU},1,1,\n"
    )
    with pytest.raises(InputError, match=r"row 1 \(line 2\), train_annotations: found 'mine.json'"):
        write_subsets(benchmark, tmp_path / "out", manifest=sheet)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("regime", "k_or_p", "name"),
    [
        (GU, "all", "gu_kall"),
        (GU, "10", "gu_k10"),
        (IN, "0.01", "in_p001"),
        (IN, "0.1", "in_p010"),
        (IN, "0.10", "in_p010"),
        (IN, "1", "in_p100"),
        (IN, "0.125", "in_p0125"),
        (IUT, "0", "iut_k0"),
    ],
)
def test_names_of_conditions(regime, k_or_p, name):
    assert condition_name(regime, k_or_p) == name


def test_no_two_conditions_share_a_name():
    fractions = [f"0.{'0' * z}{d}" for z in range(4) for d in range(1, 100)] + ["1"]
    canonical = {parse_budget(IN, p)[1] for p in fractions}
    assert len({condition_name(IN, p) for p in canonical}) == len(canonical)
    assert len({condition_name(*c) for c in GRID}) == 17


# --- bad input --------------------------------------------------------------------------------


def run(*args):
    return CliRunner().invoke(command, [str(a) for a in args], standalone_mode=False)


def test_all_problems_of_the_conditions_are_reported_together(benchmark, tmp_path):
    result = run(
        "--benchmark-dir", benchmark, "--output-dir", tmp_path / "out", "--seed", "-1",
        "--condition", IN, "0", "--condition", GU, "0", "--condition", IUT, "2.5",
        "--condition", GU, "3",
    )  # fmt: skip
    assert isinstance(result.exception, UsageError)
    text = str(result.exception)
    assert "seed must be >= 0, got -1" in text
    assert "incremental_natural: p must be in (0, 1], got '0'" in text
    assert "global_uniform: k must be an integer >= 1 or all, got '0'" in text
    assert "incremental_uniform_targets: k must be an integer >= 0, got '2.5'" in text
    assert not (tmp_path / "out").exists()


def test_species_with_fewer_than_k_images_are_reported(benchmark, tmp_path):
    result = run(
        "--benchmark-dir", benchmark, "--output-dir", tmp_path, "--seed", 0,
        "--condition", GU, "3", "--condition", IUT, "3", "--condition", IUT, "1",
    )  # fmt: skip
    assert result.exception is None
    assert "global_uniform k=3: 3 species have fewer images (Xa bina, Yb una, Zc una)" in (
        result.output
    )
    assert "incremental_uniform_targets k=3: 2 species have fewer images (Yb una, Zc una)" in (
        result.output
    )
    assert "k=1:" not in result.output
    with (tmp_path / "budgets.csv").open() as stream:
        assert [r["n_species_short"] for r in csv.DictReader(stream)] == ["3", "2", "0"]


def test_a_missing_train_json_is_reported(tmp_path):
    folder = write_benchmark(tmp_path / "b")
    (folder / ANNOTATIONS).unlink()
    with pytest.raises(InputError, match=r"train.json: no such file"):
        write_subsets(folder, tmp_path / "out")


def test_images_without_a_file_name_are_reported_before_anything_is_written(tmp_path):
    folder = write_benchmark(tmp_path / "b")
    with pytest.raises(InputError, match="image 1, file_name: missing field"):
        write_subsets(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_options_that_contradict_the_manifest_are_rejected(benchmark, tmp_path):
    result = run(
        "--benchmark-dir", benchmark, "--output-dir", tmp_path, "--manifest", "m.csv", "--seed", 1
    )  # fmt: skip
    assert "cannot be combined" in str(result.exception)


@pytest.mark.parametrize("change", ["digest", "image", "boxes"])
def test_a_subset_of_another_benchmark_is_rejected_by_exact_budget(benchmark, tmp_path, change):
    made = write_subsets(benchmark, tmp_path, conditions=[(GU, "all")], seeds=[0])
    path = made.folder / "gu_kall_s0" / "train.json"
    coco = json.loads(path.read_text())
    if change == "digest":
        coco["info"]["training_subset"]["train_json_sha256"] = "0" * 64
    else:
        del coco["info"]
        coco["annotations"][0]["image_id"] = 99 if change == "image" else 13
    path.write_text(json.dumps(coco))
    found = {"digest": "SHA-256 000000000000", "image": "image 99", "boxes": "2 boxes on image 13"}
    with pytest.raises(InputError, match=found[change]) as caught:
        exact_budget(path, load_benchmark(benchmark))
    assert "another benchmark" in str(caught.value)


def test_the_factories_have_the_species_that_these_tests_assume():
    assert [(s[0], s[2] != "", len(s[4])) for s in SPECIES[:5]] == [
        (1, True, 4),
        (2, False, 2),
        (3, True, 2),
        (4, False, 6),
        (5, True, 1),
    ]
