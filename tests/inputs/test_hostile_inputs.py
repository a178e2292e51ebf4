"""Inputs of unusual origin: each ends in its right result or in a message."""

import json

import numpy as np
import pytest
from support.factories import evaluation, write_benchmark, write_evaluation
from support.layout import ANNOTATIONS, record, write_predictions, write_split, write_taxonomy

from benchmark_eval import check_inputs
from benchmark_eval.cli.main import main
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.listing import listed, walked
from benchmark_eval.core.user_paths import expand_argument, not_expanded
from benchmark_eval.core.yaml_text import parse_yaml
from benchmark_eval.formats.classes import read_class_names
from benchmark_eval.formats.detection import detect_format
from benchmark_eval.formats.images import folder_images
from benchmark_eval.inputs.benchmark_index import read_index, write_index
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.config import normalise_config, read_config, require_unique_keys
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.pipeline.plan import _benchmark_files
from benchmark_eval.results import schema
from benchmark_eval.sweep import aggregate
from benchmark_eval.sweep.summaries import find_summaries
from benchmark_eval.voc.text import text_files


def small(folder):
    """A benchmark with a test and a training split."""
    write_split(folder, "iid_test", [[1, 1, [0, 0, 9, 9]], [1, 1, [20, 0, 9, 9], 1]])
    write_split(folder, "train", [[1, 1, [0, 0, 9, 9]]])
    write_taxonomy(folder, [1])
    return folder


def kinds(benchmark, **options):
    report = check_inputs(benchmark_dir=benchmark, jobs=1, **options)
    return {f.problem.kind for f in report.findings if f.level != "note"}


def run(capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code or 0
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


# --------------------------------------------------------------------------------------------
# Files that start with a dot are no inputs
# --------------------------------------------------------------------------------------------

HIDDEN = ("._iid_test.json", ".DS_Store", ".iid_test.json.x1.tmp", "._a.txt", "._a.xml", "._1.jpg")
BYTES = b"\0\5\x16\7\0\2\0\0Mac OS X"


def hide(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in HIDDEN:
        (folder / name).write_bytes(BYTES)
    return folder


def test_hidden_files_are_no_inputs_of_a_benchmark(tmp_path):
    benchmark = small(tmp_path / "b")
    before = load_benchmark(benchmark).digests
    hide(benchmark)
    hide(benchmark / ANNOTATIONS)
    assert load_benchmark(benchmark).digests == before
    assert kinds(benchmark) == set()
    planned = [name.rpartition("/")[2] for name in _benchmark_files(benchmark)]
    assert planned == ["iid_test.json", "train.json", "species_taxonomy.csv"]


def test_hidden_files_are_no_predictions(tmp_path):
    benchmark = small(tmp_path / "b")
    write_predictions(tmp_path / "p/m", "iid_test", [])
    (tmp_path / "p/._iid_test_predictions.json").write_bytes(BYTES)
    (tmp_path / "p/m/._iid_test_predictions.json").write_bytes(BYTES)
    hide(tmp_path / "p/.ipynb_checkpoints")
    report = check_inputs(
        benchmark_dir=benchmark, predictions_dir=tmp_path / "p", splits=["iid_test"], jobs=1
    )
    assert (report.n_models, report.n_files, report.count("problem")) == (1, 1, 0)


def test_hidden_files_are_ignored_in_every_listing(tmp_path):
    folder = hide(tmp_path / "x")
    (folder / "a.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (folder / "1.jpg").write_bytes(b"")
    hide(folder / ".cache")
    (folder / ".cache/2.jpg").write_bytes(b"")
    assert [path.name for path in listed(folder)] == ["1.jpg", "a.txt"]
    assert [path.name for path in walked(folder)] == ["1.jpg", "a.txt"]
    assert [path.name for path in text_files(folder)] == ["a.txt"]
    assert folder_images(folder).names == ("1.jpg",)
    assert detect_format(folder) == "yolo"


def test_hidden_files_are_no_summaries(tmp_path):
    (hide(tmp_path) / "._m_summary.json").write_bytes(BYTES)
    (tmp_path / "m_summary.json").write_text("{}")
    assert list(find_summaries(tmp_path, [])) == ["m"]


# --------------------------------------------------------------------------------------------
# Keys that occur twice
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key 'a' 2 times, in lines 1 and 3"),
        ("a: 1\na: 2\na: 3\n", "the key 'a' 3 times, in lines 1, 2 and 3"),
        ("x:\n  y: 1\n  z: 2\n  y: 1\n", "the key 'x.y' 2 times, in lines 2 and 4"),
        ("- {a: 1, a: 2}\n", "the key 'a' 2 times, in lines 1 and 1"),
        ("1: a\n0x1: b\n", "the key '1' 2 times, in lines 1 and 2"),
        ("a: 1\na: 2\nb: 1\nb: 2\n", "lines 1 and 2; the key 'b' 2 times, in lines 3 and 4"),
        ('{"a": 1, "a": 2}', "the key 'a' 2 times"),
    ],
)
def test_a_key_that_occurs_twice_in_yaml_is_an_error_with_its_lines(text, words):
    with pytest.raises(ValueError, match="times, in lines") as error:
        parse_yaml(text)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x {b: 1}\nc: {<<: *x, b: 2}\n", {"a": {"b": 1}, "c": {"b": 2}}),
        ("a: {b: 1}\nc: {b: 1}\n", {"a": {"b": 1}, "c": {"b": 1}}),
        ("1: a\n'1': b\n", {1: "a", "1": "b"}),
        ("", None),
    ],
)
def test_yaml_with_unique_keys_is_read(text, value):
    assert parse_yaml(text) == value


