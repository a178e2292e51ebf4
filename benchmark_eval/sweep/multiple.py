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
