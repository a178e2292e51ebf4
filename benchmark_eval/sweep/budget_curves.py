"""What a metric gains from more annotations: equal budgets, and the cost of a level.

A curve is a table (budgets, species, seeds) with the mean cost of each budget, in images,
specimens or money. It is linear in log2 cost between budgets and is not extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmark_eval.core.arrays import Floats
from benchmark_eval.core.crossed import crossed_table
from benchmark_eval.core.intervals import (
    DIFFERENCE,
    Covers,
    Interval,
    Reason,
    t_quantile,
    without_interval,
)
from benchmark_eval.core.numbers import ROUNDING
from benchmark_eval.sweep.paired import Key, difference_intervals
from benchmark_eval.sweep.verdicts import Question, judge

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""The fractions of the ceiling whose cost is reported."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric of one regime at increasing budgets.

    ``costs`` are (budgets,), positive; ``values`` are (budgets, species, seeds), NaN where
    undefined. The seeds of a regime are in the same columns at every budget.
    """

    costs: tuple[float, ...]
    values: Floats

    def __post_init__(self) -> None:
        if self.values.shape[:1] != (len(self.costs),) or self.values.ndim != 3:
            raise ValueError(f"{len(self.costs)} costs, values of shape {self.values.shape}")
        if any(not 0 < cost < math.inf for cost in self.costs):
            raise ValueError(f"costs must be positive, got {self.costs}")
        if any(a >= b for a, b in pairwise(self.costs)):
            raise ValueError(f"costs must increase, got {self.costs}")


def doublings(low: float, high: float) -> float:
    """How often a cost of ``low`` doubles up to ``high``."""
    return math.log(high / low) / math.log(2.0)


# -- equal budgets ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EqualBudget:
    """The mean difference A - B between two curves over their common range of costs.

    ``low`` and ``high`` bound the range; None if there is none.
    """

    interval: Interval
    low: float | None
    high: float | None


def equal_budget(
    a: Curve, b: Curve, bounds: tuple[float, float] | None = DIFFERENCE
) -> EqualBudget:
    """Compare two regimes at equal cost.

    The difference of the areas below both curves over the common range of log2 cost, divided by
    its length: per species and seed, then averaged over them.

    Parameters
    ----------
    a, b
        The curves, with the same species in the same order and seeds paired by column.
    bounds
        The range of the difference.

    Returns
    -------
    EqualBudget
        The interval covers species and retraining. None with fewer than two budgets on a side, or
        without a common range of costs. Pass the intervals of a question to ``verdicts.judge``, or
        use ``equal_budgets``.
    """
    return equal_budgets({"a": a, "b": b}, [("a", "b")], bounds)[0][0]


def equal_budgets(
    curves: Mapping[Key, Curve],
    pairs: Sequence[tuple[Key, Key]],
    bounds: tuple[float, float] | None = DIFFERENCE,
) -> tuple[list[EqualBudget], Question]:
    """``equal_budget`` for all comparisons (A, B) of a question, which share their seed variance.

    ``curves`` maps a key, such as an (architecture, regime), to its curve.
    """
    ranges = [_common_range(curves[a], curves[b]) for a, b in pairs]
    comparable = [
        (pair, common)
        for pair, common in zip(pairs, ranges, strict=True)
        if not isinstance(common, Reason)
    ]
    tables = [
        crossed_table(_area(curves[a], *common), _area(curves[b], *common))
        for (a, b), common in comparable
    ]
    tested = iter(difference_intervals(tables, [pair for pair, _ in comparable], bounds))
    results = []
    for common in ranges:
        if isinstance(common, Reason):
            nothing = Interval(mean=None, covers=Covers.BOTH, n_species=0, n_seeds=0)
            results.append(EqualBudget(without_interval(nothing, common), None, None))
        else:
            results.append(EqualBudget(next(tested), *common))
    return results, judge([each.interval for each in results])


