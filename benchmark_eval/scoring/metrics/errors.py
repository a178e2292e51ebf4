"""Error shares: how often each type of error occurs, and what it costs in AP."""

from __future__ import annotations

import math

import numpy as np

from benchmark_eval.core.arrays import Ints
from benchmark_eval.core.numbers import share
from benchmark_eval.results.schema import ERROR_TYPES, ErrorCount, Errors
from benchmark_eval.scoring.error_types import (
    BOTH,
    MISSED,
    NO_TYPE,
    WRONG_NAMES,
    ClassAwareErrors,
    ErrorTypes,
    is_class_agnostic,
)
from benchmark_eval.scoring.split_data import SplitData


def errors(
    data: SplitData, types: ErrorTypes, class_aware: ClassAwareErrors, threshold: float | None
) -> Errors:
    """Count the error types of a split, in all and at the operating threshold.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    types : ErrorTypes
        The type of each detection, by the localisation matching.
    class_aware : ClassAwareErrors
        Counts and gains by the matching behind AP@.5.
    threshold : float or None
        The operating threshold; detections with a score >= it are kept. None if undefined.

    Returns
    -------
    Errors
        ``n_operating`` and ``per_100_images`` are None without a threshold, ``dAP_50`` without
        scored specimens and for ``correct``.

    Notes
    -----
    Ours, after TIDE (Bolya et al. 2020, ECCV). The localisation matching serves every threshold
    (see ``operating_point``). The gains of single types do not add up.
    """
    n = count_types(data, types, None)
    kept = None if threshold is None else count_types(data, types, threshold)
    n_images = len(data.truth.image_ids)

    def of(kinds: tuple[int, ...], gain: float) -> ErrorCount:
        at = list(kinds)
        n_kept = None if kept is None else int(kept[at].sum())
        return ErrorCount(
            n=int(n[at].sum()),
            n_operating=n_kept,
            per_100_images=None if n_kept is None else share(100 * n_kept, n_images),
            n_class_aware=int(class_aware.count[at].sum()),
            dAP_50=None if math.isnan(gain) else gain,
        )

    hidden = {*WRONG_NAMES, BOTH} if is_class_agnostic(data.truth.name) else set()
    blocks = {
        name: of((kind,), float(class_aware.gain[kind]))
        for kind, name in enumerate(ERROR_TYPES)
        if kind not in hidden
    }
    if not hidden:
        blocks["wrong_name"] = of(WRONG_NAMES, class_aware.wrong_name_gain)
    return Errors(
        **blocks,
        background_near_crowd=int(np.count_nonzero(types.near_crowd)),
        on_crowd=int(np.count_nonzero(types.of_detection == NO_TYPE)),
    )


def count_types(data: SplitData, types: ErrorTypes, threshold: float | None) -> Ints:
    """Number of each type, (len(ERROR_TYPES),), at and above a threshold (None: in all)."""
    kind = types.of_detection
    if threshold is not None:
        kind = kind[data.detections.score >= threshold]
    count = np.bincount(kind[kind != NO_TYPE], minlength=len(ERROR_TYPES)).astype(np.int64)
    found = data.detections.score[data.local.true_positive]
    n_found = len(found) if threshold is None else int(np.count_nonzero(found >= threshold))
    count[MISSED] = data.truth.n_scored - n_found
    return count
