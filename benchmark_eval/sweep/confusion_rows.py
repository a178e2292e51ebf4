"""Which species are confused, which labels absorb others, and whether relatives are confused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmark_eval.core.arrays import Ints
from benchmark_eval.core.intervals import Covers, Interval, Reason, without_interval
from benchmark_eval.core.retention import ratio_over_species
from benchmark_eval.inputs.benchmark import Categories
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import SPECIES_SPLITS, TEST_SPLITS
from benchmark_eval.sweep.best_evidence import Pairs
from benchmark_eval.sweep.evidence_counts import ModelCounts
from benchmark_eval.sweep.reliance import MIN_SEEDS_AGREEING
from benchmark_eval.sweep.share_rows import with_evidence
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.table_rows import ConfusionRow, EnrichmentRow, GenusConfusionRow, LabelRow
from benchmark_eval.sweep.tables import TARGET_REGIME

MIN_CONFUSED = 3
"""Fewest specimens confused the same way, in each of two seeds, of a confusion that is named."""
TAXA: tuple[Literal["genus", "tribe"], ...] = ("genus", "tribe")

Groups = Mapping[Condition, Sequence[ModelResult]]
Counts = Mapping[str, ModelCounts]


@dataclass(frozen=True, slots=True)
class Confused:
    """One label that specimens of a species get: ``label`` is a row of the categories.

    ``n`` is the mean number of specimens per seed, ``n_seeds`` the seeds with at least 3 of them.
    ``rank`` is shared by tied labels. ``reason`` says why the pair is not named; "" if it is.
    """

    label: int
    n: float
    n_seeds: int
    rank: int
    reason: str


def labels_of(pairs: Pairs, species: int) -> list[Confused]:
    """The wrong labels of a species, the most frequent first, then in the order of categories."""
    counts = pairs.n[:, species]
    total = counts.sum(axis=0)
    labels = np.flatnonzero(total)
    found = []
    for label in labels[np.argsort(-total[labels], kind="stable")].tolist():
        n_seeds = int((counts[:, label] >= MIN_CONFUSED).sum())
        reason = ""
        if int((total == total[label]).sum()) > 1:
            reason = "tied with another label"
        elif n_seeds < MIN_SEEDS_AGREEING:
            reason = f"fewer than {MIN_CONFUSED} specimens in {MIN_SEEDS_AGREEING} seeds"
        rank = 1 + int((total > total[label]).sum())
        found.append(Confused(label, int(total[label]) / len(counts), n_seeds, rank, reason))
    return found


def confusion_rows(pairs: Sequence[Pairs], categories: Categories) -> list[ConfusionRow]:
    """The confused pairs at the best conditions, with at least one specimen per seed on average."""
    rows = []
    for each in pairs:
        for species in np.flatnonzero(each.n.any(axis=(0, 2))).tolist():
            n_scored = int(each.scored[species])
            n_seeds = len(each.n)
            rows += [
                ConfusionRow(
                    architecture=each.condition.architecture,
                    regime=each.condition.regime,
                    k_or_p=each.condition.k_or_p,
                    split=each.split,
                    threshold=each.threshold,
                    true_species=categories.names[species],
                    predicted_species=categories.names[found.label],
                    relation=_relation(species, found.label, categories),
                    n_seeds=n_seeds,
                    n=found.n,
                    n_specimens=n_scored,
                    share=found.n / n_scored,
                    n_seeds_at_least_3=found.n_seeds,
                    rank=found.rank,
                    named=not found.reason,
                    reason=found.reason,
                )
                for found in labels_of(each, species)
                if found.n >= 1
            ]
    return rows


def genus_confusion_rows(pairs: Sequence[Pairs], categories: Categories) -> list[GenusConfusionRow]:
    """All misidentified specimens at the best conditions, by true and predicted genus.

    A blank genus is one of its own; pairs without a specimen are left out.
    """
    genera = sorted(set(categories.genera))
    member = np.array([[own == genus for genus in genera] for own in categories.genera], np.int64)
    rows = []
    for each in pairs:
        counts = member.T @ each.n.sum(axis=0) @ member
        scored = member.T @ each.scored
        n_seeds = len(each.n)
        for true, predicted in np.argwhere(counts).tolist():
            n = int(counts[true, predicted]) / n_seeds
            rows.append(
                GenusConfusionRow(
                    architecture=each.condition.architecture,
                    regime=each.condition.regime,
                    k_or_p=each.condition.k_or_p,
                    split=each.split,
                    threshold=each.threshold,
                    true_genus=genera[true],
                    predicted_genus=genera[predicted],
                    n_seeds=n_seeds,
                    n=n,
                    n_specimens=int(scored[true]),
                    share=n / int(scored[true]),
                )
            )
    return rows


def _relation(a: int, b: int, categories: Categories) -> Literal["congener", "same tribe", "other"]:
    if categories.genus_code[a] >= 0 and categories.genus_code[a] == categories.genus_code[b]:
        return "congener"
    if categories.tribe_code[a] >= 0 and categories.tribe_code[a] == categories.tribe_code[b]:
        return "same tribe"
    return "other"


def label_rows(
    pairs: Sequence[Pairs], groups: Groups, counts: Counts, categories: Categories
) -> list[LabelRow]:
    """How often labels are given: at the best conditions, and to target species at every k."""
    rows = []
    for each in pairs:
        parts = (each.given, each.right, each.found)
        rows += _labels(each.condition, each.split, "all", each.threshold, parts, categories)
    is_target = np.array([bool(band) for band in categories.target_band], np.bool_)
    for condition, models in groups.items():
        if condition.regime != TARGET_REGIME or not is_target.any():
            continue
        for split in SPECIES_SPLITS:
            used = with_evidence(models, counts, split)
            found = [counts[model.entry.model_name][split] for model in used]
            if not found:
                continue
            given = np.array([c.given_to_targets for c in found], np.int64)
            right = np.array([c.right for c in found], np.int64) * is_target
            true = np.array([c.found for c in found], np.int64) * is_target
            parts = (given, right, true)
            rows += _labels(condition, split, "targets", "all", parts, categories)
    return rows


def _labels(
    condition: Condition,
    split: str,
    group: Literal["all", "targets"],
    threshold: Literal["all", "operating"],
    parts: tuple[Ints, Ints, Ints],
    categories: Categories,
) -> list[LabelRow]:
    given, right, true = (part.sum(axis=0).tolist() for part in parts)
    n_seeds = len(parts[0])
    return [
        LabelRow(
            architecture=condition.architecture,
            regime=condition.regime,
            k_or_p=condition.k_or_p,
            split=split,
            group=group,
            threshold=threshold,
            label=categories.names[row],
            label_is_target=bool(categories.target_band[row]),
            n_seeds=n_seeds,
            n_given=given[row] / n_seeds,
            n_right=right[row] / n_seeds,
            n_true=true[row] / n_seeds,
            given_per_true=given[row] / true[row] if true[row] else None,
        )
        for row in sorted((r for r in range(len(given)) if given[r]), key=lambda r: -given[r])
    ]


def enrichment_rows(groups: Groups, counts: Counts) -> list[EnrichmentRow]:
    """Misidentified specimens with the correct genus or tribe against chance, where there are any.

    Expected numbers follow the labels that each model gives
    (``core.chance.correct_by_chance``); they are kept while species are left out.
    """
    rows = []
    for condition, models in groups.items():
        for split in TEST_SPLITS:
            used = with_evidence(models, counts, split)
            found = [counts[model.entry.model_name][split] for model in used]
            if not found:
                continue
            wrong = np.array([c.misidentified for c in found]).sum(axis=0)
            some = wrong > 0
            if not some.any():
                continue
            n_wrong = int(wrong.sum())
            for at, taxon in enumerate(TAXA):
                same = np.array([c.same[at] for c in found]).sum(axis=0)[some].tolist()
                by_seed = np.array([c.by_chance[at] for c in found])[:, some]
                chance = [math.fsum(of_species) for of_species in by_seed.T.tolist()]
                value = _enrichment(same, chance, len(found))
                rows.append(
                    EnrichmentRow(
                        architecture=condition.architecture,
                        regime=condition.regime,
                        k_or_p=condition.k_or_p,
                        split=split,
                        taxon=taxon,
                        n_seeds=len(found),
                        n_species=int(some.sum()),
                        n_misidentified=n_wrong,
                        observed=sum(same) / n_wrong,
                        expected=math.fsum(chance) / n_wrong,
                        enrichment=value.mean,
                        ci95_species_low=value.low,
                        ci95_species_high=value.high,
                        reason=value.no_interval,
                    )
                )
    return rows


def _enrichment(same: list[int], chance: list[float], n_seeds: int) -> Interval:
    found = Interval(mean=None, covers=Covers.SPECIES, n_species=len(same), n_seeds=n_seeds)
    if not any(chance):
        return without_interval(found, Reason.NONE_EXPECTED)
    return ratio_over_species([float(n) for n in same], chance, found, Reason.NONE_OBSERVED)
