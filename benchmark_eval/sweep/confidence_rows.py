"""What the confidence is worth: reliability, and errors if only confident detections are named."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.shares import PooledShare, pooled_share
from benchmark_eval.inputs.benchmark import Categories
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import SPECIES_SPLITS, TEST_SPLITS
from benchmark_eval.results.evidence import N_SCORE_BINS, THRESHOLDS, score_bins, score_edges
from benchmark_eval.sweep.best_evidence import BestEvidence
from benchmark_eval.sweep.table_rows import ReliabilityRow, RiskRow, Threshold

BINS = 10
"""Bins of a reliability curve, as in the summaries."""
COVERAGES = tuple(step / 20 for step in range(1, 21))
"""Coverages of the risk-coverage curve, 0.05 to 1."""
Event = Literal["detected", "identified", "detected_and_identified"]
_ROWS: tuple[Threshold, ...] = ("all", "operating")


@dataclass(frozen=True, slots=True)
class _Detections:
    """Detections of one seed: cells of (species or none, score bin), and what happened in each.

    ``n`` counts the detections of each cell, ``happened`` those for which the event occurred, and
    ``confidence`` is the sum of their scores.
    """

    species: Ints
    bin: Ints
    n: Ints
    happened: Ints
    confidence: Floats


def reliability_rows(best: BestEvidence, categories: Categories) -> list[ReliabilityRow]:
    """The reliability curves of a best condition, over the detections of all its seeds.

    Bins hold about equally many detections and are fixed before the intervals, which are those of
    a pooled share by the true species, or the main species of the image for a false positive. The
    confidence of false positives is known to 0.4 % of its value.
    """
    rows: list[ReliabilityRow] = []
    for split in TEST_SPLITS:
        events: tuple[Event, ...] = ("detected",)
        if split in SPECIES_SPLITS:
            events = ("detected", "identified", "detected_and_identified")
        for event in events:
            for row, threshold in enumerate(_ROWS):
                found = list(_detections(best, split, event, row, categories))
                if found and sum(int(seed.n.sum()) for seed in found):
                    place = (split, event, threshold)
                    rows += _bins(best.condition, place, found, len(categories.ids) + 1)
    return rows


def _detections(
    best: BestEvidence, split: str, event: Event, row: int, categories: Categories
) -> Iterator[_Detections]:
    """The detections of every seed; none if a seed has no operating threshold."""
    edges = score_edges()
    centre = (edges[:-1] + edges[1:]) / 2
    is_operating = THRESHOLDS[row] == "operating"
    if is_operating and best.threshold(split)[1] != "operating":
        return
    for each in best.on(split):
        table = each.splits[split]
        lowest = (each.header.operating_confidence or 0.0) if is_operating else 0.0
        kept: Bools = table.hit_score >= lowest
        right = (categories.name_code[table.hit_true] == categories.name_code[table.hit_predicted])[
            kept
        ]
        score = table.hit_score[kept]
        ones = np.ones(len(score), np.int64)
        parts = [
            (
                table.hit_true[kept].astype(np.int64),
                score_bins(score),
                ones,
                ones if event == "detected" else right.astype(np.int64),
                score,
            )
        ]
        if event != "identified":
            n = table.fp_n[row].astype(np.int64)
            false = (table.fp_species.astype(np.int64), table.fp_bin.astype(np.int64), n)
            parts.append((*false, np.zeros(len(n), np.int64), n * centre[table.fp_bin]))
        yield _Detections(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def equal_mass(counts: Ints, n_bins: int = BINS) -> Ints:
    """The bin of each score bin, so that bins hold about equally many detections.

    ``counts`` are the detections in each score bin. A score bin is never divided, so that fewer
    bins can result; they are numbered from 0 without gaps.

    Examples
    --------
    >>> import numpy as np
    >>> equal_mass(np.array([2, 2, 0, 4]), 2).tolist()
    [0, 0, 1, 1]
    """
    before = np.cumsum(counts) - counts
    # the part of all detections in which a score bin begins; empty ones follow those before them
    part = np.minimum(before * n_bins // max(int(counts.sum()), 1), n_bins - 1)
    return np.cumsum(np.r_[False, np.diff(part) > 0]).astype(np.int64)


def _bins(
    condition: Condition,
    place: tuple[str, Event, Threshold],
    found: Sequence[_Detections],
    n_species: int,
) -> Iterator[ReliabilityRow]:
    split, event, threshold = place
    edges = score_edges()
    total = np.zeros(N_SCORE_BINS, np.int64)
    for seed in found:
        total += _sums(seed.bin, seed.n, N_SCORE_BINS)
    of_score = equal_mass(total)
    last = int(of_score.max()) + 1
    for at in range(last):
        if not total[of_score == at].any():
            continue
        scores = np.flatnonzero(of_score == at)
        n, happened, confidence = [], [], []
        for seed in found:
            inside = of_score[seed.bin] == at
            n.append(_sums(seed.species[inside], seed.n[inside], n_species))
            happened.append(_sums(seed.species[inside], seed.happened[inside], n_species))
            confidence.append(math.fsum(seed.confidence[inside].tolist()))
        share = pooled_share(np.array(happened).T, np.array(n).T)
        number = int(total[scores].sum())
        yield ReliabilityRow(
            architecture=condition.architecture,
            regime=condition.regime,
            k_or_p=condition.k_or_p,
            split=split,
            event=event,
            threshold=threshold,
            bin=at,
            lower=float(edges[scores[0]]),
            upper=float(edges[scores[-1] + 1]),
            n=number,
            mean_confidence=math.fsum(confidence) / number,
            observed=int(np.sum(happened)) / number,
            **_interval(share),
        )


def _sums(at: Ints, n: Ints, length: int) -> Ints:
    return np.bincount(at, weights=n, minlength=length).astype(np.int64)


def _interval(share: PooledShare) -> dict[str, Any]:
    found = share.interval
    return {
        "n_species": found.n_species or 0,
        "n_seeds": found.n_seeds,
        "ci95_low": found.low,
        "ci95_high": found.high,
        "covers": found.covers,
        "reason": found.no_interval,
    }


def risk_rows(best: BestEvidence, categories: Categories) -> list[RiskRow]:
    """Errors of the names by the share of true positives that get one, of known species.

    The true positives of all seeds are ordered by confidence; tied ones stay together. The
    intervals are those of a pooled share.
    """
    rows = []
    for split in SPECIES_SPLITS:
        tables = best.of(split)
        score = np.concatenate([t.hit_score for t in tables]) if tables else np.zeros(0)
        if not len(score):
            continue
        seed = np.repeat(np.arange(len(tables)), [len(t.hit_score) for t in tables])
        true = np.concatenate([t.hit_true for t in tables])
        predicted = np.concatenate([t.hit_predicted for t in tables])
        wrong_species = categories.name_code[true] != categories.name_code[predicted]
        genus = categories.genus_code
        wrong_genus = (genus[true] != genus[predicted]) | (genus[true] < 0)
        shape = (len(categories.ids), len(tables))
        cell = true.astype(np.int64) * len(tables) + seed

        def count(rows: Bools, cell: Ints = cell, shape: tuple[int, int] = shape) -> Ints:
            return np.bincount(cell[rows], minlength=shape[0] * shape[1]).reshape(shape)

        everything = count(np.ones(len(score), np.bool_))
        descending = np.sort(score)[::-1]
        last = math.inf
        for coverage in COVERAGES:
            confidence = float(descending[math.ceil(coverage * len(score)) - 1])
            if confidence >= last:
                continue  # tied with the previous one
            last = confidence
            named = score >= confidence
            share = pooled_share(count(named & wrong_species), count(named))
            fallback = pooled_share(
                count(np.where(named, wrong_species, wrong_genus)), everything
            ).interval
            rows.append(
                RiskRow(
                    architecture=best.condition.architecture,
                    regime=best.condition.regime,
                    k_or_p=best.condition.k_or_p,
                    split=split,
                    coverage=int(named.sum()) / len(score),
                    confidence=confidence,
                    n=int(named.sum()),
                    wrong_species=int((named & wrong_species).sum()) / int(named.sum()),
                    wrong_with_fallback=fallback.mean or 0.0,
                    wrong_with_fallback_ci95_low=fallback.low,
                    wrong_with_fallback_ci95_high=fallback.high,
                    **_interval(share),
                )
            )
    return rows
