"""Error rates of intervals over seeds, simulated with Gaussian values without true differences.

    .venv/bin/python benchmarks/seed_intervals.py [--draws N] [--seed S]

Prints how often the means of two equal conditions are called different, how often a difference of
0 is called clear, and how much the best of several equal conditions is overestimated. The report
and ``docs/questions`` quote these rates. The decision rules are those of the report.
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np

from benchmark_eval.core.intervals import estimate
from benchmark_eval.sweep.comparisons import (
    FALSE_OVER_DIFFERENCES,
    FALSE_OVER_MEANS,
    compare,
    compare_to,
)

N_SEEDS = 3
N_CONDITIONS = 17


def errors(draws: int, generator: np.random.Generator, n_seeds: int) -> tuple[float, float]:
    """Rates of false verdicts: on two means, and on a difference within models."""
    values = generator.standard_normal((draws, 2, n_seeds)).tolist()
    pairs = [(estimate(left), estimate(right)) for left, right in values]
    means = sum(compare(left, right) != "overlap" for left, right in pairs)
    differences = sum(compare_to(left, 0.0) != "overlap" for left, _ in pairs)
    return means / draws, differences / draws


def best(draws: int, generator: np.random.Generator, n_conditions: int) -> tuple[float, ...]:
    """The best of several equal conditions, in standard deviations over seeds.

    Returns its mean (the true mean is 0), the median half-width of its interval, and the fraction
    of intervals that contain the true mean.
    """
    values = generator.standard_normal((draws, n_conditions, N_SEEDS))
    highest = values.mean(axis=2).argmax(axis=1)
    chosen = [estimate(row) for row in values[np.arange(draws), highest].tolist()]
    half_widths = [((e.ci95_high or 0.0) - (e.ci95_low or 0.0)) / 2 for e in chosen]
    covered = sum(compare_to(e, 0.0) == "overlap" for e in chosen)
    return sum(e.mean or 0.0 for e in chosen) / draws, median(half_widths), covered / draws


def main() -> None:
    """Simulate and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    print(
        f"{options.draws:,} draws; the report quotes {FALSE_OVER_MEANS:.1%} "
        f"and {FALSE_OVER_DIFFERENCES:.0%}"
    )
    for n_seeds in (2, 3, 5, 10):
        means, differences = errors(options.draws, generator, n_seeds)
        print(
            f"{n_seeds} seeds: two equal means called different {means:.2%}, "
            f"a difference of 0 called clear {differences:.2%}"
        )
    bias, half_width, covered = best(options.draws, generator, N_CONDITIONS)
    print(
        f"best of {N_CONDITIONS} equal conditions, {N_SEEDS} seeds each: {bias:.2f} sd too high, "
        f"median half-width {half_width:.2f} sd, coverage of the interval {covered:.1%}"
    )


if __name__ == "__main__":
    main()
