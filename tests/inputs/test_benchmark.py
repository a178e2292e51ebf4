"""Reading the benchmark: columns, problems, the index."""

import json

import numpy as np
import pytest
from support.layout import ANNOTATIONS, species, write_split, write_taxonomy

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.benchmark_index import (
    open_benchmark,
    read_index,
    save_index,
    write_index,
)
from benchmark_eval.inputs.benchmark_reader import load_benchmark


def small(folder):
    write_split(
        folder,
        "iid_test",
        [[9, 2, [0, 0, 10, 10]], [4, 1, [5, 5, 10, 10], 1], [9, 1, [1, 1, 2, 2]]],
        images=[9, 4, 6],
        listed=[2, 1, 3],
    )
    write_split(
        folder,
        "train",
        [[1, 1, [0, 0, 1, 1]], [1, 1, [2, 2, 1, 1]], [2, 1, [0, 0, 1, 1]], [2, 3, [0, 0, 1, 1]]],
        images=[1, 2, 3],
    )
    write_taxonomy(folder, [1, 2, 3])
    return folder


def edit(path, change):
    tree = json.loads(path.read_text())
    change(tree)
    path.write_text(json.dumps(tree))


def test_annotations_are_grouped_by_ascending_image_in_file_order(tmp_path):
    truth = load_benchmark(small(tmp_path)).split("iid_test")
    assert truth.image_ids.tolist() == [4, 6, 9]
    assert truth.image.tolist() == [0, 2, 2]
    assert truth.category.tolist() == [0, 1, 0]  # file order within image 9: species 2, then 1
    assert truth.crowd.tolist() == [True, False, False]
    assert truth.listed.tolist() == [0, 1, 2]
    assert truth.n_scored == 2
    assert truth.scored_per_category(3).tolist() == [1, 1, 0]


def test_training_counts_are_distinct_images_and_objects_by_species(tmp_path):
    benchmark = load_benchmark(small(tmp_path))
    assert benchmark.categories.n_train_images.tolist() == [2, -1, 1]
    assert benchmark.categories.n_train_objects.tolist() == [3, -1, 1]
    assert benchmark.train is not None
    assert benchmark.train.n_images == 3
    assert benchmark.train.n_objects.tolist() == [2, 1, 1]


def test_area_is_read_from_the_file_and_computed_if_missing(tmp_path):
    small(tmp_path)
    path = tmp_path / ANNOTATIONS / "iid_test.json"

    def change(tree):
        tree["annotations"][0]["area"] = 7.5
        del tree["annotations"][2]["area"]

    edit(path, change)
    assert load_benchmark(tmp_path).split("iid_test").area.tolist() == [100.0, 7.5, 4.0]


def test_blank_ranks_never_match_and_every_spelling_of_missing_is_blank(tmp_path):
    small(tmp_path)
    (tmp_path / "species_taxonomy.csv").write_text(
        "scientificName,subfamily,tribe,genus\n"
        f"{species(1)},Scolytinae,,NA\n"
        f"{species(2)},Scolytinae,  ,Genus0\n"
        f"{species(3)},,nan,Genus0\n"
    )
    categories = load_benchmark(tmp_path).categories
    assert categories.tribe_code.tolist() == [-1, -1, -1]
    assert categories.genus_code.tolist() == [-1, 0, 0]
    assert categories.subfamily_code.tolist() == [0, 0, -1]
    assert categories.distance_band == ("", "", "")


