"""The registry lists every reported metric once, and docs/metrics.md matches it."""

from pathlib import Path

import msgspec
import pytest
from support.factories import evaluation

from benchmark_eval.results import schema as results
from benchmark_eval.results.metric_page import _WITHOUT_PLACE, PLACES, render_page
from benchmark_eval.results.registry import BY_PATH, CURVE_METRICS, HEADLINE, METRICS
from benchmark_eval.sweep.summaries import reader

ROOT = Path(__file__).parents[2]


def test_docs_page_matches_the_registry():
    text = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    assert text == render_page(), "renew: benchmark-eval catalogue > docs/metrics.md"


def test_every_key_of_the_page_is_in_a_summary():
    summary = msgspec.to_builtins(evaluation("m", 0.25))
    for metric in METRICS:
        if metric.block == "class_imbalance":  # empty without head and tail species
            continue
        places = [""] if metric.path in _WITHOUT_PLACE else PLACES.get(metric.block, [""])
        for place in places:
            value = summary["per_split"]["semantic_ood"] if metric.block != "summary" else summary
            value = value[metric.block]
            parts = [place] if place.startswith("at_") else place.split(".") if place else []
            for part in parts:
                value = next(iter(value.values())) if part.startswith("<") else value[part]
            assert metric.alias_of or metric.key in value, metric.path
    text = render_page()
    assert (
        "| `best_F1.species_recall`, `at_0.25.species_recall`, `at_0.50.species_recall` |" in text
    )


def test_every_family_and_term_is_on_the_page():
    text = render_page()
    texts = {"warnings", "notes", "n_predictions"}
    families = {field.encode_name for field in msgspec.structs.fields(results.SplitEvaluation)}
    assert [f for f in sorted(families - texts) if f": `{f}`\n" not in text] == []
    terms = ("true positive", "detected", "missed", "correctly identified", "false positive")
    for term in terms:
        assert f"| {term} | " in text.split("## Prediction density")[0]
    for field in msgspec.structs.fields(results.Confusion):
        assert f"`{field.encode_name}`" in text


def test_names_and_paths_are_unique():
    assert len(BY_PATH) == len(METRICS)
    assert len({metric.name for metric in CURVE_METRICS}) == len(CURVE_METRICS)
    assert set(HEADLINE) <= {metric.name for metric in CURVE_METRICS}


@pytest.mark.parametrize("metric", CURVE_METRICS, ids=lambda metric: metric.name)
def test_every_column_of_the_curves_is_in_a_summary(metric):
    value = reader(metric.path)(evaluation("m", 0.25))
    assert value is not None
    with pytest.raises(ValueError, match="no summary has 'no such key'"):
        reader((*metric.path[:-1], "no such key"))


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ("prediction_density", results.PredictionDensity),
        ("coco", results.CocoMetrics),
        ("class_agnostic", results.CocoMetrics),
        ("class_imbalance", results.ClassImbalance),
        ("decomposition", results.Decomposition),
        ("ood_by_band", results.OodBand),
        ("density", results.DensityStratum),
        ("chance", results.Chance),
        ("detection_cap", results.DetectionCap),
        ("operating_point", results.OperatingPointAt),
        ("summary", results.Summary),
    ],
)
def test_every_metric_of_a_block_is_in_the_registry(block, kind):
    listed = {m.key for m in METRICS if m.block == block and m.alias_of is None}
    fields = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert fields - {"classification_loss_ratio_note", "is_species_meaningful"} == listed
