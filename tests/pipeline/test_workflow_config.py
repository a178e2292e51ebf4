"""The configuration: text is converted, invalid values are errors, all are reported together."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from benchmark_eval.cli.main import main
from benchmark_eval.core.errors import InputError
from benchmark_eval.inputs.config import config_schema, normalise_config, read_config

ROOT = Path(__file__).parents[2]
DEFAULTS = {key: rules["default"] for key, rules in config_schema()["properties"].items()}


def problems(raw):
    with pytest.raises(InputError) as caught:
        normalise_config(raw)
    return caught.value.problems


def test_schema_is_valid_and_documents_every_key():
    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    for key, rules in schema["properties"].items():
        assert len(rules["description"]) > 20, key
        jsonschema.validate(rules["default"], rules)


def test_shipped_config_names_every_key_with_its_default_and_no_data():
    shipped = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    assert shipped == DEFAULTS
    assert normalise_config(shipped).unset() == ["benchmark_dir", "manifest"]


def test_demo_config_is_valid():
    config = read_config(ROOT / "config/demo.yaml")
    assert config.unset() == []
    assert config.splits == ("iid_test", "inat_test", "semantic_ood")


def test_an_empty_config_has_all_defaults():
    config = normalise_config(None)
    assert (config.iou, config.engine, config.on_invalid) == (0.5, "fast", "error")
    assert (config.allow_missing, config.detections) == (False, "hits")
    assert config.operating_confidence is None
    assert config.plot_formats == ("svg", "png")
    assert config == normalise_config({})


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("allow_missing", "false", False),
        ("allow_missing", "True", True),
        ("allow_missing", " true ", True),
        ("detections", "FALSE", "none"),
        ("detections", False, "none"),
        ("detections", "true", "hits"),
        ("detections", True, "hits"),
        ("detections", "all", "all"),
        ("operating_confidence", "0.25", 0.25),
        ("operating_confidence", 0, 0.0),
        ("operating_confidence", "null", None),
        ("operating_confidence", None, None),
        ("price_per_image", "0.5", 0.5),
        ("price_per_specimen", 12, 12.0),
        ("price_per_specimen", "null", None),
        ("iou", "0.75", 0.75),
        ("iou", ".5", 0.5),
        ("iou", "1", 1.0),
        ("iou", 1, 1.0),
        ("iou", "5e-1", 0.5),
        ("splits", "iid_test", ("iid_test",)),
        ("splits", "semantic_ood, iid_test", ("iid_test", "semantic_ood")),
        ("splits", "['inat_test','iid_test']", ("iid_test", "inat_test")),
        ("splits", ("train",), ("train",)),
        ("plot_formats", "png", ("png",)),
        ("benchmark_dir", "a b/c", Path("a b/c")),
        ("benchmark_dir", Path("x"), Path("x")),
        ("predictions_dir", None, None),
    ],
)
def test_text_is_converted_to_the_type_of_the_key(key, text, value):
    found = getattr(normalise_config({key: text}), key)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("allow_missing", "yes"),
        ("allow_missing", "0"),
        ("allow_missing", 1),
        ("allow_missing", None),
        ("allow_missing", ["true"]),
        ("detections", ""),
        ("detections", "false positives"),
        ("detections", 1),
        ("detections", None),
        ("operating_confidence", 1.01),
        ("operating_confidence", -0.1),
        ("price_per_image", -0.01),
        ("price_per_specimen", "cheap"),
        ("price_per_specimen", True),
        ("price_per_image", float("inf")),
        ("operating_confidence", "half"),
        ("operating_confidence", True),
        ("operating_confidence", float("nan")),
        ("iou", 0),
        ("iou", "0"),
        ("iou", 1.0001),
        ("iou", -0.5),
        ("iou", float("nan")),
        ("iou", float("inf")),
        ("iou", "nan"),
        ("iou", "1_0"),
        ("iou", "50%"),
        ("iou", True),
        ("iou", None),
        ("iou", [0.5]),
        ("engine", "Fast"),
        ("engine", True),
        ("engine", ["fast"]),
        ("on_invalid", "ignore"),
        ("on_invalid", None),
        ("splits", ""),
        ("splits", []),
        ("splits", "iid_test,"),
        ("splits", "iid"),
        ("splits", ["iid_test", "iid_test"]),
        ("splits", [["iid_test"]]),
        ("splits", {"iid_test": 1}),
        ("splits", 3),
        ("plot_formats", ["pdf"]),
        ("plot_formats", None),
        ("benchmark_dir", ""),
        ("benchmark_dir", "  "),
        ("benchmark_dir", "a\0b"),
        ("benchmark_dir", 2024),
        ("benchmark_dir", False),
        ("manifest", ["m.csv"]),
        ("manifest", {"path": "m.csv"}),
    ],
)
def test_invalid_values_are_errors_that_name_the_key(key, value):
    (problem,) = problems({key: value})
    assert problem.field == key
    assert problem.kind == "config-value"
    assert problem.expected


@pytest.mark.parametrize("key", ["benchmark_dir", "predictions_dir", "manifest", "custom_metrics"])
@pytest.mark.parametrize("url", ["s3://bucket/sweep", "gs://b", "file:///data", "HTTP://a.org/b"])
def test_a_url_is_refused_with_the_remedy(key, url):
    (problem,) = problems({key: url})
    assert (problem.kind, problem.field, problem.found) == ("config-value", key, repr(url))
    assert "Copy them to one that this computer" in problem.cause
    assert "docs/cluster.md" in problem.cause
    assert getattr(normalise_config({key: f"./{url}"}), key) == Path(url)


def test_all_problems_are_reported_in_one_message():
    found = problems({"iuo": 0.5, "iou": 2, "engine": "quick", 7: 1, "allow_missing": "no"})
    assert [(p.kind, p.field) for p in found] == [
        ("config-key", ""),
        ("config-value", "iou"),
        ("config-value", "engine"),
        ("config-key", ""),
        ("config-value", "allow_missing"),
    ]
    assert "did you mean 'iou'?" in str(found[0])


@pytest.mark.parametrize("raw", [[], "text", 3, ["iou", 0.5]])
def test_a_config_that_is_not_a_mapping_is_an_error(raw):
    (problem,) = problems(raw)
    assert problem.kind == "config-shape"


def test_the_message_for_a_numeric_path_says_to_quote_it():
    (problem,) = problems({"benchmark_dir": 2024})
    assert "quote it" in problem.cause


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"iou: [0.5", "not-yaml"),
        (b"iou: \xff", "not-utf8"),
        (b"iou: 1\niou: 0.5", "duplicate-key"),
        (b"!!python/object/apply:os.getcwd []", "not-yaml"),
        (b"- iou", "config-shape"),
        (b"iou: 0.5\nuio: 1", "config-key"),
    ],
)
def test_files_that_are_not_a_config_are_errors(tmp_path, content, kind):
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_config(path)
    assert [p.kind for p in caught.value.problems] == [kind]
    assert str(path) in str(caught.value)


def test_a_missing_config_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_config(tmp_path / "none.yaml")


def test_an_empty_config_file_has_all_defaults(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("# nothing\n")
    assert read_config(path) == normalise_config({})


def test_a_renamed_key_is_rejected_with_its_new_name():
    with pytest.raises(InputError) as error:
        normalise_config({"own_metrics": "metrics.py"})
    (problem,) = error.value.problems
    assert problem.cause == "renamed to 'custom_metrics'"


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        ("aggregate", "--own-metrics", "--custom-metrics"),
        ("synth", "--boxes-per-specimen", "--detections-per-specimen"),
    ],
)
def test_a_renamed_option_is_rejected_with_its_new_name(command, old, new, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, old, "x"])
    assert stop.value.code == 2
    assert new in capsys.readouterr().err
