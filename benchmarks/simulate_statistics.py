"""How often the intervals and verdicts of a sweep are right, simulated with known truth.

    make bench-statistics          (or: python benchmarks/simulate_statistics.py [--quick])

Draws sweeps whose truth is known, runs the functions of ``core/`` and ``sweep/`` on them, and
writes the rates into ``docs/statistics.md``. Exits with 1 if a gate fails. ``--quick`` takes
seconds, writes nothing, and allows for its own simulation error.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.crossed import crossed_interval, crossed_table, unpaired_interval
from benchmark_eval.core.intervals import (
    DIFFERENCE,
    UNIT,
    Interval,
    seed_interval,
    t_quantile,
)
from benchmark_eval.core.retention import retention
from benchmark_eval.core.rng import stream
from benchmark_eval.core.shares import pooled_share
from benchmark_eval.sweep.band_gaps import BandCounts, band_gap
from benchmark_eval.sweep.budget_curves import Curve, costs_of_levels, equal_budget
from benchmark_eval.sweep.moderated import retraining_intervals
from benchmark_eval.sweep.paired import compare_pairs
from benchmark_eval.sweep.target_gains import share_closed
from benchmark_eval.sweep.tie_groups import tie_group
from benchmark_eval.sweep.verdicts import Word

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
T = TypeVar("T")
PAGE = ROOT / "docs/statistics.md"
BEGIN, END = "<!-- simulated by benchmarks/simulate_statistics.py: {} -->", "<!-- end -->"
SEED = 1

COVERAGE, COVERAGE_SMALL, COVERAGE_MODERATED = 0.93, 0.90, 0.925
FALSE_EQUAL, FALSE_UNEQUAL = 0.06, 0.10
ZEROS, ABILITY, SKEW = 0.18, 0.3, 1.3
"""Fraction of species with AP 0; mean and standard deviation of the logit of the others' AP."""


@dataclass(frozen=True)
class Effort:
    """How much to simulate: the draws of a row, and those behind a truth without closed form."""

    draws: int
    quick: bool = False

    @property
    def truth(self) -> int:
        """Draws behind a truth."""
        return 100_000 if self.quick else 2_000_000

    def times(self, factor: int) -> Effort:
        """More draws where a row is cheap; the same if quick."""
        return self if self.quick else replace(self, draws=factor * self.draws)

    def some(self, values: tuple[T, ...]) -> tuple[T, ...]:
        """All values of a grid; its ends only, if quick."""
        return (values[0], values[-1]) if self.quick and len(values) > 2 else values


@dataclass(frozen=True)
class Rate:
    """A simulated rate, its simulation error, and the gate that it must pass, if any."""

    value: float
    error: float
    least: float | None = None
    most: float | None = None

    def passes(self, slack: float) -> bool:
        """Whether the gate holds, allowing ``slack`` simulation errors."""
        low, high = self.value + slack * self.error, self.value - slack * self.error
        return (self.least is None or low >= self.least) and (
            self.most is None or high <= self.most
        )

    def __str__(self) -> str:
        return f"{self.value:.3f}"

    def gate(self) -> str:
        """The gate as a table cell."""
        if self.least is not None:
            return f">= {self.least:g}"
        return f"<= {self.most:g}" if self.most is not None else "-"


@dataclass
class Section:
    """One table of the page: a name, the titles of its columns, and its rows."""

    name: str
    titles: tuple[str, ...]
    rows: list[tuple[str | Rate, ...]] = field(default_factory=list)

    def failures(self, slack: float) -> list[str]:
        """The rows with a gate that fails."""
        return [
            f"{self.name}: {' | '.join(map(str, row))} (gate {cell.gate()})"
            for row in self.rows
            for cell in row
            if isinstance(cell, Rate) and not cell.passes(slack)
        ]

    def table(self) -> str:
        """The table as Markdown; the gated rate has its simulation error and gate beside it."""
        lines = [f"| {' | '.join(self.titles)} |", f"|{'---|' * len(self.titles)}"]
        for row in self.rows:
            cells: list[str] = []
            for i, cell in enumerate(row):
                cells.append(str(cell))
                if isinstance(cell, Rate) and not any(isinstance(c, Rate) for c in row[:i]):
                    cells += [f"{cell.error:.3f}", cell.gate()]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)


