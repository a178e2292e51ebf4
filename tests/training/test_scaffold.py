"""``benchmark-eval init`` creates a folder that works with every later step."""

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from support.factories import write_benchmark

from benchmark_eval.cli.init import command
from benchmark_eval.core.errors import UsageError
from benchmark_eval.inputs.config import config_schema, normalise_config, read_config
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.training.scaffold import init_project
from benchmark_eval.training.subsets import write_subsets


def run(*args):
    return CliRunner().invoke(command, [str(a) for a in args], standalone_mode=False)


def test_the_grid_for_two_architectures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_benchmark(tmp_path / "my data")
    result = run("p", "--benchmark-dir", "my data", "--architecture", "a", "--architecture", "b")
    assert result.exception is None
    assert "a sweep of 102 models" in result.output
    manifest = read_manifest("p/manifest.csv")
    assert len(manifest.models) == 102
    assert {m.architecture for m in manifest.models} == {"a", "b"}
    assert all(m.train_annotations is None for m in manifest.models)
    folders = {p.name for p in Path("p/predictions").iterdir()}
    assert folders == {m.model_name for m in manifest.models}
    config = read_config("p/config/config.yaml")
    assert (config.predictions_dir, config.manifest) == (Path("predictions"), Path("manifest.csv"))
    # relative paths start at the project, the working directory of snakemake
    assert (Path("p") / config.benchmark_dir).resolve() == (tmp_path / "my data").resolve()
    readme = Path("p/README.md").read_text()
    assert "--benchmark-dir '../my data'" in readme
    assert "subsets/gu_k1_s0/train.json" in readme


def test_the_config_has_every_key_with_default_and_comment(tmp_path):
    init_project(tmp_path / "p")
    text = (tmp_path / "p" / "config" / "config.yaml").read_text()
    found = yaml.safe_load(text)
    assert list(found) == list(config_schema()["properties"])
    given = {"predictions_dir": "predictions", "manifest": "manifest.csv"}
    assert normalise_config(found) == normalise_config(given)
    for block in text.strip().split("\n\n"):
        assert block.startswith("# ")
    assert all(len(line) <= 100 for line in text.splitlines())
    assert re.search(r"^splits: \[iid_test, inat_test, semantic_ood\]$", text, re.M)
    assert "BENCHMARK" in (tmp_path / "p" / "README.md").read_text()


def test_subsets_fill_the_manifest_of_a_project(tmp_path):
    benchmark = write_benchmark(tmp_path / "b")
    path = benchmark / "detection" / "annotations_coco" / "train.json"
    path.write_text(re.sub(r'"id": (\d+), "width"', r'"id": \1, "file_name": "\1.jpg", "width"',
                           path.read_text()))  # fmt: skip
    project = init_project(
        tmp_path / "p", conditions=[("global_uniform", "all")], seeds=[0, 4], architectures=["x"]
    )
    assert project.n_models == 2
    manifest = tmp_path / "p" / "manifest.csv"
    write_subsets(benchmark, tmp_path / "p" / "subsets", manifest=manifest)
    entries = read_manifest(manifest).models
    assert [e.train_annotations.relative_to(tmp_path / "p").as_posix() for e in entries] == [
        "subsets/gu_kall_s0/train.json",
        "subsets/gu_kall_s4/train.json",
    ]


def test_two_projects_are_byte_identical(tmp_path):
    def content(folder):
        init_project(folder, architectures=["x"])
        return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    assert content(tmp_path / "a") == content(tmp_path / "else" / "b")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--benchmark-dir", "."), "no folder detection/annotations_coco"),
        (("--architecture", "a/b"), "architecture 'a/b': a name with a slash"),
        (
            ("--architecture", "a", "--architecture", "a"),
            "architecture 'a' is given more than once",
        ),
        (("--condition", "incremental_natural", "0"), "p must be in (0, 1]"),
        (("--seed", "-1"), "seed must be >= 0, got -1"),
    ],
)
def test_invalid_arguments_create_no_project(tmp_path, args, message):
    result = run(tmp_path / "p", *args)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_never_overwritten(tmp_path):
    init_project(tmp_path / "p")
    (tmp_path / "p" / "manifest.csv").write_text("mine")
    with pytest.raises(UsageError, match="new or empty folder"):
        init_project(tmp_path / "p")
    assert (tmp_path / "p" / "manifest.csv").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    init_project(tmp_path / "empty", conditions=[("global_uniform", "1")])
    assert (tmp_path / "empty" / "predictions" / "gu_k1_s2").is_dir()
