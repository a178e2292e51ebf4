"""The synthetic benchmark: counts and layout of the real one, valid files, identical bytes."""

import csv
import hashlib
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_eval.core.errors import UsageError
from benchmark_eval.core.outputs import RECORD
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.synthetic import invented_species, make_synthetic, synthetic_benchmark
from benchmark_eval.synthetic.conditions import sweep_models
from benchmark_eval.synthetic.randomness import apportion, stream

SPLITS = ("train", "iid_test", "inat_test", "semantic_ood")
TESTED = SPLITS[1:]
BANDS = ("near_genus", "mid_tribe", "far_tribe")


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def read_csv(path):
    with Path(path).open(newline="", encoding="utf-8") as stream_:
        return list(csv.DictReader(stream_))


def read_split(benchmark, split):
    path = Path(benchmark) / "detection" / "annotations_coco" / f"{split}.json"
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A small benchmark on disk with one model."""
    return make_synthetic(
        tmp_path_factory.mktemp("synthetic"), scale=0.02, seed=3, detections_per_specimen=12, jobs=1
    )


@pytest.fixture(scope="module")
def full():
    """The ground truth at full size, in memory."""
    return synthetic_benchmark(invented_species(), seed=0, scale=1.0, test_scale=1.0)


def test_counts_at_full_size_match_the_dataset_card(full):
    found = {
        split: (truth.n_images, int((~truth.crowd).sum()), int(truth.crowd.sum()))
        for split, truth in full.splits.items()
    }
    assert found == {
        "train": (6096, 53040, 0),
        "iid_test": (620, 650, 4367),
        "inat_test": (74, 80, 8),
        "semantic_ood": (7701, 46924, 0),
    }
    listed = {split: len(np.unique(truth.species)) for split, truth in full.splits.items()}
    assert listed == {"train": 65, "iid_test": 65, "inat_test": 8, "semantic_ood": 110}


def test_bands_at_full_size_match_the_dataset_card(full):
    truth = full.splits["semantic_ood"]
    band_of = np.array([s.distance_band for s in full.species])
    bands = band_of[truth.species]
    boxes, images, effective = {}, {}, {}
    for band in BANDS:
        inside = bands == band
        per_species = np.bincount(truth.species[inside]).astype(float)
        boxes[band] = int(inside.sum())
        images[band] = len(np.unique(truth.image[inside]))
        effective[band] = round(per_species.sum() ** 2 / (per_species**2).sum(), 1)
    assert boxes == {"near_genus": 23791, "mid_tribe": 17099, "far_tribe": 6034}
    # the sum over the bands is the number of images: no image has two bands
    assert images == {"near_genus": 4227, "mid_tribe": 2807, "far_tribe": 667}
    assert effective == {"near_genus": 11.4, "mid_tribe": 7.4, "far_tribe": 2.6}
    far = np.sort(np.bincount(truth.species[bands == "far_tribe"]))
    assert far[-2:].sum() / far.sum() == pytest.approx(0.84, abs=0.001)


def test_distribution_of_the_full_size_training_set(full):
    truth = full.splits["train"]
    per_image = truth.specimens_per_image
    assert per_image.min() == 1
    assert 150 < per_image.max() <= 200
    assert np.median(per_image) == 1
    species_on_image = Counter(np.unique(truth.image * 175 + truth.species) // 175)
    assert sum(n > 1 for n in species_on_image.values()) > 50
    images = np.sort(full.train_images[full.train_images > 0])
    assert images.sum() == 6096
    assert images[-16:].sum() > 0.6 * 6096
    assert images[:16].sum() < 0.07 * 6096
    targets = [full.train_images[s.category_id - 1] for s in full.species if s.target_band]
    assert min(targets) > 25
    not_large = sum(int((t.box[:, 2] * t.box[:, 3] < 96**2).sum()) for t in full.splits.values())
    assert not_large == 10


def test_balanced_splits_have_ten_scored_boxes_per_species(full):
    for split, n_species in (("iid_test", 65), ("inat_test", 8)):
        truth = full.splits[split]
        counts = np.bincount(truth.species[~truth.crowd])
        assert sorted(counts[counts > 0]) == [10] * n_species


def test_taxonomy_has_the_counts_of_the_dataset_card():
    species = invented_species()
    assert [s.category_id for s in species] == list(range(1, 176))
    assert len({s.name for s in species}) == 175
    assert len({s.genus for s in species}) == 70
    assert len({s.tribe for s in species}) == 21
    assert len({s.subfamily for s in species}) == 2
    held_out = [s for s in species if not s.trainable]
    found = {}
    for band in BANDS:
        members = [s for s in held_out if s.distance_band == band]
        found[band] = (
            len(members),
            len({s.genus for s in members}),
            len({s.tribe for s in members}),
        )
    assert found == {"near_genus": (59, 23, 13), "mid_tribe": (43, 27, 9), "far_tribe": (8, 5, 4)}
    assert len({s.genus for s in held_out}) == 55
    assert len({s.tribe for s in held_out}) == 19
    assert Counter(s.target_band for s in species if s.target_band) == dict.fromkeys(BANDS, 4)
    field = [s for s in species if s.in_field]
    assert len(field) == 8
    assert len({s.subfamily for s in field}) == 1


def band_towards(species, others):
    if species.genus in {o.genus for o in others}:
        return "near_genus"
    return "mid_tribe" if species.tribe in {o.tribe for o in others} else "far_tribe"


def test_bands_follow_from_the_ranks():
    species = invented_species()
    trained = [s for s in species if s.trainable]
    assert len({(s.genus, s.tribe, s.subfamily) for s in species}) == 70  # one tribe per genus
    assert len({(s.tribe, s.subfamily) for s in species}) == 21
    for one in species:
        assert one.distance_band == band_towards(one, [s for s in trained if s is not one])
    no_target = [s for s in trained if not s.target_band]
    for one in trained:
        if one.target_band:
            assert one.target_band == band_towards(one, no_target)
    # the two bands differ for some targets
    assert any(s.target_band not in ("", s.distance_band) for s in trained)


REAL_GENERA = [
    "Ips",
    "Scolytus",
    "Dendroctonus",
    "Hylastes",
    "Hylurgus",
    "Hylurgops",
    "Tomicus",
    "Xyleborus",
    "Xylosandrus",
    "Euwallacea",
    "Xyleborinus",
    "Trypodendron",
    "Gnathotrichus",
    "Pityogenes",
    "Pityophthorus",
    "Pityokteines",
    "Polygraphus",
    "Orthotomicus",
    "Cryphalus",
    "Hypothenemus",
    "Hylesinus",
    "Phloeosinus",
    "Phloeotribus",
    "Dryocoetes",
    "Crypturgus",
    "Corthylus",
    "Monarthrum",
    "Platypus",
    "Euplatypus",
    "Megaplatypus",
    "Treptoplatypus",
    "Crossotarsus",
    "Myoplatypus",
    "Oxoplatypus",
    "Ambrosiodmus",
    "Anisandrus",
    "Cnestus",
    "Coccotrypes",
    "Scolytoplatypus",
    "Taphrorychus",
    "Trypophloeus",
    "Ernoporus",
    "Leperisinus",
    "Hylurgopinus",
    "Pseudohylesinus",
    "Chaetophloeus",
    "Carphoborus",
    "Chramesus",
    "Micracis",
    "Thysanoes",
    "Diapus",
    "Tesserocerus",
]


def test_names_are_obviously_invented():
    species = invented_species()
    genera = {s.genus for s in species}
    assert not {g.lower() for g in genera} & {g.lower() for g in REAL_GENERA}
    stems = {s.tribe.removesuffix("ini") for s in species}
    assert not {r for r in REAL_GENERA for stem in stems if r.lower().startswith(stem.lower())}
    assert all(re.fullmatch(r"[A-Z][a-z]+ [a-z]+", s.name) for s in species)
    assert not {s.subfamily for s in species} & {"Scolytinae", "Platypodinae"}


def test_layout_and_records(tree):
    root = tree.benchmark_dir.parent
    assert set(files_of(root)) == {
        *(f"benchmark/detection/annotations_coco/{split}.json" for split in SPLITS),
        *(
            f"benchmark/{name}"
            for name in ("README.md", "MANIFEST.csv", "image_licences.csv", "species_taxonomy.csv")
        ),
        *(f"predictions/alder_gu_kall_s0/{split}_predictions.json" for split in TESTED),
        "manifest.csv",
        "synthetic.json",
        RECORD,
    }
    assert json.loads((root / "synthetic.json").read_text())["complete"] is True
    licences = read_csv(tree.benchmark_dir / "image_licences.csv")
    seen_images, seen_records = set(), set()
    for split in SPLITS:
        coco = read_split(tree.benchmark_dir, split)
        assert "SYNTHETIC" in coco["info"]["description"]
        ids = [image["id"] for image in coco["images"]]
        assert len(set(ids)) == len(ids)
        for image in coco["images"]:
            assert set(image) == {
                "id", "file_name", "width", "height", "source_image_uuid", "license",
                "license_name", "license_url", "license_verbatim", "license_versioned",
            }  # fmt: skip
            assert isinstance(image["license_versioned"], bool)
        for box in coco["annotations"]:
            assert set(box) == {
                "id", "image_id", "category_id", "bbox", "area", "iscrowd", "source_record_id",
                "depicts_valid_name_id",
            }  # fmt: skip
        uuids = {image["source_image_uuid"] for image in coco["images"]}
        records = {box["source_record_id"] for box in coco["annotations"]}
        assert len(uuids) == len(ids)
        assert len(records) == len(coco["annotations"])
        assert not uuids & seen_images
        assert not records & seen_records
        seen_images |= uuids
        seen_records |= records
        rows = [row for row in licences if row["split"] == split]
        assert {row["source_image_uuid"] for row in rows} == uuids
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", u) for u in seen_images)


def test_manifest_csv_has_the_digests_of_the_files(tree):
    rows = read_csv(tree.benchmark_dir / "MANIFEST.csv")
    files = files_of(tree.benchmark_dir)
    del files["MANIFEST.csv"]
    assert {row["path"]: (int(row["bytes"]), row["sha256"]) for row in rows} == {
        path: (len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()
    }


def test_ground_truth_boxes_are_valid_and_every_species_is_scored(tree):
    taxonomy = {
        row["scientificName"]: row for row in read_csv(tree.benchmark_dir / "species_taxonomy.csv")
    }
    assert len(taxonomy) == 175
    for split, n_species in zip(SPLITS, (65, 65, 8, 110), strict=True):
        coco = read_split(tree.benchmark_dir, split)
        names = {c["id"]: c["name"] for c in coco["categories"]}
        assert len(names) == n_species
        assert {b["category_id"] for b in coco["annotations"] if not b["iscrowd"]} == set(names)
        images = {image["id"]: image for image in coco["images"]}
        bands = defaultdict(set)
        for box in coco["annotations"]:
            x, y, w, h = box["bbox"]
            image = images[box["image_id"]]
            assert x >= 0
            assert y >= 0
            assert w > 0
            assert h > 0
            assert x + w <= image["width"]
            assert y + h <= image["height"]
            assert box["area"] == pytest.approx(w * h, abs=0.01)
            row = taxonomy[names[box["category_id"]]]
            assert int(row["valid_name_id"]) == box["depicts_valid_name_id"]
            bands[box["image_id"]].add(row["distance_band_vs_trainable"])
            role = "semantic_ood" if split == "semantic_ood" else "trainable"
            assert row["benchmark_role"] == role
        assert set(bands) == set(images)
        if split == "semantic_ood":
            assert all(len(found) == 1 for found in bands.values())


def test_predictions_are_valid(tree):
    folder = tree.predictions_dir / "alder_gu_kall_s0"
    trained = {c["id"] for c in read_split(tree.benchmark_dir, "train")["categories"]}
    total = 0
    for split in TESTED:
        images = {image["id"]: image for image in read_split(tree.benchmark_dir, split)["images"]}
        predictions = json.loads((folder / f"{split}_predictions.json").read_text())
        total += len(predictions)
        assert max(Counter(p["image_id"] for p in predictions).values()) <= 300
        for p in predictions:
            assert set(p) == {"image_id", "category_id", "bbox", "score"}
            image = images[p["image_id"]]
            x, y, w, h = p["bbox"]
            assert x >= 0
            assert y >= 0
            assert w >= 1
            assert h >= 1
            assert x + w <= image["width"]
            assert y + h <= image["height"]
            assert 0.001 <= p["score"] <= 1
            assert p["category_id"] in trained
            assert all(round(side, 2) == side for side in p["bbox"])
    assert total == tree.n_detections


def test_files_are_byte_identical_unless_the_seed_differs(tree, tmp_path):
    options = {"scale": 0.02, "detections_per_specimen": 12}
    again = make_synthetic(tmp_path / "again", seed=3, jobs=2, **options)
    assert files_of(tmp_path / "again") == files_of(tree.benchmark_dir.parent)
    assert again.n_detections == tree.n_detections
    make_synthetic(tmp_path / "other", seed=4, jobs=1, **options)
    ours, other = files_of(tmp_path / "again"), files_of(tmp_path / "other")
    same = {name for name in ours if ours[name] == other[name]}
    assert same == {"benchmark/README.md", "manifest.csv"}


@pytest.mark.slow  # makes whole sweeps
def test_a_sweep_does_not_depend_on_the_number_of_processes(tmp_path):
    options = {"scale": 0.001, "seed": 1, "sweep": True, "detections_per_specimen": 2}
    made = make_synthetic(tmp_path / "a", jobs=1, **options)
    make_synthetic(tmp_path / "b", jobs=2, **options)
    assert made.n_models == 153
    files = files_of(tmp_path / "a")
    assert files == files_of(tmp_path / "b")
    entries = read_manifest(made.manifest).models
    assert len({entry.condition for entry in entries}) == 51
    rows = read_csv(made.manifest)
    assert list(rows[0]) == ["model_name", "regime", "k_or_p", "seed", "architecture"]
    assert len({(r["architecture"], r["regime"], r["k_or_p"]) for r in rows}) == 51
    assert Counter(r["seed"] for r in rows) == {"0": 51, "1": 51, "2": 51}
    folders = {name.split("/")[1] for name in files if name.startswith("predictions/")}
    assert folders == {r["model_name"] for r in rows}
    # a single model is identical to the same model of the sweep
    make_synthetic(tmp_path / "one", **{**options, "sweep": False})
    for name, data in files_of(tmp_path / "one").items():
        if name.startswith("predictions/"):
            assert files[name] == data


def test_other_files_are_never_overwritten(tmp_path):
    precious = tmp_path / "benchmark" / "detection" / "annotations_coco" / "train.json"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    with pytest.raises(UsageError, match=r"train\.json: found a file .* did not write"):
        make_synthetic(tmp_path, scale=0.001)
    assert precious.read_text() == "mine"


@pytest.mark.slow  # writes whole data sets
def test_earlier_output_is_replaced_completely(tmp_path):
    make_synthetic(tmp_path, scale=0.001, detections_per_specimen=2, sweep=True)
    make_synthetic(tmp_path, scale=0.001, detections_per_specimen=2)
    assert [p.name for p in (tmp_path / "predictions").iterdir()] == ["alder_gu_kall_s0"]
    assert len(read_csv(tmp_path / "manifest.csv")) == 1


def test_all_values_out_of_range_are_reported_together(tmp_path):
    with pytest.raises(UsageError) as caught:
        make_synthetic(tmp_path / "x", scale=0, test_scale=2, seed=-1, detections_per_specimen=0)
    for name in ("scale", "test scale", "seed", "detections per specimen"):
        assert name in str(caught.value)
    assert not (tmp_path / "x").exists()


def test_command_line(tmp_path):
    from benchmark_eval.cli.synth import command

    result = CliRunner().invoke(
        command,
        ["--output-dir", str(tmp_path), "--scale", "0.001", "--detections-per-specimen", "3"],
    )
    assert result.exit_code == 0, result.output
    assert "1 model" in result.output
    assert "synthetic" in result.output
    assert (tmp_path / "predictions" / "alder_gu_kall_s0" / "iid_test_predictions.json").is_file()


def test_models_have_distinct_names():
    names = [m.name for m in sweep_models()]
    assert len(set(names)) == len(names) == 153
    assert {"alder_gu_k1_s0", "birch_in_p010_s2", "cedar_iut_k0_s1"} <= set(names)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-6, 1e3), st.integers(0, 5), st.integers(0, 50)), min_size=1),
    st.data(),
)
def test_apportion_keeps_total_floor_and_cap(parts, data):
    weights = np.array([w for w, _, _ in parts])
    floor = np.array([f for _, f, _ in parts])
    cap = floor + np.array([c for _, _, c in parts])
    total = data.draw(st.integers(int(floor.sum()), int(cap.sum())))
    counts = apportion(total, weights, floor, cap)
    assert counts.sum() == total
    assert (counts >= floor).all()
    assert (counts <= cap).all()


def test_streams_depend_on_the_whole_name():
    draws = {
        name: stream(0, *name).random() for name in (("a", "b"), ("ab",), ("a", "c"), ("b", "a"))
    }
    assert len(set(draws.values())) == 4
    assert stream(0, "a", "b").random() == draws[("a", "b")]
