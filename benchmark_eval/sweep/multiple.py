"""Adjustment of p-values for the number of tests in a question."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given.

    Rejecting those below 0.05 keeps the probability of any false rejection in the question below
    0.05, whatever the dependence of the tests.

    Notes
    -----
    Holm (1979), "A simple sequentially rejective multiple test procedure".

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    n, adjusted, largest = len(p_values), [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(n), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (n - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's q-values, in the order given: for tables without verdicts.

    Among the rows with a q-value below 0.05, an expected 5 % are false.

    Notes
    -----
    Benjamini and Hochberg (1995), "Controlling the false discovery rate".

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.02, 0.03, 0.5])
    [0.04, 0.04, 0.04, 0.5]
    """
    n, adjusted, smallest = len(p_values), [0.0] * len(p_values), 1.0
    order = sorted(range(n), key=lambda i: p_values[i])
    for rank in range(n, 0, -1):
        i = order[rank - 1]
        smallest = min(smallest, p_values[i] * n / rank)
        adjusted[i] = smallest
    return adjusted