def test_index_round_trip_and_identical_bytes(tmp_path):
    folder = small(tmp_path / "b")
    loaded = load_benchmark(folder)
    write_index(folder, tmp_path / "one.npz")
    save_index(loaded, tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    again = read_index(tmp_path / "one.npz")
    assert again.digests == loaded.digests
    assert again.digest == loaded.digest
    assert list(again.splits) == ["iid_test", "train"]
    for split, truth in loaded.splits.items():
        for name in truth.__slots__:
            assert np.array_equal(getattr(truth, name), getattr(again.splits[split], name)), name
    for name in loaded.categories.__slots__:
        assert np.array_equal(getattr(loaded.categories, name), getattr(again.categories, name))
    assert isinstance(open_benchmark(tmp_path / "one.npz"), Benchmark)
    assert open_benchmark(loaded) is loaded


@pytest.mark.parametrize("size", [0, 10, 500])
def test_a_truncated_index_is_reported(tmp_path, size):
    write_index(small(tmp_path / "b"), tmp_path / "i.npz")
    (tmp_path / "i.npz").write_bytes((tmp_path / "i.npz").read_bytes()[:size])
    with pytest.raises(InputError, match="delete it and run again"):
        read_index(tmp_path / "i.npz")


def test_an_index_of_another_version_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmark_eval.inputs.benchmark_index.INDEX_VERSION", 999)
    write_index(small(tmp_path / "b"), tmp_path / "i.npz")
    monkeypatch.undo()
    with pytest.raises(InputError, match="index version 999"):
        read_index(tmp_path / "i.npz")


def test_a_missing_split_is_a_usage_error_that_lists_the_others(tmp_path):
    with pytest.raises(UsageError, match=r"inat_test.*iid_test, train"):
        load_benchmark(small(tmp_path)).split("inat_test")


def set_first(kind, **fields):
    return lambda tree: tree[kind][0].update(fields)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_first("annotations", bbox=[0, 0, -1, 5]), "w, h >= 0"),
        (set_first("annotations", bbox=[0, 0, 1]), "four finite numbers"),
        (set_first("annotations", bbox=[0, 0, 1, None]), "four finite numbers"),
        (set_first("annotations", area=-1), "finite area"),
        (set_first("annotations", area="big"), "a number (px)"),
        (set_first("annotations", iscrowd=2), "0 or 1"),
        (set_first("annotations", iscrowd=10**400), "0 or 1"),
        (set_first("annotations", bbox=[0, 0, 10**400, 5]), "annotation 1, bbox"),
        (set_first("annotations", area=10**400), "annotation 1, area"),
        (set_first("annotations", image_id=10**400), "annotation 1, image_id"),
        (set_first("annotations", image_id=float(2**53)), "annotation 1, image_id"),
        (set_first("images", width=10**400), "image record 0, width"),
        (set_first("categories", id=2**63), "category record 0, id"),
        (set_first("annotations", image_id=77), "image 77"),
        (set_first("annotations", image_id="9"), "a 64-bit integer"),
        (set_first("annotations", category_id=77), "category 77"),
        (set_first("annotations", id=2), "annotation id 2 used twice"),
        (set_first("images", id=4), "image id 4 used twice"),
        (set_first("images", width="wide"), "a number (px)"),
        (set_first("categories", name=5), "name"),
        (set_first("categories", id=1), "category id 1 used twice"),
        (lambda tree: tree.pop("annotations"), "a list of annotations"),
        (lambda tree: tree["annotations"].append(5), "a JSON object"),
    ],
)
def test_problems_of_an_annotation_file_are_reported(tmp_path, change, words):
    small(tmp_path)
    edit(tmp_path / ANNOTATIONS / "iid_test.json", change)
    with pytest.raises(InputError) as error:
        load_benchmark(tmp_path)
    assert words in str(error.value)
    assert "iid_test.json" in str(error.value)


def test_an_integer_of_5000_digits_is_a_problem_of_its_annotation(tmp_path):
    small(tmp_path)
    path = tmp_path / ANNOTATIONS / "iid_test.json"
    edit(path, set_first("annotations", id="LONG"))
    path.write_text(path.read_text().replace('"LONG"', "1" * 5000))
    with pytest.raises(InputError) as error:
        load_benchmark(tmp_path)
    (problem,) = error.value.problems
    assert (problem.kind, problem.field) == ("id-type", "id")
    assert problem.found == "an integer of 5,000 digits"


def test_an_annotation_file_nested_too_deeply_is_reported(tmp_path):
    small(tmp_path)
    (tmp_path / ANNOTATIONS / "iid_test.json").write_text('{"images": ' + "[" * 100_000)
    with pytest.raises(InputError, match="nested too deeply"):
        load_benchmark(tmp_path)


def test_problems_of_all_files_are_reported_together(tmp_path):
    small(tmp_path)
    for split in ("iid_test", "train"):
        edit(tmp_path / ANNOTATIONS / f"{split}.json", set_first("annotations", area=-1))
    (tmp_path / "species_taxonomy.csv").write_text("scientificName,genus\n")
    with pytest.raises(InputError) as error:
        load_benchmark(tmp_path)
    assert [p.file.rpartition("/")[2] for p in error.value.problems] == [
        "species_taxonomy.csv",
        "iid_test.json",
        "train.json",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n", "scientificName, subfamily, tribe, genus"),
        ("", "scientificName"),
        ("scientificName;subfamily;tribe;genus\nA;b;c;d\n", "separated by ';'"),
        ("scientificName,subfamily,tribe,genus,genus\nA,b,c,d,e\n", "'genus' 2 times"),
        ("scientificName,subfamily,tribe,genus,x,x\nA,b,c,d,e,f\n", "'x' 2 times"),
        ("scientificName,subfamily,tribe,genus\nA,b\n", "4 cells"),
        ("scientificName,subfamily,tribe,genus\nA,b,c,d,e\n", "4 cells"),
        ("scientificName,subfamily,tribe,genus\nA,b,c,d\nA,b,c,d\n", "unique species names"),
        ("scientificName,subfamily,tribe,genus,target_band\nA,b,c,d,near\n", "near_genus"),
        (b"scientificName,subfamily,tribe,genus\n\xff,b,c,d\n", "UTF-8"),
    ],
)
def test_problems_of_the_taxonomy_are_reported(tmp_path, text, words):
    small(tmp_path)
    (tmp_path / "species_taxonomy.csv").write_bytes(
        text if isinstance(text, bytes) else text.encode()
    )
    with pytest.raises(InputError, match="species_taxonomy") as error:
        load_benchmark(tmp_path)
    assert words in str(error.value)


