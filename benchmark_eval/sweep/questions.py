"""The comparisons of a sweep, question by question; the report puts them into words.

Most functions take ``best``, the best condition of each architecture (``best.best_conditions``),
and return their result by architecture, without the architectures where it is undefined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmark_eval.core.intervals import Estimate
from benchmark_eval.protocol import REGIMES
from benchmark_eval.sweep.best import defined_at_best, largest
from benchmark_eval.sweep.comparisons import Judged, Verdict, compare, judge
from benchmark_eval.sweep.differences import (
    CLASSIFICATION_MINUS_LOCALISATION,
    NEAR_TARGETS,
    RECALL_1_MINUS_OVER_10,
)
from benchmark_eval.sweep.pooled import FULL_DATA, pooled, trains_on_all
from benchmark_eval.sweep.tables import Aggregated, BudgetRow, CurveRow, TargetGapRow

UNIFORM, NATURAL, TARGETS = REGIMES
SAME_COST = 1.25
"""Largest ratio of the numbers of images at which two conditions cost about the same."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two sides of one condition and their difference within each model."""

    left: Estimate
    right: Estimate
    difference: Judged


# -- data efficiency -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Growth:
    """A metric from the smallest to the largest budget of a regime.

    ``before`` is the second largest budget. ``step_pooled`` judges the last step on the seeds of
    all regimes that train on every image; None if the regime does not end there.
    """

    first: CurveRow
    before: CurveRow
    last: CurveRow
    total: Verdict
    step: Verdict
    step_pooled: Verdict | None


def growth(table: Aggregated, regime: str, metric: str) -> dict[str, Growth]:
    """How a metric grows with the budget, where at least two budgets define it."""
    result = {}
    for architecture in table.architectures:
        rows = _defined(table, architecture, regime, metric)
        if len(rows) < 2:
            continue
        first, before, last = rows[0], rows[-2], rows[-1]
        everything = pooled(table, architecture, metric) if trains_on_all(last.condition) else None
        result[architecture] = Growth(
            first,
            before,
            last,
            total=compare(last.metrics[metric], first.metrics[metric]),
            step=compare(last.metrics[metric], before.metrics[metric]),
            step_pooled=compare(everything, before.metrics[metric]) if everything else None,
        )
    return result


@dataclass(frozen=True, slots=True)
class Ranking:
    """The architecture with the highest mean, and its verdict against each of the others."""

    top: str
    value: Estimate
    others: dict[str, Verdict]


def ranking(best: Mapping[str, CurveRow], metric: str) -> Ranking | None:
    """The architectures at their best conditions; None for fewer than two."""
    values = {name: row.metrics[metric] for name, row in best.items()}
    return _ranking(dict(sorted(values.items(), key=lambda item: -(item[1].mean or 0.0))))


def pooled_ranking(table: Aggregated, best: Mapping[str, CurveRow], metric: str) -> Ranking | None:
    """The same on the pooled seeds of all images, if these are best for every architecture."""
    values = {
        name: value
        for name, row in best.items()
        if trains_on_all(row.condition) and (value := pooled(table, name, metric)) is not None
    }
    return _ranking(values) if len(values) == len(best) else None


def _ranking(values: Mapping[str, Estimate]) -> Ranking | None:
    if len(values) < 2:
        return None
    top = largest(values)
    others = {name: compare(values[top], value) for name, value in values.items() if name != top}
    return Ranking(top, values[top], others)


@dataclass(frozen=True, slots=True)
class EqualCost:
    """Two conditions of about the same cost, and the verdict on the uniform one."""

    uniform: BudgetRow
    natural: BudgetRow
    verdict: Verdict


def equal_cost(table: Aggregated, metric: str) -> dict[str, EqualCost]:
    """global_uniform against incremental_natural at about the same number of training images.

    Takes the most expensive pair below all data; on ties, the pair with the closest costs.
    """
    result = {}
    for architecture in table.architectures:
        rows = [
            row
            for row in table.budget_curves
            if row.architecture == architecture
            and row.n_images
            and row.headline[metric].n
            and row.k_or_p != FULL_DATA.get(row.regime)
        ]
        pairs = [
            (-b.n_images, max(a.n_images, b.n_images) / min(a.n_images, b.n_images), a, b)
            for a in rows
            if a.regime == UNIFORM and a.n_images
            for b in rows
            if b.regime == NATURAL and b.n_images
        ]
        close = [pair for pair in pairs if pair[1] <= SAME_COST]
        if close:
            _, _, uniform, natural = min(close, key=lambda pair: pair[:2])
            verdict = compare(uniform.headline[metric], natural.headline[metric])
            result[architecture] = EqualCost(uniform, natural, verdict)
    return result


# -- field photographs and unseen species ----------------------------------------------------


