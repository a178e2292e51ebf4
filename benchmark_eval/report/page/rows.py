"""The numbers behind the charts: one row per mark, column by column, as compact JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from benchmark_eval.core.intervals import Estimate, Reason
from benchmark_eval.core.shares import MIN_IMAGES
from benchmark_eval.inputs.manifest import Condition, budget_text
from benchmark_eval.report.facts import Facts
from benchmark_eval.report.lookup import BY_NAME
from benchmark_eval.report.page.tables import compact
from benchmark_eval.results.registry import BAND_LABEL, SPLIT_LABEL, SPLIT_PREFIX
from benchmark_eval.sweep.summaries import STRATUM_METRICS
from benchmark_eval.sweep.tables import TARGET_KEYS, TARGET_REGIME, curve_names

Row = dict[str, str | float | int | None]
SEVERAL = "several splits"
"""The place of a metric that no single split has."""
ALL_BANDS = "all"
STRATA = ("1", "2 to 10", ">10")
"""The density strata that do not overlap, sparsest first."""
QUANTITIES = {
    "missed specimens (%)": ("recall", -100.0, 100.0),
    "false alarms per 100 images": ("false_positives_per_image", 100.0, 0.0),
    "detected and correctly identified (%)": ("species_recall", 100.0, 0.0),
}
"""What a threshold costs: a metric of the operating curves, as factor times it plus summand."""
TARGET_LABEL = {"AP_50": "AP@.5", "AP_50_95": "AP@[.5:.95]"}
THRESHOLD_LABEL = {
    "all": "any confidence",
    "operating": "at and above the operating threshold",
}
EVENT_LABEL = {
    "detected": "a specimen is there",
    "identified": "the species is correct, given a specimen",
    "detected_and_identified": "both",
}
STRATUM_LABEL = {
    "recall": "detection recall",
    "classification_given_detection_acc": "species accuracy given detection",
    "species_recall": "species recall",
    "image_mean_recall": "detection recall, mean over images",
    "image_mean_classification_given_detection_acc": "species accuracy given detection, mean over "
    "images",
    "image_mean_species_recall": "species recall, mean over images",
}


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The rows as columns, with runs of equal values as one value and its number of repetitions.

    Texts are positions in the list of all different texts; numbers have five significant digits.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    made: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        column: dict[str, Any] = {}
        if any(isinstance(value, str) for value in values):
            words = {value: at for at, value in enumerate(dict.fromkeys(values))}
            column["words"] = list(words)
            values = [words[value] for value in values]
        else:
            values = [compact(value) if isinstance(value, float) else value for value in values]
        runs = [(value, len(list(group))) for value, group in groupby(values)]
        if 2 * len(runs) < len(values):
            column["values"] = [value for value, _ in runs]
            column["runs"] = [n for _, n in runs]
        else:
            column["values"] = values
        made[name] = column
    return {"n": len(rows), "columns": made}


def _condition(condition: Condition, order: int) -> Row:
    return {
        "architecture": condition.architecture,
        "regime": condition.regime,
        "budget": budget_text(condition.regime, condition.k_or_p),
        "order": order,
    }


def budget_order(facts: Facts) -> dict[tuple[str, str], int]:
    """The position of each budget in its regime."""
    return {
        (regime, budget): at
        for regime, budgets in facts.look.budgets.items()
        for at, budget in enumerate(budgets)
    }


def metric_place(name: str) -> tuple[str, str]:
    """(split, label without it) of a curve metric; a custom metric is its name."""
    metric = BY_NAME.get(name)
    if metric is None:
        return "custom metrics", name
    if metric.split is None:
        return SEVERAL, metric.metric.label
    place = SPLIT_LABEL[metric.split]
    return place, metric.label.replace(f", {place}", "")


def learning(facts: Facts) -> list[Row]:
    """Every curve metric of every condition, and of every model behind it."""
    data, order = facts.data, budget_order(facts)
    names = [
        name
        for name in curve_names(data)
        if any(row.metrics[name].n for row in data.learning_curves)
    ]
    rows: list[Row] = []
    for line, row in enumerate(data.learning_curves, 2):
        cost = facts.cost[row.condition]
        about = _condition(row.condition, order[row.regime, row.k_or_p]) | {
            "n_images": cost.n_images,
            "n_specimens": cost.n_specimens,
            "price": cost.price,
        }
        for name in names:
            estimate = row.metrics[name]
            if estimate.mean is None:
                continue
            place, label = metric_place(name)
            narrow, wide = row.retraining[name], row.species_retraining.get(name)
            rows.append(
                {
                    "kind": "mean",
                    **about,
                    "split": place,
                    "metric": label,
                    "value": estimate.mean,
                    "n": estimate.n,
                    "r_low": narrow.low,
                    "r_high": narrow.high,
                    "r_why": str(narrow.reason or ""),
                    "b_low": wide.low if wide else None,
                    "b_high": wide.high if wide else None,
                    "b_why": str(wide.reason or "") if wide else "no mean over species",
                    "fixed": "by construction" if name in row.by_construction else "",
                    "model": "",
                    "file": "learning_curves.csv",
                    "line": line,
                }
            )
    for line, model in enumerate(data.models, 2):
        cost = facts.cost[model.condition]
        about = _condition(model.condition, order[model.regime, model.k_or_p]) | {
            "n_images": cost.n_images,
            "n_specimens": cost.n_specimens,
            "price": cost.price,
        }
        for name in names:
            if (value := model.values.get(name)) is not None:
                place, label = metric_place(name)
                rows.append(
                    {
                        "kind": "seed",
                        **about,
                        "split": place,
                        "metric": label,
                        "value": value,
                        "n": 1,
                        "fixed": "by construction" if name in model.by_construction else "",
                        "model": model.model,
                        "file": "models.csv",
                        "line": line,
                    }
                )
    return rows


def _estimate(value: Estimate) -> Row:
    why = "" if value.n > 1 else "only one seed"
    if value.n > 1 and value.ci95_low is None:
        why = "seeds with the same prediction file"
    return {
        "value": value.mean,
        "n": value.n,
        "low": value.ci95_low,
        "high": value.ci95_high,
        "why": why,
    }


def targets(facts: Facts) -> list[Row]:
    """The mean AP of target species by band and number of images, and of all other species."""
    order = budget_order(facts)
    rows: list[Row] = []
    for line, row in enumerate(facts.data.target_species_curves, 2):
        rows += [
            {
                "architecture": row.architecture,
                "split": SPLIT_LABEL[row.split],
                "group": BAND_LABEL.get(row.band, row.band),
                "k": row.k,
                "order": order[TARGET_REGIME, row.k],
                "metric": TARGET_LABEL[key],
                "n_species": row.n_species,
                **_estimate(getattr(row, key)),
                "fixed": "by construction" if key in row.by_construction else "",
                "file": "target_species_curves.csv",
                "line": line,
            }
            for key in TARGET_KEYS
        ]
    for line, gap in enumerate(facts.data.target_vs_nontarget, 2):
        for side, label in (("target", "all targets"), ("nontarget", "all other species")):
            for key in TARGET_KEYS:
                name = f"{side}_{key}"
                rows.append(
                    {
                        "architecture": gap.architecture,
                        "split": SPLIT_LABEL[gap.split],
                        "group": label,
                        "k": gap.k,
                        "order": order[TARGET_REGIME, gap.k],
                        "metric": TARGET_LABEL[key],
                        "n_species": None,
                        **_estimate(getattr(gap, name)),
                        "fixed": "by construction" if name in gap.by_construction else "",
                        "file": "target_vs_nontarget.csv",
                        "line": line,
                    }
                )
    return [row for row in rows if row["value"] is not None]


def density(facts: Facts) -> list[Row]:
    """Recall and accuracy by density of the images and by distance band."""
    order = budget_order(facts)
    few: Row = {"low": None, "high": None, "why": str(Reason.FEW_IMAGES)}
    rows: list[Row] = []
    for line, row in enumerate(facts.data.density_curves, 2):
        for name in STRATUM_METRICS:
            estimate = row.metrics[name]
            known = name in STRATUM_LABEL and row.stratum in STRATA
            if known and estimate.mean is not None:
                rows.append(
                    {
                        **_condition(row.condition, order[row.regime, row.k_or_p]),
                        "split": SPLIT_LABEL[row.split],
                        "band": BAND_LABEL.get(row.band, row.band or ALL_BANDS),
                        "stratum": row.stratum,
                        "metric": STRATUM_LABEL[name],
                        "n_images": row.n_images,
                        "n_specimens": row.n_gt,
                        **_estimate(estimate),
                        **({} if row.n_images >= MIN_IMAGES else few),
                        "fixed": "by construction" if name in row.by_construction else "",
                        "file": "density_curves.csv",
                        "line": line,
                    }
                )
    return rows


def thresholds(facts: Facts) -> list[Row]:
    """Missed specimens, false alarms per 100 images and correct names at each threshold."""
    rows: list[Row] = []
    splits = facts.data.benchmark.splits
    for line, row in enumerate(facts.data.operating_curves, 2):
        n_specimens = splits[row.split].n_scored
        for label, (name, scale, shift) in QUANTITIES.items():
            estimate = row.metrics[name]
            if estimate.mean is not None:
                rows.append(
                    {
                        **_condition(row.condition, 0),
                        "split": SPLIT_LABEL[row.split],
                        "confidence": row.confidence,
                        "quantity": label,
                        "n_specimens": n_specimens,
                        **_estimate(_scaled(estimate, scale, shift)),
                        "fixed": "by construction" if name in row.by_construction else "",
                        "file": "operating_curves.csv",
                        "line": line,
                    }
                )
    return rows


def _scaled(value: Estimate, scale: float, shift: float) -> Estimate:
    """An estimate in another unit."""

    def moved(number: float | None) -> float | None:
        return None if number is None else round(scale * number + shift, 9)

    low, high = moved(value.ci95_low), moved(value.ci95_high)
    if scale < 0:
        low, high = high, low
    std = None if value.std is None else abs(scale) * value.std
    return Estimate(moved(value.mean), std, value.n, low, high)


def fields(items: Iterable[Any], file: str, **more: Mapping[str, str]) -> list[Row]:
    """The rows of a flat table with file and line; ``more`` gives labels for a column's values."""
    rows: list[Row] = []
    for line, item in enumerate(items, 2):
        row: Row = {}
        for name in item.__struct_fields__:
            value = getattr(item, name)
            if name in more:
                value = more[name].get(value, value)
            if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
                row[name] = value
            elif isinstance(value, bool):
                row[name] = int(value)
            elif not isinstance(value, list):
                row[name] = str(value)
        rows.append({**row, "file": file, "line": line})
    return rows