def _common_range(a: Curve, b: Curve) -> tuple[float, float] | Reason:
    if min(len(a.costs), len(b.costs)) < 2:
        return Reason.FEW_BUDGETS
    low, high = max(a.costs[0], b.costs[0]), min(a.costs[-1], b.costs[-1])
    return (low, high) if low < high else Reason.NO_COMMON_COSTS


def _area(curve: Curve, low: float, high: float) -> Floats:
    """The mean height of each species' and seed's curve over [low, high] in log2 cost.

    Budgets without weight may be undefined.
    """
    total = np.zeros(curve.values.shape[1:])
    for weight, table in zip(area_weights(curve.costs, low, high), curve.values, strict=True):
        if weight:
            total += weight * table
    return total


def area_weights(costs: Sequence[float], low: float, high: float) -> list[float]:
    """The weight of each budget in the mean height of a curve over [low, high].

    The curve is linear in log2 cost; ``costs`` increase, and low < high lie within them. The
    weights sum to 1.

    Examples
    --------
    >>> [round(weight, 12) for weight in area_weights([1, 2, 4], 1, 4)]
    [0.25, 0.5, 0.25]
    """
    x, start, end = [math.log(cost) for cost in costs], math.log(low), math.log(high)
    weights = [0.0] * len(x)
    for i, (left, right) in enumerate(pairwise(x)):
        begin, finish = max(left, start), min(right, end)
        if begin < finish:
            # the mean of the segment is its height in the middle
            at = ((begin + finish) / 2 - left) / (right - left)
            weights[i] += (1 - at) * (finish - begin) / (end - start)
            weights[i + 1] += at * (finish - begin) / (end - start)
    return weights


# -- the cost of a level ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CostOfLevel:
    """The cost at which a curve reaches a fraction of the ceiling.

    ``cost``, ``low`` and ``high`` are costs within the budgets. A None with ``..._below`` means
    less than the smallest budget, one with ``..._above`` more than the largest one. Without an
    interval ``reason`` says why, and all of ``low`` and ``high`` is None and False.
    """

    fraction: float
    target: float | None
    cost: float | None
    cost_below: bool
    cost_above: bool
    low: float | None
    low_below: bool
    low_above: bool
    high: float | None
    high_below: bool
    high_above: bool
    reason: Reason | None


def costs_of_levels(
    costs: Sequence[float],
    means: Sequence[Sequence[float | None]],
    ceiling: Sequence[float | None],
    fractions: Sequence[float] = LEVELS,
) -> list[CostOfLevel]:
    """The cost at which a regime reaches fractions of the ceiling, by inverting its curve.

    Parameters
    ----------
    costs
        (budgets,), positive and increasing.
    means
        The values of a metric at each budget, one per seed. Only for a metric of which higher is
        better. None where undefined; budgets without a value are ignored.
    ceiling
        The values with all images, one per seed.
    fractions
        The fractions x of the ceiling's mean.

    Returns
    -------
    list of CostOfLevel
        One per fraction. With the non-decreasing mean curve (isotonic regression weighted by
        seeds), the interval holds every cost at which the curve lies within
        t s sqrt(1 / R + x^2 / R_c) of x times the ceiling: s^2 is the variance over seeds pooled
        over the budgets, t has its degrees of freedom, R are the fewest seeds of a budget and R_c
        those of the ceiling. It covers retraining. No interval if no budget has two seeds or if
        all seeds agree; nothing for fewer than two budgets or a ceiling of 0.

    Notes
    -----
    Inversion of a test, as in Fieller's interval. Averaging the cost over the seeds that reached a
    level would leave out those that did not.
    """
    known = [
        (cost, [v for v in values if v is not None])
        for cost, values in zip(costs, means, strict=True)
    ]
    known = [(cost, values) for cost, values in known if values]
    top = [value for value in ceiling if value is not None]
    level = math.fsum(top) / len(top) if top else 0.0
    if len(known) < 2 or level <= 0:
        reason = Reason.FEW_BUDGETS if len(known) < 2 else Reason.NO_CEILING
        return [_no_cost(x, reason) for x in fractions]
    groups = [values for _, values in known]
    mean = [math.fsum(values) / len(values) for values in groups]
    curve = isotonic(mean, [len(values) for values in groups])
    df = sum(len(values) - 1 for values in groups)
    squares = math.fsum(
        (value - m) ** 2 for values, m in zip(groups, mean, strict=True) for value in values
    )
    fewest = min(len(values) for values in groups)
    x = [cost for cost, _ in known]
    results = []
    for fraction in fractions:
        target = fraction * level
        first = _first_at(x, curve, target)
        if not df or squares <= ROUNDING**2:
            reason = Reason.NO_VARIATION if df else Reason.ONE_SEED
            results.append(CostOfLevel(fraction, target, *first, *_NOTHING, *_NOTHING, reason))
            continue
        half = (
            t_quantile(df)
            * math.sqrt(squares / df)
            * math.sqrt(1.0 / fewest + fraction * fraction / len(top))
        )
        low, high = _first_at(x, curve, target - half), _last_at(x, curve, target + half)
        results.append(CostOfLevel(fraction, target, *first, *low, *high, None))
    return results


