"""Known against unseen species by the confidence of their true positives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.intervals import MIN_SPECIES, Reason, mean_of
from benchmark_eval.core.shares import percentile_interval, species_draws
from benchmark_eval.inputs.benchmark import Categories
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.evidence import DENSITY, SplitEvidence
from benchmark_eval.sweep.best_evidence import BestEvidence
from benchmark_eval.sweep.table_rows import HistogramRow, NoveltyRow

KNOWN, NOVEL = "iid_test", "semantic_ood"
TPR = 0.95
HISTOGRAM_BINS = 20
"""Bins of equal width from 0 to 1."""
_COARSE = 512
"""Bins of equal mass in which the bootstrap of FPR counts."""


@dataclass(frozen=True, slots=True)
class _Seed:
    """The true positives of one seed in one density stratum, or in all.

    ``known`` and ``novel`` are novelty scores (1 - confidence), with the species of each.
    """

    known: Floats
    known_species: Ints
    novel: Floats
    novel_species: Ints


@dataclass(frozen=True, slots=True)
class _Counted:
    """What the bootstrap needs of one seed.

    ``wins`` is (known species, novel species): twice the pairs in which the novel one has the
    higher score, ties counting once. ``known_in`` and ``novel_in`` are (species, coarse bins), the
    true positives by ascending novelty score.
    """

    wins: Ints
    known_in: Ints
    novel_in: Ints


def novelty_rows(best: BestEvidence, categories: Categories) -> list[NoveltyRow]:
    """AUROC and FPR at 95 % TPR by band and density stratum, of a best condition.

    Known species are those of iid_test. Means over seeds; the intervals are percentiles of 2,000
    bootstrap draws of known and, independently, of unseen species, the same for every seed.
    """
    both = best.on(KNOWN, NOVEL)
    bands = np.array(categories.distance_band, np.str_)
    rows = []
    for stratum in (None, *range(len(DENSITY))) if both else ():
        seeds = [_seed(each.splits[KNOWN], each.splits[NOVEL], stratum) for each in both]
        seeds = [seed for seed in seeds if len(seed.known) and len(seed.novel)]
        if not seeds:
            continue
        known = _occurring([seed.known_species for seed in seeds])
        novel = _occurring([seed.novel_species for seed in seeds])
        counted = [_count(seed, known, novel) for seed in seeds]
        for band in ("", *OOD_BANDS):
            inside: Bools = (bands[novel] == band) if band else np.ones(len(novel), np.bool_)
            if inside.any():
                place = (band, "" if stratum is None else DENSITY[stratum])
                rows.append(_row(best, place, seeds, counted, known, novel[inside], inside))
    return rows


def _seed(known: SplitEvidence, novel: SplitEvidence, stratum: int | None) -> _Seed:
    def rows(table: SplitEvidence) -> Bools:
        every = np.ones(len(table.hit_score), np.bool_)
        return every if stratum is None else every & (table.hit_stratum == stratum)

    a, b = rows(known), rows(novel)
    return _Seed(
        1 - known.hit_score[a],
        known.hit_true[a].astype(np.int64),
        1 - novel.hit_score[b],
        novel.hit_true[b].astype(np.int64),
    )


def _occurring(species: Sequence[Ints]) -> Ints:
    return np.unique(np.concatenate(species))


def _count(seed: _Seed, known: Ints, novel: Ints) -> _Counted:
    order = np.argsort(seed.known, kind="stable")
    ascending, row = seed.known[order], np.searchsorted(known, seed.known_species[order])
    # known true positives of each species below each place of the ascending scores
    below = np.zeros((len(ascending) + 1, len(known)), np.int64)
    below[np.arange(1, len(ascending) + 1), row] = 1
    np.cumsum(below, axis=0, out=below)
    of = np.searchsorted(novel, seed.novel_species)
    wins = np.zeros((len(known), len(novel)), np.int64)
    for at in range(len(novel)):
        scores = seed.novel[of == at]
        for side in ("left", "right"):
            wins[:, at] += below[np.searchsorted(ascending, scores, side=side)].sum(axis=0)
    everything = np.sort(np.concatenate([seed.known, seed.novel]))
    edges = np.unique(everything[np.arange(1, _COARSE) * len(everything) // _COARSE])

    def binned(scores: Floats, species: Ints, n: int) -> Ints:
        width = len(edges) + 1
        key = species * width + np.searchsorted(edges, scores, side="right")
        return np.bincount(key, minlength=n * width).reshape(n, width)

    return _Counted(
        wins,
        binned(seed.known, np.searchsorted(known, seed.known_species), len(known)),
        binned(seed.novel, of, len(novel)),
    )


def _row(
    best: BestEvidence,
    place: tuple[str, str],
    seeds: Sequence[_Seed],
    counted: Sequence[_Counted],
    known: Ints,
    novel: Ints,
    inside: Bools,
) -> NoveltyRow:
    auroc: list[float | None] = []
    fpr: list[float | None] = []
    n_novel = []
    for seed, each in zip(seeds, counted, strict=True):
        positive = seed.novel[np.isin(seed.novel_species, novel)]
        n_novel.append(len(positive))
        if len(positive):
            wins = int(each.wins[:, inside].sum())
            auroc.append(wins / (2 * len(positive) * len(seed.known)))
            threshold = np.quantile(positive, 1 - TPR)
            fpr.append(int((seed.known >= threshold).sum()) / len(seed.known))
    intervals = None
    if min(len(known), len(novel)) >= MIN_SPECIES:
        intervals = _bootstrap(counted, inside, len(known), len(novel))
    return NoveltyRow(
        architecture=best.condition.architecture,
        regime=best.condition.regime,
        k_or_p=best.condition.k_or_p,
        band=place[0],
        stratum=place[1],
        n_seeds=len(auroc),
        n_known=sum(len(seed.known) for seed in seeds) / len(seeds),
        n_novel=sum(n_novel) / len(seeds),
        n_known_species=len(known),
        n_novel_species=len(novel),
        AUROC=mean_of(auroc),
        AUROC_ci95_species_low=intervals[0][0] if intervals else None,
        AUROC_ci95_species_high=intervals[0][1] if intervals else None,
        FPR_95TPR=mean_of(fpr),
        FPR_95TPR_ci95_species_low=intervals[1][0] if intervals else None,
        FPR_95TPR_ci95_species_high=intervals[1][1] if intervals else None,
        reason=None if intervals else Reason.FEW_SPECIES,
    )


def _bootstrap(
    counted: Sequence[_Counted], inside: Bools, n_known: int, n_novel: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The intervals of AUROC and FPR. Products and sums of integers are exact in any order."""
    a = species_draws(n_known, "known species").astype(np.float64)
    b = species_draws(n_novel, "unseen species").astype(np.float64)
    auroc, fpr = np.zeros(len(a)), np.zeros(len(a))
    n_used = np.zeros(len(a))
    for each in counted:
        known_in = a @ each.known_in.astype(np.float64)
        novel_in = b @ each.novel_in[inside].astype(np.float64)
        all_known, all_novel = known_in.sum(axis=1), novel_in.sum(axis=1)
        wins = ((a @ each.wins[:, inside].astype(np.float64)) * b).sum(axis=1)
        some = (all_known > 0) & (all_novel > 0)
        # novel ones from this bin upwards are at least 95 % of all; so many known ones are there
        from_above = np.cumsum(novel_in[:, ::-1], axis=1)
        last = (from_above < TPR * all_novel[:, None]).sum(axis=1)
        at = np.minimum(last, novel_in.shape[1] - 1)
        known_above = np.cumsum(known_in[:, ::-1], axis=1)[np.arange(len(a)), at]
        auroc[some] += wins[some] / (2 * all_known[some] * all_novel[some])
        fpr[some] += known_above[some] / all_known[some]
        n_used += some
    drawn = n_used > 0
    return (
        percentile_interval(auroc[drawn] / n_used[drawn]),
        percentile_interval(fpr[drawn] / n_used[drawn]),
    )


