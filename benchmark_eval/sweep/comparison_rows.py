"""The comparisons of a sweep: every question, its list of comparisons, and their verdicts.

The lists are fixed here, before any result is known. A question is one metric, one split and one
scope; Holm's correction is over its tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.intervals import (
    MIN_SEEDS,
    MIN_SPECIES,
    Covers,
    Interval,
    Reason,
    mean_of,
    without_interval,
)
from benchmark_eval.core.shares import MIN_IMAGES
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.manifest import ONE_ARCHITECTURE, Condition
from benchmark_eval.protocol import OOD_BANDS, REGIMES
from benchmark_eval.results.registry import HEADLINE
from benchmark_eval.sweep.band_gaps import BandCounts, band_gap
from benchmark_eval.sweep.budget_curves import Curve, doublings, equal_budgets
from benchmark_eval.sweep.designs import first_names, regime_order
from benchmark_eval.sweep.paired import compare_pairs, largest_group
from benchmark_eval.sweep.share_rows import (
    OOD,
    Band,
    Counts,
    Density,
    band_counts,
    ood_bands,
    with_evidence,
)
from benchmark_eval.sweep.species_tables import (
    SPECIES_MEANS,
    detection_recall,
    distinct_models,
    scored_species,
    species_by_seed,
)
from benchmark_eval.sweep.summaries import SPECIES_KEYS, ModelResult, SplitSpecies
from benchmark_eval.sweep.tables import TARGET_REGIME, BudgetRow, ComparisonRow
from benchmark_eval.sweep.target_gains import Relation, changes_by_group, relations
from benchmark_eval.sweep.tie_groups import tie_group
from benchmark_eval.sweep.verdicts import Question, Verdict, Word, judge

OOD_RECALL = "ood_species_mean_detection_recall"
"""Mean over unseen species of their detection recall. Summaries have no AR@100 by species, so this
stands for the third headline metric in comparisons."""

Groups = Mapping[Condition, Sequence[ModelResult]]


class Metric(NamedTuple):
    """A metric of the comparisons, its split, and the value of each species."""

    name: str
    split: str
    value: Callable[[SplitSpecies], Floats]


METRICS = (
    Metric(HEADLINE[0], "iid_test", SPECIES_MEANS[HEADLINE[0]]),
    Metric(HEADLINE[1], "inat_test", SPECIES_MEANS[HEADLINE[1]]),
    Metric(OOD_RECALL, "semantic_ood", detection_recall),
)
"""The metrics of the comparisons, in order: one for each headline metric."""
UNITS = ("n_images", "n_specimens", "price")
"""The costs of equal budgets; the last one only if the configuration has prices."""


@dataclass(frozen=True, slots=True)
class _Tables:
    """One metric of all conditions with a model: (species, seeds) each, columns by ``seeds``."""

    metric: Metric
    species: Ints
    by_condition: Mapping[Condition, Floats]


def comparison_rows(
    groups: Groups,
    benchmark: Benchmark,
    budgets: Sequence[BudgetRow],
    splits: Sequence[str],
    counts: Counts,
    density: Mapping[str, Density],
) -> list[ComparisonRow]:
    """Every comparison of the sweep, question by question.

    Parameters
    ----------
    groups
        The models of each condition, in table order.
    benchmark
        For the designs, the relations between species and the size of the bands.
    budgets
        The costs of the conditions.
    splits
        The splits that were evaluated.
    counts
        What was counted in the evidence of the models, for the bands.
    density
        The scored specimens of the splits by density stratum.

    Returns
    -------
    list of ComparisonRow
        Runs of a condition with identical predictions on the split count once, and conditions
        that draw the same images of every species enter once, under their first name.
    """
    first = first_names(list(groups), benchmark)
    rows: list[ComparisonRow] = []
    for metric in METRICS:
        if metric.split not in splits:
            continue
        made = _tables(groups, metric)
        rows += _best(made, first)
        rows += _architectures(made, first)
        rows += _steps(made, first, budgets)
        rows += _equal_budgets(made, first, budgets)
        if metric.split == "iid_test":
            rows += _targets(made, benchmark)
        if metric.split == "semantic_ood":
            rows += _bands(groups, made, first, benchmark, counts, density)
    return rows


def _tables(groups: Groups, metric: Metric) -> _Tables:
    everyone = [model for models in groups.values() for model in models]
    species = scored_species(everyone, metric.split)
    seeds = sorted({model.entry.seed for model in everyone})
    return _Tables(
        metric,
        species,
        {
            condition: species_by_seed(
                distinct_models(models, metric.split), metric.split, metric.value, species, seeds
            )
            for condition, models in groups.items()
            if models
        },
    )


def _designs(
    made: _Tables,
    first: Mapping[tuple[str, str], tuple[str, str]],
    architecture: str,
    regimes: Collection[str] = REGIMES,
) -> list[Condition]:
    """The conditions of an architecture in some regimes by increasing budget, each design once."""
    held: dict[tuple[str, str], Condition] = {}
    for condition in made.by_condition:
        if condition.architecture == architecture and condition.regime in regimes:
            held.setdefault(first[condition.regime, condition.k_or_p], condition)
    return list(held.values())


def _curves(made: _Tables) -> list[tuple[str, str]]:
    return list(dict.fromkeys((c.architecture, c.regime) for c in made.by_condition))


def _named(architecture: str, regime: str) -> str:
    """A curve as in ``str(condition)``: without the architecture if the manifest names none."""
    return regime if architecture == ONE_ARCHITECTURE else f"{architecture} {regime}"


def _rows(
    question: str,
    metric: Metric,
    scope: str,
    sides: Sequence[tuple[str, str]],
    judged: Question,
) -> Iterator[ComparisonRow]:
    for (a, b), verdict in zip(sides, judged.verdicts, strict=True):
        found = verdict.interval
        yield ComparisonRow(
            question=question,
            metric=metric.name,
            split=metric.split,
            scope=scope,
            a=a,
            b=b,
            n_species=found.n_species or 0,
            n_seeds=found.n_seeds,
            n_left_out=found.n_left_out,
            a_minus_b=found.mean,
            ci95_low=found.low,
            ci95_high=found.high,
            per_doubling_images=None,
            per_doubling_specimens=None,
            covers=found.covers,
            p=verdict.p,
            p_holm=verdict.p_holm,
            n_tests=judged.n_tests,
            verdict=verdict.word,
            reason=verdict.reason,
        )


def _best(
    made: _Tables, first: Mapping[tuple[str, str], tuple[str, str]]
) -> Iterator[ComparisonRow]:
    """The condition with the highest mean against all others that have at least three seeds.

    Only those that share three seeds can be compared. The largest group of them is, if it holds
    more than half of the conditions; each other one has a row with the reason.
    """
    candidates: dict[tuple[str, tuple[str, str]], Condition] = {}
    for condition, table in made.by_condition.items():
        if int((~np.isnan(table)).any(axis=0).sum()) >= MIN_SEEDS:
            name = first[condition.regime, condition.k_or_p]
            candidates.setdefault((condition.architecture, name), condition)
    named = list(candidates.values())
    if len(named) < 2:
        return
    tables = np.array([made.by_condition[c] for c in named])
    levels = [_level(each) or 0.0 for each in tables]
    compared = largest_group(tables, MIN_SEEDS)
    sides, verdicts, tested = [], [], 0
    best = max(range(len(named)), key=lambda row: levels[row])
    if len(compared) > 1:
        group = tie_group(tables[compared])
        # without species in common, the order is that of the conditions' own means
        order = (
            group.order
            if group.means
            else sorted(range(len(compared)), key=lambda at: -levels[compared[at]])
        )
        means = group.means or [levels[row] for row in compared]
        tested = len(compared) - 1 if group.reason is None else 0
        best = compared[order[0]]
        for other in order[1:]:
            word = Word.INCONCLUSIVE if other in group.tied else Word.HIGHER
            interval = Interval(
                mean=means[order[0]] - means[other],
                covers=Covers.BOTH,
                n_species=group.n_species,
                n_seeds=group.n_seeds,
                n_left_out=group.n_left_out,
            )
            word = word if tested else Word.NOT_TESTED
            verdicts.append(Verdict(word, interval, None, None, group.reason))
            sides.append((str(named[best]), str(named[compared[other]])))
    left_out = [row for row in range(len(named)) if row not in compared and row != best]
    for other in sorted(left_out, key=lambda row: -levels[row]):
        verdicts.append(_without_common_seeds(tables[best], tables[other]))
        sides.append((str(named[best]), str(named[other])))
    yield from _rows("best", made.metric, "", sides, Question(tuple(verdicts), tested))


def _level(table: Floats) -> float | None:
    """The mean of the defined values."""
    return mean_of(table[~np.isnan(table)].tolist())


def _without_common_seeds(a: Floats, b: Floats) -> Verdict:
    """The difference of two means over each side's own seeds, without interval and verdict."""
    defined = [~np.isnan(side) for side in (a, b)]
    species = np.asarray(defined[0].any(axis=1) & defined[1].any(axis=1))
    means = [_level(side[species]) for side in (a, b)]
    found = Interval(
        mean=None if means[0] is None or means[1] is None else means[0] - means[1],
        covers=Covers.BOTH,
        n_species=int(species.sum()),
        n_seeds=int((defined[0].any(axis=0) & defined[1].any(axis=0)).sum()),
        n_left_out=int((defined[0].any(axis=1) ^ defined[1].any(axis=1)).sum()),
    )
    found = without_interval(found, Reason.NO_COMMON_SEEDS)
    return Verdict(Word.NOT_TESTED, found, None, None, Reason.NO_COMMON_SEEDS)