def test_an_unknown_band_is_a_problem_only_for_held_out_species(tmp_path):
    small(tmp_path)
    write_taxonomy(tmp_path, [1, 2, 3], band="trained")
    assert set(load_benchmark(tmp_path).categories.distance_band) == {"trained"}
    write_split(tmp_path, "semantic_ood", [[1, 3, [0, 0, 5, 5]]])
    with pytest.raises(InputError, match="trained"):
        load_benchmark(tmp_path)


def test_two_names_for_one_category_are_reported(tmp_path):
    small(tmp_path)
    edit(tmp_path / ANNOTATIONS / "train.json", set_first("categories", name="Another name"))
    with pytest.raises(InputError, match="different benchmark versions"):
        load_benchmark(tmp_path)


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.write_text("x"), lambda p: p.mkdir()])
def test_a_folder_that_is_not_a_benchmark_is_reported(tmp_path, make):
    make(tmp_path / "b")
    with pytest.raises(InputError, match=r"unpacked benchmark"):
        load_benchmark(tmp_path / "b")


def stray(folder, name, **content):
    content = {"images": [], "annotations": [], "categories": [], **content}
    (folder / ANNOTATIONS / name).write_text(json.dumps(content))


def test_a_stray_file_adds_categories_but_no_description(tmp_path):
    small(tmp_path)
    stray(
        tmp_path,
        "backup.json",
        categories=[{"id": 9, "name": species(9)}],
        info={"description": "a copy"},
    )
    edit(tmp_path / ANNOTATIONS / "train.json", lambda t: t.update(info={"description": "train"}))
    benchmark = load_benchmark(tmp_path)
    assert benchmark.categories.ids.tolist() == [1, 2, 3, 9]
    assert benchmark.stray_files == [f"{ANNOTATIONS}/backup.json"]
    assert list(benchmark.splits) == ["iid_test", "train"]
    assert benchmark.description == "train"


def test_the_description_comes_from_the_first_known_split(tmp_path):
    small(tmp_path)
    write_split(tmp_path, "inat_test", [[1, 1, [0, 0, 5, 5]]])
    for split in ("train", "inat_test"):
        edit(
            tmp_path / ANNOTATIONS / f"{split}.json",
            lambda tree, name=split: tree.update(info={"description": name}),
        )
    assert load_benchmark(tmp_path).description == "inat_test"


@pytest.mark.parametrize("name", ["Train.json", "IID_test.json", "train.JSON"])
def test_a_file_name_that_differs_from_a_split_only_in_case_is_an_error(tmp_path, name):
    small(tmp_path)
    stray(tmp_path, name)
    with pytest.raises(InputError, match="differs in more than case") as error:
        load_benchmark(tmp_path)
    assert [p.file for p in error.value.problems] == [f"{ANNOTATIONS}/{name}"]


def test_an_empty_record_is_reported(tmp_path):
    small(tmp_path)
    edit(tmp_path / ANNOTATIONS / "train.json", lambda tree: tree["annotations"].append({}))
    with pytest.raises(InputError) as error:
        load_benchmark(tmp_path)
    assert "annotation record 4, bbox: found null" in str(error.value)


def test_an_invalid_image_record_causes_no_problems_of_its_annotations(tmp_path):
    small(tmp_path)
    edit(tmp_path / ANNOTATIONS / "train.json", lambda tree: tree["images"][0].pop("id"))
    with pytest.raises(InputError) as error:
        load_benchmark(tmp_path)
    assert [problem.kind for problem in error.value.problems] == ["id-type"]


@pytest.mark.parametrize(
    ("info", "description"),
    [
        ({"description": "Some\n data"}, "Some data"),
        ({}, ""),
        ("text", ""),
        ({"description": 5}, ""),
    ],
)
def test_the_dataset_description_is_kept(tmp_path, info, description):
    small(tmp_path / "b")
    edit(tmp_path / "b" / ANNOTATIONS / "iid_test.json", lambda tree: tree.update(info=info))
    assert load_benchmark(tmp_path / "b").description == description
    write_index(tmp_path / "b", tmp_path / "i.npz")
    assert read_index(tmp_path / "i.npz").description == description
