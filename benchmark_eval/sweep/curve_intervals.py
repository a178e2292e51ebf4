"""The intervals of the curve metrics of every condition: over seeds, and over species and seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import UNIT, Interval, Reason
from benchmark_eval.core.numbers import ROUNDING
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.results.registry import CURVE_METRICS, CurveMetric
from benchmark_eval.sweep.by_construction import FIXED_CURVES
from benchmark_eval.sweep.moderated import retraining_intervals
from benchmark_eval.sweep.species_tables import SPECIES_MEANS, scored_species, species_by_seed
from benchmark_eval.sweep.summaries import SPECIES_KEYS, ModelResult
from benchmark_eval.sweep.tables import Limits

_OF_ALL = frozenset(
    {
        "AR_100",
        "detection_recall",
        "detection_recall_open_vocabulary",
        "species_recall",
        "localisation_loss",
        "classification_loss",
    }
)
"""Shares counted on the specimens of the split or band; those of found specimens have fewer."""
_OF_FOUND = frozenset({"classification_given_detection_acc", "correct_genus", "correct_tribe"})

_Counted = tuple[str, str, str]


def bounds_of(metric: CurveMetric | None) -> tuple[float, float] | None:
    """The range of a curve metric; None without one, as for a custom metric (None)."""
    if metric is None or metric.metric.low is None or metric.metric.high is None:
        return None
    return metric.metric.low, metric.metric.high


def curve_intervals(
    groups: Mapping[Condition, Sequence[ModelResult]],
    names: Sequence[str],
    bands: Mapping[int, str],
) -> dict[Condition, tuple[dict[str, Limits], dict[str, Limits]]]:
    """The intervals of every condition by metric: over retraining, over species and retraining.

    Parameters
    ----------
    groups
        The models of each condition, at most one per seed.
    names
        All curve metrics; those that the registry does not know are custom metrics, which have no
        range.
    bands
        The distance band of each category id.

    Returns
    -------
    dict
        The second mapping has the metrics of ``SPECIES_MEANS`` only.
    """
    registered = {metric.name: metric for metric in CURVE_METRICS}
    result: dict[Condition, tuple[dict[str, Limits], dict[str, Limits]]] = {
        condition: ({}, {}) for condition in groups
    }
    everyone = [model for models in groups.values() for model in models]
    fewest: dict[_Counted, int] = {}
    for name in names:
        metric = registered.get(name)
        counted = None if metric is None else _counted_on(metric)
        if counted is not None and counted not in fewest:
            fewest[counted] = _fewest(everyone, counted, bands)
        rows = retraining_intervals(
            [[model.values.get(name) for model in models] for models in groups.values()],
            bounds_of(metric),
            None if counted is None else fewest[counted],
            name in FIXED_CURVES,
        )
        for condition, interval in zip(groups, rows, strict=True):
            result[condition][0][name] = limits(interval)
    for name, value in SPECIES_MEANS.items():
        split = registered[name].split or ""
        species = scored_species(everyone, split)
        for condition, models in groups.items():
            seeds = [model.entry.seed for model in models]
            table = species_by_seed(models, split, value, species, seeds)
            interval = crossed_interval(crossed_table(table), UNIT)
            printed = [v for model in models if (v := model.values.get(name)) is not None]
            result[condition][1][name] = limits(interval, printed)
    return result


def limits(interval: Interval, values: Sequence[float] | None = None) -> Limits:
    """The limits of an interval, or the reason why there are none.

    With ``values``, those whose mean is printed: no interval around another mean, as of species
    that are not defined for every seed.
    """
    if interval.mean is not None and values is not None:
        mean = math.fsum(values) / len(values) if values else None
        if mean is None or abs(mean - interval.mean) > ROUNDING:
            return Limits(None, None, Reason.SPECIES_LEFT_OUT if values else Reason.NO_VALUES)
    return Limits(interval.low, interval.high, interval.no_interval)


def _counted_on(metric: CurveMetric) -> tuple[str, str, str] | None:
    """The split, the band ("": all) and the count of the specimens behind a share; None: no share.

    The class-aware AR@100 is a mean over species, not a share of specimens.
    """
    key, block = metric.path[-1].removeprefix("class_agnostic_"), metric.metric.block
    of_all = key in _OF_ALL and block != "coco"
    if metric.split is None or not (of_all or key in _OF_FOUND):
        return None
    band = metric.path[4] if block == "ood_by_band" else ""
    return metric.split, band, "n_matched_tp" if key in _OF_FOUND else "n_gt"


def _fewest(models: Sequence[ModelResult], counted: _Counted, bands: Mapping[int, str]) -> int:
    """The smallest number of such specimens of any model."""
    split, band, key = counted
    row = SPECIES_KEYS.index(key)
    sums = []
    for model in models:
        species = model.species.get(split)
        if species is not None:
            inside = [not band or bands.get(number) == band for number in species.ids.tolist()]
            sums.append(int(species.values[row][np.array(inside, bool)].sum()))
    return min(sums, default=0)
