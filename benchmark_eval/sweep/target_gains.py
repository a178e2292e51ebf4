"""What images of the target species bring them, and what they do to all other species."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
from msgspec.structs import replace

from benchmark_eval.core.arrays import Floats
from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import Interval, Reason, without_interval
from benchmark_eval.sweep.paired import compare_pairs
from benchmark_eval.sweep.verdicts import Question

MIN_GAIN = 0.1
"""Smallest AP(all) - AP(0) of a species of which a share is taken."""


class Relation(StrEnum):
    """How a species is related to the target species."""

    TARGET = "target"
    CONGENER = "congener of a target"
    SAME_TRIBE = "same tribe as a target"
    REST = "rest"


def relations(
    genus: Sequence[str], tribe: Sequence[str], is_target: Sequence[bool]
) -> list[Relation]:
    """The relation of each species to the targets; a blank genus or tribe is shared with nobody."""
    genera = {name for name, target in zip(genus, is_target, strict=True) if target and name}
    tribes = {name for name, target in zip(tribe, is_target, strict=True) if target and name}
    return [
        Relation.TARGET
        if target
        else Relation.CONGENER
        if g in genera
        else Relation.SAME_TRIBE
        if t in tribes
        else Relation.REST
        for g, t, target in zip(genus, tribe, is_target, strict=True)
    ]


def changes_by_group(
    at_budgets: Mapping[str, Floats], at_zero: Floats, group: Sequence[str | None]
) -> tuple[list[tuple[str, str]], Question]:
    """The mean change of each group of species at each budget, as one question.

    Parameters
    ----------
    at_budgets
        By budget k > 0: the AP at that budget, (species, seeds).
    at_zero
        The AP at k = 0 of the same species and seeds.
    group
        (species,), the group of each one: the band of a target species, or its relation to the
        targets. None leaves a species out.

    Returns
    -------
    keys, question
        The (budget, group) of each verdict, and the verdicts on AP(k) - AP(0). Intervals cover
        species and retraining. The targets' own AP is 0 at k = 0 by construction.
    """
    labels = list(dict.fromkeys(name for name in group if name is not None))
    keys = [(budget, label) for budget in at_budgets for label in labels]
    rows = {label: np.array([name == label for name in group], bool) for label in labels}
    tables: dict[tuple[str, str], Floats] = {}
    for budget, label in keys:
        tables[budget, label] = at_budgets[budget][rows[label]]
        tables["", label] = at_zero[rows[label]]
    pairs = [(key, ("", key[1])) for key in keys]
    return keys, compare_pairs(tables, pairs)


def share_closed(at_k: Floats, at_zero: Floats, at_all: Floats) -> Interval:
    """The share of the gap between no and all images that k images of each species close.

    r = sum (AP(k) - AP(0)) / sum (AP(all) - AP(0)) over species and seeds.

    Parameters
    ----------
    at_k, at_zero, at_all
        (species, seeds), AP of the same target species (such as those of a band) at k images, none
        and all of them.

    Returns
    -------
    Interval
        Covers species and retraining: that of the linearised differences
        (gain - r (AP(all) - AP(0))) / mean (AP(all) - AP(0)). It is not cut: r can exceed 1. No
        estimate, and no interval, if the interval of the denominator includes 0; the reasons of
        ``core.crossed.crossed_interval`` otherwise. No verdict: the share is not compared.

    Notes
    -----
    Linearisation (delta method) of a ratio estimator: Cochran (1977), "Sampling Techniques".
    """
    defined = ~(np.isnan(at_k) | np.isnan(at_zero) | np.isnan(at_all))
    # numerator and denominator over the same species and seeds
    at_k, at_zero, at_all = (np.where(defined, side, np.nan) for side in (at_k, at_zero, at_all))
    gains, gaps = crossed_table(at_k, at_zero), crossed_table(at_all, at_zero)
    below = crossed_interval(gaps, None)
    if below.low is None or below.high is None or gains.mean is None or gaps.mean is None:
        return replace(below, mean=None)
    if below.low <= 0 <= below.high:
        return without_interval(replace(below, mean=None), Reason.DENOMINATOR_NEAR_ZERO)
    share = gains.mean / gaps.mean
    errors = crossed_interval(
        crossed_table((at_k - at_zero) / gaps.mean, share * (at_all - at_zero) / gaps.mean), None
    )
    if errors.low is None or errors.high is None:
        return replace(errors, mean=share)
    return replace(
        errors,
        mean=share,
        low=share + errors.low,
        high=share + errors.high,
        no_verdict=errors.no_verdict or Reason.NOT_COMPARED,
    )


def species_share_closed(
    at_k: Floats, at_zero: Floats, at_all: Floats
) -> list[tuple[float | None, Reason | None]]:
    """The share closed of each species: descriptive, without an interval.

    The arrays are those of ``share_closed``. A species with AP(all) - AP(0) below 0.1 on the mean
    over seeds has none, and the reason says so.
    """
    result: list[tuple[float | None, Reason | None]] = []
    for gains, gaps in zip((at_k - at_zero).tolist(), (at_all - at_zero).tolist(), strict=True):
        both = [
            (x, y) for x, y in zip(gains, gaps, strict=True) if not (math.isnan(x) or math.isnan(y))
        ]
        above, below = math.fsum(x for x, _ in both), math.fsum(y for _, y in both)
        if not both:
            result.append((None, Reason.NO_VALUES))
        elif below / len(both) < MIN_GAIN:
            result.append((None, Reason.SMALL_GAIN))
        else:
            result.append((above / below, None))
    return result