def rate(hits: Iterable[bool], least: float | None = None, most: float | None = None) -> Rate:
    """A rate over independent draws, with its binomial error."""
    values = list(hits)
    p = sum(values) / len(values)
    return Rate(p, math.sqrt(max(p * (1 - p), 1 / len(values)) / len(values)), least, most)


def clustered(fractions: Array, least: float | None = None, most: float | None = None) -> Rate:
    """A mean of the fractions of each draw, with its error between draws."""
    error = float(fractions.std(ddof=1)) / math.sqrt(len(fractions))
    return Rate(float(fractions.mean()), error, least, most)


def covers(interval: Interval, truth: float) -> bool | None:
    """Whether an interval holds the truth; None if there is no interval."""
    if interval.low is None or interval.high is None:
        return None
    return interval.low <= truth <= interval.high


def known(values: Iterable[bool | None]) -> list[bool]:
    """The draws with an interval."""
    return [value for value in values if value is not None]


def expit(x: Array) -> Array:
    """The share with a logit."""
    return 1 / (1 + np.exp(-x))


def coverage_gate(n_species: int, n_seeds: int) -> float | None:
    """The least coverage of an interval over species and seeds."""
    if n_seeds < 2:
        return None
    return COVERAGE if n_species >= 8 and n_seeds >= 3 else COVERAGE_SMALL