def _architectures(
    made: _Tables, first: Mapping[tuple[str, str], tuple[str, str]]
) -> Iterator[ComparisonRow]:
    """All pairs of architectures at each condition that both have, each design once."""
    at: dict[tuple[str, str], dict[str, Condition]] = {}
    for condition in made.by_condition:
        key = (condition.regime, condition.k_or_p)
        if first[key] == key:
            at.setdefault(key, {})[condition.architecture] = condition
    pairs = [
        pair
        for condition in sorted(at, key=lambda key: regime_order(next(iter(at[key].values()))))
        for pair in combinations([at[condition][name] for name in sorted(at[condition])], 2)
    ]
    judged = compare_pairs(made.by_condition, pairs)
    sides = [(str(a), str(b)) for a, b in pairs]
    yield from _rows("architectures", made.metric, "", sides, judged)


def _steps(
    made: _Tables,
    first: Mapping[tuple[str, str], tuple[str, str]],
    budgets: Sequence[BudgetRow],
) -> Iterator[ComparisonRow]:
    """Each budget of a curve against the one before it, also per doubling of its costs."""
    costs = {row.condition: (row.n_images, row.n_specimens) for row in budgets}
    for architecture, regime in _curves(made):
        curve = _designs(made, first, architecture, [regime])
        pairs = [(after, before) for before, after in pairwise(curve)]
        judged = compare_pairs(made.by_condition, pairs)
        sides = [(str(a), str(b)) for a, b in pairs]
        scope = _named(architecture, regime)
        rows = _rows("steps", made.metric, scope, sides, judged)
        for (after, before), row in zip(pairs, rows, strict=True):
            images, specimens = (
                _per_doubling(row.a_minus_b, high, low)
                for high, low in zip(costs[after], costs[before], strict=True)
            )
            yield replace(row, per_doubling_images=images, per_doubling_specimens=specimens)


