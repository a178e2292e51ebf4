"""Which species a user should not rely on, and why."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark_eval.core.text import counted

MIN_SPECIMENS = 10
"""Fewest scored specimens on iid_test from which anything is concluded about a species."""
MIN_RECALL = 0.5
"""Smallest species recall, at the operating threshold, of a species to rely on."""
MAX_ABSORBED = 0.3
"""Share of a species' specimens from which on one other label absorbs it."""
MIN_SEEDS_AGREEING = 2
"""Fewest seeds of the best architecture that have to agree on either."""


def reliance(
    n_specimens: int | None,
    recalls: Sequence[float | None],
    absorbed: Sequence[dict[str, float]],
) -> tuple[bool | None, str]:
    """Whether not to rely on a species, with all reasons; None if it cannot be told.

    Parameters
    ----------
    n_specimens
        Its scored specimens on iid_test; None if the split is not evaluated.
    recalls
        By seed, the species recall at the operating threshold; None where undefined.
    absorbed
        By seed, the share of its specimens that each other label takes.

    Examples
    --------
    >>> reliance(40, [0.4, 0.7, 0.45], [{}, {}, {}])
    (True, 'species recall below 0.5 in 2 of 3 seeds')
    >>> reliance(4, [], [])
    (True, 'fewer than 10 scored specimens')
    """
    if n_specimens is None:
        return None, "iid_test is not evaluated"
    if n_specimens < MIN_SPECIMENS:
        return True, f"fewer than {MIN_SPECIMENS} scored specimens"
    defined = [recall for recall in recalls if recall is not None]
    if len(defined) < MIN_SEEDS_AGREEING:
        of = counted(len(defined), "seed")
        return None, f"{of} with an operating threshold; {MIN_SEEDS_AGREEING} have to agree"
    reasons = []
    n_low = sum(recall < MIN_RECALL for recall in defined)
    if n_low >= MIN_SEEDS_AGREEING:
        reasons.append(f"species recall below {MIN_RECALL} in {n_low} of {len(defined)} seeds")
    for label in dict.fromkeys(name for shares in absorbed for name in shares):
        n_absorbed = sum(shares.get(label, 0.0) >= MAX_ABSORBED for shares in absorbed)
        if n_absorbed >= MIN_SEEDS_AGREEING:
            share = f"at least {100 * MAX_ABSORBED:.0f} % of its specimens"
            reasons.append(f"{share} are labelled {label} in {n_absorbed} of {len(defined)} seeds")
    return bool(reasons), "; ".join(reasons)