def at_best(best: Mapping[str, CurveRow], metric: str, fixed: float = 0.0) -> dict[str, Judged]:
    """A metric at the best conditions, against a fixed number."""
    rows = defined_at_best(best, metric)
    return {name: judge(row.metrics[metric], fixed) for name, row in rows.items()}


def n_shared_species(best: Mapping[str, CurveRow]) -> int:
    """The number of species that are scored both in distribution and on field photographs."""
    means = (row.metrics["n_shared_species_iid_inat"].mean or 0 for row in best.values())
    return round(max(means, default=0))


def distance(best: Mapping[str, CurveRow]) -> dict[str, Contrast]:
    """Class-agnostic AR@100 on near against far unseen species."""
    near, far, gap = "ood_near_genus_AR_100", "ood_far_tribe_AR_100", "ood_band_gap_AR_100"
    return {
        name: Contrast(row.metrics[near], row.metrics[far], judge(row.metrics[gap]))
        for name, row in defined_at_best(best, near, far, gap).items()
    }


def density(table: Aggregated, best: Mapping[str, CurveRow]) -> dict[str, Contrast]:
    """Recall on images with one unseen specimen against those with more than ten."""
    conditions = {row.condition for row in best.values()}
    recall = {
        (row.architecture, row.stratum): row.metrics["image_mean_recall"]
        for row in table.density_curves
        if (row.split, row.band) == ("semantic_ood", "")
        and row.condition in conditions
        and row.metrics["image_mean_recall"].n
    }
    return {
        name: Contrast(
            recall[name, "1"], recall[name, ">10"], judge(row.differences[RECALL_1_MINUS_OVER_10])
        )
        for name, row in best.items()
        if (name, "1") in recall and (name, ">10") in recall
    }


# -- rare and common species -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Head minus tail AP@.5 at the smallest and the largest budget of a regime.

    ``widened`` compares the gap at the largest with that at the smallest budget.
    """

    first: CurveRow
    last: CurveRow
    gap: Judged
    widened: Verdict


HEAD_MINUS_TAIL = "iid_head_minus_tail_AP_50"


def imbalance(table: Aggregated, regime: str) -> dict[str, Imbalance]:
    """The gap between head and tail species at both ends of a regime."""
    result = {}
    for architecture in table.architectures:
        rows = _defined(table, architecture, regime, HEAD_MINUS_TAIL)
        if rows:
            first, last = (row.metrics[HEAD_MINUS_TAIL] for row in (rows[0], rows[-1]))
            result[architecture] = Imbalance(rows[0], rows[-1], judge(last), compare(last, first))
    return result


# -- detection versus identification ---------------------------------------------------------


def bottleneck(best: Mapping[str, CurveRow], split: str, *metrics: str) -> dict[str, Judged]:
    """Misidentified minus missed specimens on a split, where ``metrics`` are defined."""
    difference = CLASSIFICATION_MINUS_LOCALISATION[split]
    return {
        name: judge(row.differences[difference])
        for name, row in defined_at_best(best, *metrics).items()
    }


# -- target species --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetContrasts:
    """Near against far target species: (k, contrast) at two budgets.

    ``first`` is the smallest k > 0, because a species without images cannot be learned; ``last``
    is the largest k, None if it is the same. Both are None without a defined difference.
    """

    first: tuple[str, Contrast] | None
    last: tuple[str, Contrast] | None


def target_contrasts(table: Aggregated) -> dict[str, TargetContrasts]:
    """AP@.5 of near against far target species on iid_test, for each architecture with targets."""
    cells = {
        (row.architecture, row.band, row.k): row.AP_50
        for row in table.target_species_curves
        if row.split == "iid_test"
    }
    result = {}
    for name in dict.fromkeys(key[0] for key in cells):
        contrasts = {
            row.k_or_p: Contrast(
                cells[name, "near_genus", row.k_or_p],
                cells[name, "far_tribe", row.k_or_p],
                judge(row.differences[NEAR_TARGETS]),
            )
            for row in table.conditions(name, TARGETS)
            if row.differences[NEAR_TARGETS].n
        }
        first = next((item for item in contrasts.items() if item[0] != "0"), None)
        last = list(contrasts.items())[-1] if contrasts else None
        result[name] = TargetContrasts(first, None if last == first else last)
    return result


def target_gaps(table: Aggregated) -> dict[str, tuple[TargetGapRow, Judged]]:
    """Target minus non-target AP@.5 on iid_test at the largest budget that defines it."""
    return {
        row.architecture: (row, judge(row.gap_AP_50))
        for row in table.target_vs_nontarget
        if row.split == "iid_test" and row.gap_AP_50.n
    }


def _defined(table: Aggregated, architecture: str, regime: str, metric: str) -> list[CurveRow]:
    """The conditions of a regime where a metric is defined, by increasing budget."""
    return [row for row in table.conditions(architecture, regime) if row.metrics[metric].n]