def histogram_rows(best: BestEvidence, categories: Categories) -> Iterator[HistogramRow]:
    """The true positives of known and unseen species by confidence, of a best condition."""
    bands = np.array(categories.distance_band, np.str_)
    known, novel = best.of(KNOWN), best.of(NOVEL)
    groups: dict[str, list[Floats]] = {}
    for table in known:
        right = categories.name_code[table.hit_true] == categories.name_code[table.hit_predicted]
        groups.setdefault("known, correct", []).append(table.hit_score[right])
        groups.setdefault("known, wrong", []).append(table.hit_score[~right])
    for band in OOD_BANDS:
        for table in novel:
            inside = bands[table.hit_true] == band
            groups.setdefault(band, []).append(table.hit_score[inside])
    for group, scores in groups.items():
        pooled = np.concatenate(scores)
        place = np.minimum((pooled * HISTOGRAM_BINS).astype(np.int64), HISTOGRAM_BINS - 1)
        for at, n in enumerate(np.bincount(place, minlength=HISTOGRAM_BINS).tolist()):
            if len(pooled):
                yield HistogramRow(
                    architecture=best.condition.architecture,
                    regime=best.condition.regime,
                    k_or_p=best.condition.k_or_p,
                    group=group,
                    lower=at / HISTOGRAM_BINS,
                    upper=(at + 1) / HISTOGRAM_BINS,
                    n_seeds=len(scores),
                    n=n / len(scores),
                    share=n / len(pooled),
                )