def _per_doubling(gain: float | None, high: float | None, low: float | None) -> float | None:
    """A gain over the number of doublings; None unless the cost is known and increases."""
    if gain is None or high is None or low is None or not 0 < low < high:
        return None
    return gain / doublings(low, high)


def units_of(budgets: Sequence[BudgetRow]) -> list[str]:
    """The units in which any of the budgets is known."""
    return [unit for unit in UNITS if any(getattr(row, unit) is not None for row in budgets)]


def _equal_budgets(
    made: _Tables,
    first: Mapping[tuple[str, str], tuple[str, str]],
    budgets: Sequence[BudgetRow],
) -> Iterator[ComparisonRow]:
    """All pairs of regimes of each architecture over the budgets that both cover."""
    for unit in units_of(budgets):
        costs = {row.condition: getattr(row, unit) for row in budgets}
        curves: dict[tuple[str, str], Curve] = {}
        for key in _curves(made):
            # an exact count can be equal, or fall, from one budget to the next
            points: dict[float, Floats] = {}
            for condition in _designs(made, first, key[0], key[1:]):
                if costs.get(condition):
                    points.setdefault(costs[condition], made.by_condition[condition])
            if points:
                ordered = sorted(points)
                curves[key] = Curve(tuple(ordered), np.array([points[cost] for cost in ordered]))
        pairs = [
            ((architecture, a), (architecture, b))
            for architecture in dict.fromkeys(name for name, _ in curves)
            for a, b in combinations([r for r in REGIMES if (architecture, r) in curves], 2)
        ]
        found, judged = equal_budgets(curves, pairs)
        sides = []
        for ((architecture, a), (_, b)), each in zip(pairs, found, strict=True):
            span = ""
            if each.low is not None:
                ends = f"{each.low:.0f} to {each.high:.0f}"
                span = f", {unit} {ends}" if unit == "price" else f", {ends} {unit[2:]}"
            sides.append((_named(architecture, a) + span, _named(architecture, b) + span))
        name = f"equal_budget_{unit.removeprefix('n_')}"
        yield from _rows(name, made.metric, "", sides, judged)


