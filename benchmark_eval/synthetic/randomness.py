"""Apportioning counts, and the random streams of the synthetic data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmark_eval.core.rng import stream

__all__ = ["apportion", "stream"]


def apportion(
    total: int,
    weights: npt.NDArray[np.float64],
    floor: npt.NDArray[np.int64] | int,
    cap: npt.NDArray[np.int64] | int,
) -> npt.NDArray[np.int64]:
    """Integers in proportion to ``weights`` that sum to ``total``, each in [floor, cap].

    ``total`` must be between the sums of ``floor`` and ``cap``; weights are positive.
    """
    counts = np.broadcast_to(np.asarray(floor, dtype=np.int64), weights.shape).copy()
    room = np.broadcast_to(np.asarray(cap, dtype=np.int64), weights.shape) - counts
    left = total - int(counts.sum())
    if not 0 <= left <= room.sum():
        raise ValueError(f"{total} cannot be apportioned between the given floor and cap")
    while left:
        quotas = np.where(room > 0, weights, 0.0)
        quotas *= left / quotas.sum()
        given = np.minimum(np.floor(quotas).astype(np.int64), room)
        if not given.any():
            order = np.argsort(-quotas, kind="stable")[:left]
            given[order[room[order] > 0]] = 1
        counts += given
        room -= given
        left -= int(given.sum())
    return counts
