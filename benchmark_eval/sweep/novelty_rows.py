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
_COARSE = 128
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
    higher score, ties counting once. ``known_above`` and ``novel_above`` are (species, coarse
    bins), the true positives in a bin or above it, from the highest novelty score to the lowest.
    """

    wins: Ints
    known_above: Ints
    novel_above: Ints


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
        drawn = [_draw(each) for each in counted]
        for band in ("", *OOD_BANDS):
            inside: Bools = (bands[novel] == band) if band else np.ones(len(novel), np.bool_)
            if inside.any():
                place = (band, "" if stratum is None else DENSITY[stratum])
                rows.append(_row(best, place, seeds, counted, drawn, known, novel[inside], inside))
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

    def above(scores: Floats, species: Ints, n: int) -> Ints:
        width = len(edges) + 1
        key = species * width + np.searchsorted(edges, scores, side="right")
        counts = np.bincount(key, minlength=n * width).reshape(n, width)
        return np.cumsum(counts[:, ::-1], axis=1)

    return _Counted(
        wins,
        above(seed.known, np.searchsorted(known, seed.known_species), len(known)),
        above(seed.novel, of, len(novel)),
    )


def _row(
    best: BestEvidence,
    place: tuple[str, str],
    seeds: Sequence[_Seed],
    counted: Sequence[_Counted],
    drawn: Sequence[_Drawn],
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
        intervals = _bootstrap(drawn, inside)
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


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The bootstrap draws of one seed: those of known species are shared by all bands.

    ``wins`` is (draws, novel species), ``known_above`` (draws, coarse bins), as in ``_Counted``.
    """

    wins: Floats
    known_above: Floats
    novel_above: Ints


def _draw(counted: _Counted) -> _Drawn:
    draws = species_draws(len(counted.wins), "known species")
    return _Drawn(draws @ counted.wins, draws @ counted.known_above, counted.novel_above)


def _bootstrap(
    drawn: Sequence[_Drawn], inside: Bools
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The intervals of AUROC and FPR, of the novel species ``inside``."""
    draws = species_draws(int(inside.sum()), "unseen species")
    auroc, fpr, n_used = np.zeros((3, len(draws)))
    for each in drawn:
        novel_above = draws @ each.novel_above[inside]
        all_known, all_novel = each.known_above[:, -1], novel_above[:, -1]
        wins = (each.wins[:, inside] * draws).sum(axis=1)
        some = (all_known > 0) & (all_novel > 0)
        # at least 95 % of the novel ones are in this bin or above it; so many known ones are there
        at = (novel_above < TPR * all_novel[:, None]).sum(axis=1)
        known_there = each.known_above[np.arange(len(draws)), at]
        auroc[some] += wins[some] / (2 * all_known[some] * all_novel[some])
        fpr[some] += known_there[some] / all_known[some]
        n_used += some
    found = n_used > 0
    return (
        percentile_interval(auroc[found] / n_used[found]),
        percentile_interval(fpr[found] / n_used[found]),
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
