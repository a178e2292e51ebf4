"""Known against unseen species by the confidence of their true positives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.intervals import MIN_SPECIES, Reason, mean_of
from benchmark_eval.core.shares import MIN_IMAGES, percentile_interval, species_draws
from benchmark_eval.inputs.benchmark import Categories
from benchmark_eval.protocol import OOD_BANDS
from benchmark_eval.results.evidence import DENSITY, SplitEvidence
from benchmark_eval.sweep.best_evidence import BestEvidence
from benchmark_eval.sweep.share_rows import Density
from benchmark_eval.sweep.table_rows import HistogramRow, NoveltyRow

KNOWN, NOVEL = "iid_test", "semantic_ood"
TPR_PARTS, ALL_PARTS = 19, 20
"""95 % as a fraction, exact in comparisons of whole numbers."""
TPR = TPR_PARTS / ALL_PARTS
HISTOGRAM_BINS = 20
"""Bins of equal width from 0 to 1."""


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
    higher score, ties counting once. ``known`` and ``novel`` are the novelty scores in descending
    order, and ``known_above`` and ``novel_above``, (scores + 1, species), the true positives among
    the first 0, 1, 2, ... of them.
    """

    wins: Ints
    known: Floats
    known_above: Ints
    novel: Floats
    novel_above: Ints


def novelty_rows(
    best: BestEvidence, categories: Categories, density: Mapping[str, Density]
) -> list[NoveltyRow]:
    """AUROC and FPR at 95 % TPR by band and density stratum, of a best condition.

    Known species are those of iid_test. Means over seeds; the intervals are percentiles of 2,000
    bootstrap draws of known and, independently, of unseen species, the same for every seed. There
    are none for fewer than three species on a side, or in a stratum with fewer than 10 images of a
    side. The threshold of FPR is the benchmark's, an interpolated quantile of the unseen scores,
    as in the summaries; the draws use the highest unseen score that flags at least 95 %.
    """
    both = best.on(KNOWN, NOVEL)
    bands = np.array(categories.distance_band, np.str_)
    everywhere = _mask(bands, "")
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
            inside = _mask(bands, band)[novel]
            if inside.any():
                place = (band, "" if stratum is None else DENSITY[stratum])
                is_small = stratum is not None and any(
                    density[split].n_images(of, stratum) < MIN_IMAGES
                    for split, of in ((KNOWN, everywhere), (NOVEL, _mask(bands, band)))
                )
                side = (known, novel[inside], inside)
                rows.append(_row(best, place, seeds, counted, side, is_small))
    return rows


def _mask(bands: NDArray[np.str_], band: str) -> Bools:
    """The species of a band, or all of them."""
    inside: Bools = (bands == band) if band else np.ones(len(bands), np.bool_)
    return inside


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
    descending, above = _above(seed.known, np.searchsorted(known, seed.known_species), len(known))
    of = np.searchsorted(novel, seed.novel_species)
    wins = np.zeros((len(known), len(novel)), np.int64)
    for at in range(len(novel)):
        scores = -seed.novel[of == at]
        for side in ("left", "right"):
            # all known true positives but those at or above the score, or above it
            place = np.searchsorted(-descending, scores, side=side)
            wins[:, at] += (above[-1] - above[place]).sum(axis=0)
    return _Counted(wins, descending, above, *_above(seed.novel, of, len(novel)))


def _above(scores: Floats, species: Ints, n: int) -> tuple[Floats, Ints]:
    """The scores in descending order, and the species among the first 0, 1, 2, ... of them."""
    order = np.argsort(-scores, kind="stable")
    above = np.zeros((len(scores) + 1, n), np.int64)
    above[np.arange(1, len(scores) + 1), species[order]] = 1
    np.cumsum(above, axis=0, out=above)
    return scores[order], above


def _row(
    best: BestEvidence,
    place: tuple[str, str],
    seeds: Sequence[_Seed],
    counted: Sequence[_Counted],
    species: tuple[Ints, Ints, Bools],
    is_small: bool,
) -> NoveltyRow:
    known, novel, inside = species
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
    few = min(len(known), len(novel)) < MIN_SPECIES
    reason = Reason.FEW_SPECIES if few else Reason.FEW_IMAGES if is_small else None
    intervals = None if reason else _bootstrap(counted, inside)
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
        reason=reason,
    )


def _bootstrap(
    counted: Sequence[_Counted], inside: Bools
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The intervals of AUROC and FPR, of the novel species ``inside``."""
    of_novel = species_draws(int(inside.sum()), "unseen species")
    auroc, fpr, n_used = np.zeros((3, len(of_novel)))
    for each in counted:
        of_known = species_draws(each.known_above.shape[1], "known species")
        all_known, all_novel = (
            of_known @ each.known_above[-1],
            of_novel @ each.novel_above[-1][inside],
        )
        wins = ((of_known @ each.wins[:, inside]) * of_novel).sum(axis=1)
        some = (all_known > 0) & (all_novel > 0)
        flagged = _flagged(each, of_known, of_novel, inside)
        auroc[some] += wins[some] / (2 * all_known[some] * all_novel[some])
        fpr[some] += flagged[some] / all_known[some]
        n_used += some
    found = n_used > 0
    return (
        percentile_interval(auroc[found] / n_used[found]),
        percentile_interval(fpr[found] / n_used[found]),
    )


def _flagged(each: _Counted, of_known: Floats, of_novel: Floats, inside: Bools) -> Floats:
    """The known true positives of each draw at the threshold that flags 95 % of the novel ones.

    The threshold is the highest score of a novel true positive at or above which at least 95 %
    of the drawn ones are; it is found by bisection. Draws are (draws, species).
    """
    above = each.novel_above[:, inside]
    wanted = TPR_PARTS * (of_novel @ above[-1])
    low, high = np.zeros(len(of_novel), np.int64), np.full(len(of_novel), len(above) - 1)
    # the first ``high`` are enough, the first ``low`` are not
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_enough = ALL_PARTS * (above[middle] * of_novel).sum(axis=1) >= wanted
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    threshold = each.novel[high - 1]
    place = np.searchsorted(-each.known, -threshold, side="right")
    flagged: Floats = (each.known_above[place] * of_known).sum(axis=1)
    return flagged


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