Place = tuple[float | None, bool, bool]
"""A cost, or None and whether it is below or above all budgets."""
_NOTHING: Place = (None, False, False)


def _no_cost(fraction: float, reason: Reason) -> CostOfLevel:
    return CostOfLevel(fraction, None, *_NOTHING, *_NOTHING, *_NOTHING, reason)


def _first_at(costs: Sequence[float], curve: Sequence[float], level: float) -> Place:
    """The smallest cost at which a non-decreasing curve is at least ``level``, up to rounding."""
    slack = ROUNDING * max(abs(curve[0]), abs(curve[-1]))
    if curve[0] > level + slack:
        return None, True, False
    for i, height in enumerate(curve):
        if height >= level - slack:
            return costs[0] if i == 0 else _between(costs, curve, i, level), False, False
    return None, False, True


def _last_at(costs: Sequence[float], curve: Sequence[float], level: float) -> Place:
    """The largest cost at which a non-decreasing curve is at most ``level``, up to rounding."""
    slack = ROUNDING * max(abs(curve[0]), abs(curve[-1]))
    if curve[-1] < level - slack:
        return None, False, True
    last = len(curve) - 1
    for i in range(last, -1, -1):
        if curve[i] <= level + slack:
            return costs[i] if i == last else _between(costs, curve, i + 1, level), False, False
    return None, True, False


def _between(costs: Sequence[float], curve: Sequence[float], i: int, level: float) -> float:
    """Where the segment that ends at budget i has the height ``level``; linear in log2 cost."""
    left, right = math.log(costs[i - 1]), math.log(costs[i])
    at = (level - curve[i - 1]) / (curve[i] - curve[i - 1])
    if at <= 0 or at >= 1:  # exact at the budgets themselves
        return costs[i] if at >= 1 else costs[i - 1]
    return math.exp(left + at * (right - left))


def isotonic(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The non-decreasing sequence closest to ``values`` in weighted least squares.

    Notes
    -----
    Pool adjacent violators: Ayer, Brunk, Ewing, Reid and Silverman (1955).

    Examples
    --------
    >>> isotonic([1.0, 3.0, 2.0], [1, 1, 1])
    [1.0, 2.5, 2.5]
    """
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, total, count = value, float(weight), 1
        while blocks and blocks[-1][0] > mean:
            before, other, more = blocks.pop()
            mean = (before * other + mean * total) / (other + total)
            total, count = total + other, count + more
        blocks.append((mean, total, count))
    return [mean for mean, _, count in blocks for _ in range(count)]