def test_a_key_that_occurs_twice_in_a_config_is_an_error(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("iou: 0.5\nengine: fast\niou: 0.75\n")
    for read in (read_config, lambda p: require_unique_keys([p])):
        with pytest.raises(InputError) as error:
            read(path)
        (problem,) = error.value.problems
        assert (problem.kind, problem.file) == ("duplicate-key", str(path))
        assert problem.found == "the key 'iou' 2 times, in lines 1 and 3"
    path.write_text("not: [yaml")  # left to Snakemake, which has read it
    require_unique_keys([path])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("data.yaml", "nc: 2\nnames: [a, b]\nnames: [b, a]\n", "'names' 2 times, in lines 2 and 3"),
        ("data.yaml", "names:\n  0: a\n  1: b\n  0: c\n", "'names.0' 2 times, in lines 2 and 4"),
        ("data.yaml", "names:\n  0: a\n  '0': b\n", "class 0 2 times"),
        ("n.json", '{"0": "a", "0": "b"}', "the key '0' 2 times"),
        ("n.json", '{"id2label": {"0": "a", "1": "b", "0": "c"}}', "the key '0' 2 times"),
        ("n.json", '[{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]', "class 1 2 times"),
    ],
)
def test_a_key_that_occurs_twice_in_a_names_file_is_an_error(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_class_names(tmp_path / name)
    assert words in str(error.value)


# --------------------------------------------------------------------------------------------
# Home folder and variables
# --------------------------------------------------------------------------------------------


def test_the_home_folder_is_expanded_in_config_and_manifest(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    config = normalise_config({"benchmark_dir": "~/b", "predictions_dir": "~", "manifest": "a~/m"})
    assert str(config.benchmark_dir) == "/home/ada/b"
    assert str(config.predictions_dir) == "/home/ada"
    assert str(config.manifest) == "a~/m"
    path = tmp_path / "m.csv"
    path.write_text(
        "model_name,regime,k_or_p,seed,predictions_dir,train_annotations\n"
        "m,global_uniform,1,0,~/p/m,~/t.json\n"
    )
    (entry,) = read_manifest(path).models
    assert str(entry.predictions_dir) == "/home/ada/p/m"
    assert str(entry.train_annotations) == "/home/ada/t.json"


@pytest.mark.parametrize(
    ("argument", "expanded"),
    [
        ("--benchmark-dir=~/b", "--benchmark-dir=/home/ada/b"),
        ("~/b", "/home/ada/b"),
        ("--to=~", "--to=/home/ada"),
        ("a~/b", "a~/b"),
        ("--x=a~/b", "--x=a~/b"),
        ("~b", "~b"),
        ("./~/b", "./~/b"),
    ],
)
def test_the_home_folder_is_expanded_in_options(argument, expanded, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert expand_argument(argument) == expanded


def test_a_command_finds_a_folder_given_with_an_unexpanded_home(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    small(tmp_path / "b")
    code, out, _ = run(capsys, "check", "--quiet", "--benchmark-dir=~/b")
    assert (code, "no problems" in out or "0 problems" in out) == (0, True)


@pytest.mark.parametrize("path", ["$HOME/b", "${DATA}/b", "~nobody-here/b"])
def test_what_is_not_expanded_is_named_as_the_cause(tmp_path, capsys, path):
    assert "write the path itself" in not_expanded(path)
    code, out, err = run(capsys, "check", "--quiet", f"--benchmark-dir={path}")
    assert code in (1, 2)
    assert "not replaced here: write the path itself" in out + err
    with pytest.raises(InputError, match="not replaced here"):
        read_manifest(f"{path}/m.csv")
    with pytest.raises(InputError, match="not replaced here"):
        load_benchmark(path)


# --------------------------------------------------------------------------------------------
# Tables
# --------------------------------------------------------------------------------------------

LONG = "x" * 131_073
HEADER = (
    "scientificName,subfamily,tribe,genus,benchmark_role,target_band,distance_band_vs_trainable\n"
)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (LONG, "line 2: found a cell of more than 131,072 characters"),
        ('"abc\nd,e\n', "line 2: found a double quote that is never closed"),
    ],
)
@pytest.mark.parametrize(
    ("file", "header"),
    [
        ("species_taxonomy.csv", HEADER),
        ("MANIFEST.csv", "path,sha256\n"),
        ("image_licences.csv", "source_image_uuid,license_name\n"),
    ],
)
def test_cells_that_are_too_long_and_open_quotes_are_reported(tmp_path, file, header, cell, words):
    benchmark = small(tmp_path / "b")
    (benchmark / file).write_text(header + cell + "," * header.count(",") + "\n")
    report = check_inputs(benchmark_dir=benchmark, jobs=1)
    found = [str(f.problem) for f in report.findings if f.problem.kind == "not-csv"]
    assert len(found) == 1
    assert words in found[0]
    assert file in found[0]


def test_a_listed_file_with_nul_in_its_name_does_not_exist(tmp_path):
    benchmark = small(tmp_path / "b")
    (benchmark / "MANIFEST.csv").write_bytes(b"path,sha256\na\0b.json,00\n")
    assert kinds(benchmark) == {"listed-file-missing"}


# --------------------------------------------------------------------------------------------
# Names and sizes in annotation files
# --------------------------------------------------------------------------------------------


def edit(path, change):
    tree = json.loads(path.read_text())
    change(tree)
    path.write_text(json.dumps(tree))


@pytest.mark.parametrize("name", ["", " ", "a\0b"])
def test_a_blank_category_name_is_reported(tmp_path, name):
    benchmark = small(tmp_path / "b")
    for split in ("iid_test", "train"):
        edit(
            benchmark / ANNOTATIONS / f"{split}.json",
            lambda tree: tree["categories"][0].update(name=name),
        )
    assert "name-type" in kinds(benchmark)
    with pytest.raises(InputError, match="the name of a species"):
        load_benchmark(benchmark)


@pytest.mark.parametrize(
    ("list_name", "key", "place"),
    [
        ("categories", "name", 'categories"[0]."name"'),
        ("images", "file_name", 'images"[0]."file_name"'),
        ("annotations", "note", 'annotations"[0]."note"'),
    ],
)
def test_half_a_surrogate_pair_is_reported_by_every_command(
    tmp_path, capsys, list_name, key, place
):
    benchmark = small(tmp_path / "b")
    edit(
        benchmark / ANNOTATIONS / "train.json",
        lambda tree: tree[list_name][0].update({key: "Ips \ud800"}),
    )
    with pytest.raises(InputError) as error:
        load_benchmark(benchmark)
    assert "half of a surrogate pair; expected valid Unicode" in str(error.value)
    assert place in str(error.value)
    for command in (
        ("check", "--json"), ("check",), ("subsets", "--output-dir", tmp_path / "out")
    ):  # fmt: skip
        code, out, err = run(capsys, *command, "--benchmark-dir", benchmark)
        assert code == 1
        assert "half of a surrogate pair" in out + err
    assert not (tmp_path / "out").exists()


def test_check_prints_json_of_values_with_half_a_surrogate_pair(tmp_path, capsys):
    benchmark = small(tmp_path / "b")
    rows = [{**record(1, 1, [0, 0, 9, 9], 0.5), "score": "\ud800"}]
    (tmp_path / "p").mkdir()
    (tmp_path / "p/iid_test_predictions.json").write_text(json.dumps(rows))
    code, out, _ = run(capsys, "check", "--json", "--quiet", "--benchmark-dir", benchmark,
                       "--predictions-dir", tmp_path / "p", "--splits", "iid_test")  # fmt: skip
    assert code == 1
    assert [f["kind"] for f in json.loads(out)["findings"] if f["level"] == "problem"] == [
        "score-type"
    ]


@pytest.mark.parametrize("name", ["a\0b.jpg", "a\ud800.jpg"])
def test_an_image_name_that_no_file_can_have_is_not_written(tmp_path, capsys, name):
    coco = write_split(tmp_path, "iid_test", [[1, 1, [0, 0, 9, 9]]])
    edit(coco, lambda tree: tree["images"][0].update(file_name=name))
    code, _, err = run(capsys, "convert", coco, tmp_path / "out", "--to", "yolo")
    assert code == 1
    assert "no file can have" in err or "surrogate pair" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [0, -100])
def test_an_image_size_that_is_not_positive_is_a_warning_and_unknown(tmp_path, size):
    benchmark = small(tmp_path / "b")
    edit(
        benchmark / ANNOTATIONS / "iid_test.json",
        lambda tree: tree["images"][0].update(width=size),
    )
    report = check_inputs(benchmark_dir=benchmark, jobs=1)
    (finding,) = [f for f in report.findings if f.problem.kind == "image-size"]
    assert finding.level == "warning"
    assert finding.problem.found == f"width {size} and height 1000"
    assert np.isnan(load_benchmark(benchmark).splits["iid_test"].sizes).all()


# --------------------------------------------------------------------------------------------
# Our own files, edited
# --------------------------------------------------------------------------------------------


def set_area(arrays):
    arrays["split/iid_test/area"] = arrays["split/iid_test/area"] * 2


def drop_digest(arrays):
    del arrays["digest"]


def add_array(arrays):
    arrays["more"] = np.zeros(1)


def set_type(arrays):
    arrays["split/iid_test/boxes"] = arrays["split/iid_test/boxes"].astype(np.float32)


@pytest.mark.parametrize("change", [set_area, drop_digest, add_array, set_type])
def test_an_edited_index_is_refused(tmp_path, change):
    path = tmp_path / "i.npz"
    write_index(small(tmp_path / "b"), path)
    with np.load(path) as store:
        arrays = dict(store)
    np.savez(path, **arrays)
    assert list(read_index(path).splits) == ["iid_test", "train"]  # the same content
    change(arrays)
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="damaged, edited or not an index; delete it and run"):
        read_index(path)