def genera(facts: Facts) -> list[Row]:
    """Detected specimens by true and predicted genus, at a best condition.

    ``value`` is the share of the scored specimens of the true genus, ``count`` their mean number
    per seed. The diagonal is the sum of the correct species and of wrong species of the genus.
    """
    genus = {row.species: row.genus for row in facts.data.species}
    scored: dict[tuple[str, str], int] = {}
    for species in facts.data.species:
        for split, prefix in SPLIT_PREFIX.items():
            n = getattr(species, f"{prefix}_n_specimens") or 0
            scored[split, species.genus] = scored.get((split, species.genus), 0) + n
    counts: dict[tuple[Condition, str, str], dict[tuple[str, str], float]] = {}
    seeds: dict[tuple[Condition, str, str], int] = {}
    for label in facts.data.labels:
        if label.group == "all" and label.label in genus:
            key = (label.condition, label.split, label.threshold)
            cells, own = counts.setdefault(key, {}), genus[label.label]
            cells[own, own] = cells.get((own, own), 0.0) + label.n_right
            seeds[key] = label.n_seeds
    for row in facts.data.genus_confusions:
        key = (row.condition, row.split, row.threshold)
        cells, pair = counts.setdefault(key, {}), (row.true_genus, row.predicted_genus)
        cells[pair] = cells.get(pair, 0.0) + row.n
        seeds[key] = row.n_seeds
    return [
        {
            **_condition(condition, 0),
            "n": seeds[condition, split, threshold],
            "split": SPLIT_LABEL[split],
            "threshold": THRESHOLD_LABEL[threshold],
            "true": true,
            "predicted": predicted,
            "value": n / scored[split, true],
            "count": n,
            "of": scored[split, true],
            "file": "labels.csv and genus_confusions.csv",
        }
        for (condition, split, threshold), cells in counts.items()
        for (true, predicted), n in cells.items()
        if n and scored.get((split, true))
    ]