def _targets(made: _Tables, benchmark: Benchmark) -> Iterator[ComparisonRow]:
    """Images of target species against none of them, for the targets and for all others.

    A target's AP without images is 0 by construction, so that its gain has an interval and no
    verdict.
    """
    categories = benchmark.categories
    rows = categories.rows_of(made.species)
    bands = [categories.target_band[row] or None for row in rows.tolist()]
    if not any(bands):
        return
    related = relations(
        [str(code) if code >= 0 else "" for code in categories.genus_code[rows].tolist()],
        [str(code) if code >= 0 else "" for code in categories.tribe_code[rows].tolist()],
        [band is not None for band in bands],
    )
    others = [None if relation == Relation.TARGET else str(relation) for relation in related]
    for architecture in dict.fromkeys(c.architecture for c in made.by_condition):
        found = {
            c.k_or_p: table
            for c, table in made.by_condition.items()
            if (c.architecture, c.regime) == (architecture, TARGET_REGIME)
        }
        zero = found.pop("0", None)
        if zero is None or not found:
            continue
        for question, group in (("targets", bands), ("other_species", others)):
            keys, judged = changes_by_group(found, zero, group)
            if question == "targets":
                judged = _not_tested(judged, Reason.BY_CONSTRUCTION)
            name = _named(architecture, TARGET_REGIME)
            sides = [(f"{name} k={k}, {label}", f"{name} k=0, {label}") for k, label in keys]
            yield from _rows(question, made.metric, architecture, sides, judged)


def _not_tested(judged: Question, reason: Reason) -> Question:
    return Question(
        tuple(
            Verdict(
                Word.NOT_TESTED,
                each.interval,
                None,
                None,
                each.interval.no_verdict or reason,
            )
            for each in judged.verdicts
        ),
        0,
    )


def _bands(
    groups: Groups,
    made: _Tables,
    first: Mapping[tuple[str, str], tuple[str, str]],
    benchmark: Benchmark,
    counts: Counts,
    density: Mapping[str, Density],
) -> Iterator[ComparisonRow]:
    """Near against mid and far unseen species, within the density strata that both fill.

    Conditions without evidence are compared at any density of their images, and never tested.
    """
    truth = density[OOD]
    bands = ood_bands(benchmark, truth)
    near, *further = OOD_BANDS
    rows_of_scored = benchmark.categories.rows_of(made.species)
    for architecture in dict.fromkeys(c.architecture for c in made.by_condition):
        intervals, sides = [], []
        for condition in _designs(made, first, architecture):
            used = distinct_models(groups[condition], OOD)
            by_density = used == with_evidence(groups[condition], counts, OOD)
            counted = {
                name: band_counts(used, counts, truth, band)
                if by_density
                else _at_any_density(used, made, band, rows_of_scored, truth)
                for name, band in bands.items()
            }
            for other in further:
                found = _gap(counted[near], counted[other])
                if not by_density and found.no_verdict is None:
                    found = replace(found, no_verdict=Reason.ANY_DENSITY)
                intervals.append(found)
                sides.append((f"{condition}, {near}", f"{condition}, {other}"))
        yield from _rows("bands", made.metric, architecture, sides, judge(intervals))


def _gap(near: BandCounts, far: BandCounts) -> Interval:
    """The gap of the mean over species, with the reason if a band is too small for any stratum."""
    sides = (near, far)
    n_species = [int((side.annotated.sum(axis=0) > 0).sum()) for side in sides]
    reason = (
        Reason.FEW_SPECIES
        if min(n_species) < MIN_SPECIES
        else Reason.FEW_IMAGES
        if min(sum(side.n_images) for side in sides) < MIN_IMAGES
        else None
    )
    if reason is None:
        return band_gap(near, far).interval
    n_seeds = near.found.shape[2]
    covers = Covers.BOTH if n_seeds > 1 else Covers.SPECIES
    nothing = Interval(mean=None, covers=covers, n_species=sum(n_species), n_seeds=n_seeds)
    return without_interval(nothing, reason)


def _at_any_density(
    models: Sequence[ModelResult], made: _Tables, band: Band, scored: Ints, truth: Density
) -> BandCounts:
    """The specimens of a band's species in one stratum of all densities, from the summaries."""
    seeds = [model.entry.seed for model in models]
    inside = band.inside[scored]

    def count(key: str) -> Ints:
        at = SPECIES_KEYS.index(key)
        table = species_by_seed(
            models, made.metric.split, lambda each: each.values[at], made.species, seeds
        )
        return np.nan_to_num(table[inside]).astype(np.int64)

    annotated = count("n_gt").max(axis=1, initial=0)
    return BandCounts(count("n_matched_tp")[None], annotated[None], [truth.n_images(band.inside)])