# -- data like AP ----------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """How AP varies: standard deviations of logit AP over seeds and over single cells.

    ``interaction`` is that of a candidate on a species, ``log_sd`` the standard deviation of the
    logarithm of the candidates' own seed standard deviations.
    """

    seeds: float = 0.15
    cells: float = 0.35
    interaction: float = 0.4
    log_sd: float = 0.0

    def draw(
        self, generator: np.random.Generator, draws: int, k: int, n: int, r: int, shift: float = 0.0
    ) -> Array:
        """(draws, candidates, species, seeds); ``shift`` on the logit of the first candidate."""
        ability = generator.normal(ABILITY, SKEW, (draws, 1, n, 1))
        own = generator.normal(0, self.interaction, (draws, k, n, 1))
        spread = self.seeds * np.exp(generator.normal(0, self.log_sd, (draws, k, 1, 1)))
        seeds = spread * generator.standard_normal((draws, k, 1, r))
        # species vary unequally between seeds
        cells = self.cells * np.exp(generator.normal(0, 0.5, (draws, 1, n, 1)))
        logits = ability + own + seeds + cells * generator.standard_normal((draws, k, n, r))
        logits[:, 0] += shift
        # species that no model finds, up to chance
        zero = generator.random((draws, 1, n, 1)) < ZEROS
        lucky = generator.random((draws, k, n, r)) < 0.03
        return np.where(zero & ~lucky, 0.0, expit(logits))

    def mean(self, generator: np.random.Generator, draws: int, shift: float = 0.0) -> float:
        """The mean over all species and seeds."""
        return float(self.draw(generator, draws, 1, 1, 1, shift).mean())


QUIET, NOISY = World(), World(seeds=0.6)


def student(values: Array, truth: float) -> list[bool]:
    """Whether Student's t intervals of the means of (draws, n) values hold the truth."""
    n = values.shape[1]
    half = t_quantile(n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    return (abs(values.mean(axis=1) - truth) <= half).tolist()


def satterthwaite(tables: Array, truth: float) -> list[bool]:
    """Whether the crossed intervals with Satterthwaite's degrees of freedom hold the truth."""
    from scipy.special import stdtrit

    _, n, r = tables.shape
    mean = tables.mean(axis=(1, 2), keepdims=True)
    species, seeds = tables.mean(axis=2, keepdims=True), tables.mean(axis=1, keepdims=True)
    df = n - 1, r - 1, (n - 1) * (r - 1)
    squares = (
        r * ((species - mean) ** 2).sum(axis=(1, 2)) / df[0],
        n * ((seeds - mean) ** 2).sum(axis=(1, 2)) / df[1],
        ((tables - species - seeds + mean) ** 2).sum(axis=(1, 2)) / df[2],
    )
    variance = np.maximum.reduce([squares[0] + squares[1] - squares[2], *squares[:2]])
    below = sum(ms**2 / each for ms, each in zip(squares, df, strict=True))
    # draws without variation have no interval
    some = below > 0
    degrees = np.maximum(variance[some] ** 2 / below[some], min(df[:2]))
    half = stdtrit(degrees, 0.975) * np.sqrt(variance[some] / (n * r))
    return (abs(mean.ravel()[some] - truth) <= half).tolist()


def wilson(found: int, total: int) -> tuple[float, float]:
    """Wilson's interval of a share of independent specimens."""
    z = 1.959963984540054
    p, scale = found / total, 1 + z * z / total
    middle = (p + z * z / (2 * total)) / scale
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / scale
    return middle - half, middle + half


# -- the sections ----------------------------------------------------------------------------


def retraining(effort: Effort, generator: np.random.Generator) -> Section:
    """Intervals over seeds, plain and moderated."""
    section = Section(
        "retraining",
        ("rows", "seeds", "seed SDs of the rows", "moderated", "simulation error", "gate",
         "Student's t", "width ratio"),
    )  # fmt: skip
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    tables = max(20, effort.draws // 4)

    def add(
        cells: tuple[str, ...], gate: float | None, draw: Callable[[], tuple[Array, Array]]
    ) -> None:
        shares, plain, ratios = [], [], []
        for _ in range(tables):
            values, truth = draw()
            rows = retraining_intervals(values.tolist())
            t = [seed_interval(row) for row in values.tolist()]
            one, other = (
                [covers(i, m) for i, m in zip(each, truth, strict=True)] for each in (rows, t)
            )
            shares.append(np.mean(known(one)))
            plain.append(np.mean(known(other)))
            ratios += [
                (a.high - a.low) / (b.high - b.low)
                for a, b in zip(rows, t, strict=True)
                if a.high is not None and b.high is not None
            ]
        section.rows.append(
            (*cells, clustered(np.array(shares), gate), clustered(np.array(plain)),
             f"{np.median(ratios):.2f}")
        )  # fmt: skip

    def smooth(rows: int, r: int, log_sd: float) -> tuple[Array, Array]:
        at = generator.uniform(-2.5, 2.5, rows)
        # the standard deviation of logit AP falls with the level, and varies around that
        spread = 0.12 * np.exp(-0.25 * at + generator.normal(0, log_sd, rows))
        values = expit(at[:, None] + spread[:, None] * generator.standard_normal((rows, r)))
        return values, (expit(at[:, None] + spread[:, None] * nodes) * weights).sum(axis=1)

    def counted(specimens: int) -> tuple[Array, Array]:
        from scipy.special import ndtr

        # every seed is scored on the same specimens; some are found by luck
        margin = generator.uniform(-2.0, 2.0, (51, 1)) - generator.logistic(0, 1, (51, specimens))
        luck = np.where(generator.random((51, specimens)) < 0.1, 0.6, 0.01)
        seeds = generator.normal(0, 0.1, (51, 3, 1))
        noise = luck[:, None] * generator.standard_normal((51, 3, specimens))
        truth = ndtr(margin / np.sqrt(0.1**2 + luck**2)).mean(axis=1)
        return (margin[:, None] + seeds + noise > 0).mean(axis=2), truth

    for rows in effort.some((15, 17, 51)):
        for r in effort.some((2, 3, 5)):
            gate = COVERAGE_SMALL if r == 2 else COVERAGE_MODERATED
            for log_sd in effort.some((0.0, 0.25, 0.5)):
                label = f"log-SD {log_sd}" if log_sd else "equal"
                add((f"{rows}", f"{r}", label), gate, lambda a=(rows, r, log_sd): smooth(*a))
    for specimens in effort.some((40, 80, 650)):
        label = f"equal; share of {specimens} specimens"
        add(("51", "3", label), None, lambda n=specimens: counted(n))
    return section


def crossed(effort: Effort, generator: np.random.Generator) -> list[Section]:
    """Means over species, of one condition and of a paired difference."""
    titles = ("species", "seeds", "seed variance", "coverage", "simulation error", "gate",
              "Satterthwaite", "seeds only", "species only")  # fmt: skip
    effort = effort.times(4)
    levels, differences = Section("levels", titles), Section("differences", titles)
    for world, label in ((QUIET, "small"), (NOISY, "large")):
        truth = world.mean(generator, effort.truth)
        shifted = world.mean(generator, effort.truth, 0.3) - truth
        for n in effort.some((3, 4, 5, 8, 12, 30, 65)):
            for r in effort.some((1, 2, 3, 5, 10)):
                drawn = world.draw(generator, effort.draws, 2, n, r, 0.3)
                for section, tables, right, bounds in (
                    (levels, drawn[:, 1], truth, UNIT),
                    (differences, drawn[:, 0] - drawn[:, 1], shifted, DIFFERENCE),
                ):
                    hits = known(
                        covers(crossed_interval(crossed_table(table), bounds), right)
                        for table in tables
                    )
                    others = (satterthwaite(tables, right), student(tables.mean(axis=1), right)) \
                        if r > 1 else ()  # fmt: skip
                    section.rows.append(
                        (f"{n}", f"{r}", label, rate(hits, coverage_gate(n, r)),
                         *(map(rate, others) if others else ("-", "-")),
                         rate(student(tables.mean(axis=2), right)))
                    )  # fmt: skip
    return [levels, differences]


def shares(effort: Effort, generator: np.random.Generator) -> Section:
    """Shares pooled over species of unequal size."""
    section = Section(
        "shares",
        ("species", "seeds", "share and size", "seed variance", "coverage", "simulation error",
         "gate", "species bootstrap", "seeds only", "specimens only (Wilson)", "median n_eff"),
    )  # fmt: skip
    for slope, seed_sd, label in (
        (0.0, 0.15, "independent"),
        (0.0, 0.6, "independent"),
        (0.5, 0.15, "large species are easier"),
        (-1.0, 0.15, "large species are much harder"),
    ):
        size = generator.normal(0, 1.2, effort.truth)
        logits = generator.normal(0.8, 0.8, effort.truth) + slope * size
        logits += generator.normal(0, seed_sd, effort.truth)
        weight = 1 + np.exp(3.0 + size)
        truth = float((weight * expit(logits)).sum() / weight.sum())
        for n in effort.some((8, 12, 30, 65)):
            for r in effort.some((1, 3, 5)):
                hits, boot, specimens, effective = [], [], [], []
                by_seed = np.zeros((effort.draws, r))
                for draw in range(effort.draws):
                    size = generator.normal(0, 1.2, n)
                    logits = generator.normal(0.8, 0.8, n) + slope * size
                    counts = 1 + generator.poisson(np.exp(3.0 + size))
                    shift = generator.normal(0, seed_sd, r)
                    found = generator.binomial(counts[:, None], expit(logits[:, None] + shift))
                    share = pooled_share(found, counts)
                    hits.append(covers(share.interval, truth))
                    if share.bootstrap_low is not None and share.bootstrap_high is not None:
                        boot.append(share.bootstrap_low <= truth <= share.bootstrap_high)
                    by_seed[draw] = found.sum(axis=0) / counts.sum()
                    low, high = wilson(int(found[:, 0].sum()), int(counts.sum()))
                    specimens.append(low <= truth <= high)
                    effective.append(share.n_effective_species or 0.0)
                gate = None if slope else coverage_gate(n, r)
                section.rows.append(
                    (f"{n}", f"{r}", label,
                        "large" if seed_sd > 0.3 else "small", rate(known(hits), gate), rate(boot),
                     rate(student(by_seed, truth)) if r > 1 else "-", rate(specimens),
                     f"{np.median(effective):.1f}")
                )  # fmt: skip
    return section


def verdicts(effort: Effort, generator: np.random.Generator) -> Section:
    """False verdicts in a question of paired comparisons of candidates."""
    section = Section(
        "verdicts",
        ("candidates", "species", "seeds", "seed SDs", "truth", "false verdicts",
         "simulation error", "gate", "t over species alone", "t over seeds alone",
         "true differences found"),
    )  # fmt: skip
    for world, label, most in (
        (QUIET, "equal, small", FALSE_EQUAL),
        (NOISY, "equal, large", FALSE_EQUAL),
        (World(seeds=0.6, log_sd=0.5), "log-SD 0.5, large", FALSE_UNEQUAL),
    ):
        for k in effort.some((2, 3, 6)):
            pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
            draws = effort.times(4 if k == 2 else 1).draws
            for n, r in effort.some(((8, 3), (30, 3), (65, 3), (65, 5))):
                for shift in effort.some((0.0, 1.5)) if k > 2 else (0.0,):
                    drawn = world.draw(generator, draws, k, n, r, shift)
                    null = [not shift or 0 not in pair for pair in pairs]
                    false, found = [], 0
                    for table in drawn:
                        question = compare_pairs(dict(enumerate(table)), pairs)
                        words = [v.word in (Word.HIGHER, Word.LOWER) for v in question.verdicts]
                        false.append(any(w and z for w, z in zip(words, null, strict=True)))
                        found += sum(w and not z for w, z in zip(words, null, strict=True))
                    true = (len(null) - sum(null)) * draws
                    d = [
                        drawn[:, a] - drawn[:, b]
                        for (a, b), z in zip(pairs, null, strict=True)
                        if z
                    ]
                    section.rows.append(
                        (f"{k}", f"{n}", f"{r}", label,
                         "one is better" if shift else "all are equal", rate(false, None, most),
                         rate(_any_rejected([x.mean(axis=2) for x in d], len(pairs))),
                         rate(_any_rejected([x.mean(axis=1) for x in d], len(pairs))),
                         f"{found / true:.2f}" if true else "-")
                    )  # fmt: skip
    return section


def _any_rejected(samples: list[Array], tests: int) -> list[bool]:
    """Whether any of several t tests of mean 0 rejects, with Bonferroni's correction."""
    from scipy.special import stdtrit

    n = samples[0].shape[1]
    critical = stdtrit(n - 1, 1 - 0.025 / tests)
    t = [abs(x.mean(axis=1)) > critical * x.std(axis=1, ddof=1) / math.sqrt(n) for x in samples]
    return np.any(t, axis=0).tolist()


def ties(effort: Effort, generator: np.random.Generator) -> Section:
    """How often a true tie is cut."""
    section = Section(
        "ties",
        ("candidates", "species", "seeds", "seed SDs", "a true tie is cut", "simulation error",
         "gate", "a worse one stays"),
    )  # fmt: skip
    size = max(20, effort.draws // 2)
    for world, label, most in (
        (QUIET, "equal, small", FALSE_EQUAL),
        (NOISY, "equal, large", FALSE_EQUAL),
        (World(seeds=0.6, log_sd=0.5), "log-SD 0.5, large", FALSE_UNEQUAL),
    ):
        for k in effort.some((3, 6, 12)):
            for n, r in effort.some(((8, 3), (65, 3), (65, 5))):
                cut = [len(tie_group(t).tied) < k for t in world.draw(generator, size, k, n, r)]
                worse = [
                    0 in tie_group(t).tied
                    for t in world.draw(generator, max(20, size // 5), k, n, r, -1.5)
                ]
                section.rows.append(
                    (f"{k}", f"{n}", f"{r}", label, rate(cut, None, most), rate(worse))
                )
    return section


COSTS_A = (65.0, 300.0, 560.0, 1100.0, 2000.0, 6000.0)
COSTS_B = (90.0, 400.0, 1500.0, 6000.0)


def planning(effort: Effort, generator: np.random.Generator) -> Section:
    """Equal budgets, and the cost of a level."""
    section = Section(
        "planning",
        ("statistic", "species", "seeds", "truth", "coverage", "simulation error", "gate",
         "seeds only"),
    )  # fmt: skip
    effort = effort.times(2)
    for gap in (0.0, 0.4):
        a, b = _two_curves(generator, effort.truth // 20, 1, 20, gap)
        truth = float(_by_grid(a, b).mean())
        for n, r in effort.some(((8, 3), (65, 3), (65, 5))):
            a, b = _two_curves(generator, effort.draws, n, r, gap)
            hits = [
                covers(equal_budget(Curve(COSTS_A, x), Curve(COSTS_B, y)).interval, truth)
                for x, y in zip(a, b, strict=True)
            ]
            section.rows.append(
                ("equal budget", f"{n}", f"{r}", f"{truth:+.3f}",
                 rate(known(hits), coverage_gate(n, r)), rate(student(_by_grid(a, b), truth)))
            )  # fmt: skip
    costs, levels = np.array(COSTS_A), (0.6, 0.8, 0.95)
    curve = 0.6 * _saturating(costs)
    truths = [float(np.exp(np.interp(x * curve[-1], curve, np.log(costs)))) for x in levels]
    for r in effort.some((2, 3, 5)):
        for spread in (0.01, 0.04):
            reached: dict[float, list[bool]] = {x: [] for x in levels}
            for _ in range(effort.draws):
                values = curve[:, None] + generator.normal(0, spread, (len(costs), r))
                found = costs_of_levels(COSTS_A, values.tolist(), values[-1].tolist(), levels)
                for each, cost in zip(found, truths, strict=True):
                    low = -math.inf if each.low_below else each.low or COSTS_A[-1]
                    high = math.inf if each.high_above else each.high or COSTS_A[0]
                    reached[each.fraction].append(low <= cost <= high)
            section.rows += [
                (f"images to reach {x:.0%} of the ceiling, seed SD {spread}", "-", f"{r}",
                 f"{cost:.0f}", rate(reached[x], COVERAGE if r >= 3 else COVERAGE_SMALL), "-")
                for x, cost in zip(levels, truths, strict=True)
            ]  # fmt: skip
    return section


def _saturating(costs: Array) -> Array:
    """A learning curve between 0 and 1."""
    return 1 - (costs / 20) ** -0.6


def _two_curves(
    generator: np.random.Generator, draws: int, n: int, r: int, gap: float
) -> tuple[Array, Array]:
    """Two regimes on the same species, (draws, budgets, species, seeds); A is ``gap`` higher."""
    ability = generator.normal(ABILITY, SKEW, (draws, 1, n, 1))
    zero = generator.random((draws, 1, n, 1)) < ZEROS
    curves = []
    for costs, shift in ((COSTS_A, gap), (COSTS_B, 0.0)):
        height, b = 4 * (_saturating(np.array(costs)) - 0.7), len(costs)
        own = generator.normal(0, 0.4, (draws, 1, n, 1)) + generator.normal(
            0, 0.2, (draws, b, n, 1)
        )
        cells = generator.normal(0, 0.35, (draws, b, n, r))
        cells += generator.normal(0, 0.3, (draws, b, 1, r))
        logits = ability + shift + height[:, None, None] + own + cells
        curves.append(np.where(zero, 0.0, expit(logits)))
    return curves[0], curves[1]


def _by_grid(a: Array, b: Array) -> Array:
    """The difference of the seeds' mean curves over the common costs, by numerical integration."""
    low, high = max(COSTS_A[0], COSTS_B[0]), min(COSTS_A[-1], COSTS_B[-1])
    edges = np.linspace(math.log(low), math.log(high), 801)
    grid = (edges[1:] + edges[:-1]) / 2
    heights = []
    for costs, curve in ((COSTS_A, a), (COSTS_B, b)):
        x = np.log(costs)
        basis = np.array([np.interp(grid, x, unit).mean() for unit in np.eye(len(x))])
        heights.append((curve.mean(axis=2) * basis[:, None]).sum(axis=1))
    return heights[0] - heights[1]


def others(effort: Effort, generator: np.random.Generator) -> Section:
    """Share closed by the targets, band gaps, unpaired seeds, retention."""
    section = Section(
        "others",
        ("statistic", "species", "seeds", "coverage", "simulation error", "gate",
         "without an interval"),
    )  # fmt: skip

    def add(name: str, n: str, r: int, hits: list[bool | None], gate: float | None) -> None:
        missing = sum(hit is None for hit in hits) / len(hits)
        section.rows.append((name, n, f"{r}", rate(known(hits), gate), f"{missing:.2f}"))

    def targets(size: int, n: int, r: int) -> tuple[Array, Array, Array]:
        top = generator.normal(1.0, 0.7, (size, n, 1)) + generator.normal(0, 0.35, (size, n, r))
        top += generator.normal(0, 0.15, (size, 1, r))
        some = top - 1.2 + generator.normal(0, 0.5, (size, n, 1))
        some += generator.normal(0, 0.35, (size, n, r))
        return np.zeros((size, n, r)), expit(some), expit(top)

    _, some, top = targets(effort.truth, 1, 1)
    truth = float(some.mean() / top.mean())
    for n in (4, 12):
        for r in effort.some((2, 3, 5)):
            hits = [
                covers(share_closed(k, none, every), truth)
                for none, k, every in zip(*targets(effort.draws, n, r), strict=True)
            ]
            add("share closed by targets", f"{n}", r, hits, coverage_gate(n, r))
    for weighting in ("species", "specimens"):
        for n, m in ((12, 8), (30, 30)):
            for r in (1, 3):
                hits = []
                for _ in range(effort.draws):
                    shift = generator.normal(0, 0.15, r)
                    own = generator.normal(0, 0.3, (2, r))
                    near = _band(generator, n, shift + own[0], (0.5, 0.3, 0.2))
                    far = _band(generator, m, shift + own[1], (0.2, 0.3, 0.5))
                    hits.append(covers(band_gap(near, far, weighting).interval, 0.0))
                gate = coverage_gate(min(n, m), r) if weighting == "species" else None
                add(f"band gap at equal density, by {weighting}", f"{n}, {m}", r, hits, gate)
    for world, label in ((QUIET, "small"), (NOISY, "large")):
        for n, r in ((8, 3), (65, 3), (65, 5)):
            drawn = world.draw(generator, effort.draws, 2, n, r)
            hits = [covers(unpaired_interval(a, b), 0.0) for a, b in drawn]
            name = f"difference of unpaired seeds, {label} seed variance"
            add(name, f"{n}", r, hits, coverage_gate(n, r))
    base = generator.normal(1.0, 0.8, effort.truth)
    field = expit(base - 0.8 + generator.normal(0, 0.7, effort.truth))
    truth = float(field.mean() / expit(base).mean())
    for n in (4, 8, 30):
        hits = []
        for _ in range(2 * effort.draws):
            base = generator.normal(1.0, 0.8, n)
            elsewhere = base - 0.8 + generator.normal(0, 0.7, n)
            found = retention(expit(elsewhere)[:, None], expit(base)[:, None])
            hits.append(covers(found, truth))
        add("retention (one model)", f"{n}", 1, hits, COVERAGE if n >= 8 else COVERAGE_SMALL)
    return section


def _band(
    generator: np.random.Generator, n: int, shift: Array, mix: tuple[float, ...]
) -> BandCounts:
    """A band whose recall falls with density; ``mix`` are its fractions of the strata."""
    sizes = 1 + generator.poisson(np.exp(generator.normal(3.5, 1.0, n)))
    annotated = np.array([generator.multinomial(size, mix) for size in sizes]).T
    level = generator.normal(1.0, 0.6, n)
    logits = np.array([0.8, 0.0, -1.0])[:, None, None] + level[None, :, None] + shift
    return BandCounts(generator.binomial(annotated[:, :, None], expit(logits)), annotated, [99] * 3)


SECTIONS: tuple[Callable[[Effort, np.random.Generator], Section | list[Section]], ...] = (
    retraining, crossed, shares, verdicts, ties, planning, others,
)  # fmt: skip


def simulate(effort: Effort) -> list[Section]:
    """All tables; each has its own stream, so that one can change without the others."""
    found: list[Section] = []
    for make in SECTIONS:
        made = make(effort, stream(SEED, make.__name__))
        found += made if isinstance(made, list) else [made]
    return found


def write(sections: list[Section]) -> None:
    """Replace the tables of the page."""
    text = PAGE.read_text()
    for section in sections:
        before, head, rest = text.partition(BEGIN.format(section.name))
        _, end, after = rest.partition(END)
        if not end:
            raise SystemExit(f"{PAGE} has no place for the table {section.name!r}")
        text = f"{before}{head}\n\n{section.table()}\n\n{END}{after}"
    PAGE.write_text(text)


def main() -> None:
    """Simulate, write the page, and fail if a gate does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws; does not write the page")
    options = parser.parse_args()
    sections = simulate(Effort(40, quick=True) if options.quick else Effort(1_000))
    if not options.quick:
        write(sections)
    # a quick run must not fail for its own simulation error
    failures = [line for each in sections for line in each.failures(4.0 if options.quick else 0.0)]
    print("\n".join(failures) or "all gates hold")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