def curve(tree):
    return tree["per_split"]["iid_test"]["operating_point"]["curve"]


EDITS = {
    "a count below zero": lambda t: t["per_split"]["iid_test"].update(n_predictions=-1),
    "a huge count": lambda t: t["per_split"]["iid_test"].update(n_predictions=10**30),
    "a species that is not an id": lambda t: t["per_split"]["iid_test"]["per_species"].update(
        x=t["per_split"]["iid_test"]["per_species"]["1"]
    ),
    "a curve without its last value": lambda t: curve(t)["recall"].pop(),
    "a longer curve": lambda t: curve(t)["confidence"].append(1.01),
    "an unknown split": lambda t: t["per_split"].update(x=t["per_split"]["iid_test"]),
    "a missing split": lambda t: t["per_split"].pop("inat_test"),
    "an unknown band": lambda t: t["per_split"]["semantic_ood"]["density"]["by_band"].update(
        x=t["per_split"]["semantic_ood"]["density"]["strata"]
    ),
    "a missing block": lambda t: t["per_split"]["iid_test"].pop("coco"),
    "text for a number": lambda t: t["summary"].update(n_known_tp="7"),
    "another schema version": lambda t: t.update(schema_version=1),
    "a split that is evaluated twice": lambda t: t["config"]["splits"].append("iid_test"),
    "a missing bin": lambda t: t["per_split"]["iid_test"]["calibration"]["accuracy_per_bin"].pop(),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_summary_is_refused(tmp_path, capsys, name):
    made = evaluation("m", 0.5)
    tree = json.loads(json.dumps(schema.to_dict(made)))
    text = json.dumps(tree)
    assert schema.decode_summary(text.encode(), "m").model == "m"
    EDITS[name](tree)
    assert json.dumps(tree) != text
    (tmp_path / "m_summary.json").write_text(json.dumps(tree))
    with pytest.raises(InputError, match=r"m_summary\.json"):
        schema.load_summary(tmp_path / "m_summary.json")
    code, out, _ = run(capsys, "verify", tmp_path, "--quiet")
    assert code == 1
    assert "m_summary.json" in out


@pytest.mark.parametrize(
    "text", [b'{"schema_version": 2', b"NaN", b'{"schema_version": NaN}', b"[]", b"", b"\xff"]
)
def test_damaged_summaries_are_refused(text):
    with pytest.raises(InputError, match="evaluate the model again"):
        schema.decode_summary(text, "m_summary.json")


AGGREGATED_EDITS = {
    "a missing metric": lambda t: t["learning_curves"][0]["metrics"].popitem(),
    "a missing value of a model": lambda t: t["models"][0]["values"].pop("iid_AP_50"),
    "a missing difference": lambda t: t["learning_curves"][0]["differences"].popitem(),
    "a missing point": lambda t: t["operating_curves"][0]["metrics"].pop("recall"),
    "an unknown regime": lambda t: t["learning_curves"][0].update(regime="x"),
    "text for a number": lambda t: t["budget_curves"][0].update(n_images="1"),
    "a missing table": lambda t: t.pop("models"),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The content of an aggregated.json of one model."""
    folder = tmp_path_factory.mktemp("sweep")
    benchmark = write_benchmark(folder / "b")
    digests = load_benchmark(benchmark).digests
    (folder / "eval").mkdir()
    write_evaluation(folder / "eval", evaluation("m", 0.5, benchmark=digests))
    (folder / "m.csv").write_text("model_name,regime,k_or_p,seed\nm,global_uniform,1,0\n")
    aggregate(eval_dir=folder / "eval", manifest=folder / "m.csv", benchmark=benchmark,
              output_dir=folder / "out")  # fmt: skip
    return (folder / "out/aggregated.json").read_text()


@pytest.mark.parametrize("command", ["plot", "report"])
@pytest.mark.parametrize("name", AGGREGATED_EDITS)
def test_edited_tables_are_refused(tmp_path, capsys, tables, command, name):
    tree = json.loads(tables)
    AGGREGATED_EDITS[name](tree)
    (tmp_path / "aggregated.json").write_text(json.dumps(tree))
    code, _, err = run(capsys, command, "--aggregated", tmp_path / "aggregated.json",
                       "--output-dir", tmp_path / "out")  # fmt: skip
    assert code == 1
    assert "aggregated.json" in err
    assert "aggregate again" in err
