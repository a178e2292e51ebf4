"""Error shares: how often each type of error occurs, and what it costs in AP."""

from __future__ import annotations

import math

import numpy as np

from benchmark_eval.core.arrays import Codes
from benchmark_eval.core.numbers import share
from benchmark_eval.results.evidence import UNDEFINED
from benchmark_eval.results.schema import ERROR_TYPES, ErrorCount, Errors
from benchmark_eval.scoring.error_types import (
    BOTH,
    WRONG_NAMES,
    ClassAwareErrors,
    ErrorTypes,
    is_class_agnostic,
)
from benchmark_eval.scoring.split_data import SplitData


def errors(
    data: SplitData, types: ErrorTypes, counts: Codes, class_aware: ClassAwareErrors
) -> Errors:
    """Count the error types of a split, in all and at the operating threshold.

    Parameters
    ----------
    data : SplitData
        One model on one split.
    types : ErrorTypes
        The type of each detection, by the localisation matching.
    counts : (2, n_categories + 1, len(ERROR_TYPES)) int32
        From ``count_types``: of all detections, and at the operating threshold.
    class_aware : ClassAwareErrors
        Counts and gains by the matching behind AP@.5.

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
    n, kept = counts.sum(axis=1, dtype=np.int64)
    defined = bool((counts[1] != UNDEFINED).all())
    n_images = len(data.truth.image_ids)

    def of(kinds: tuple[int, ...], gain: float) -> ErrorCount:
        at = list(kinds)
        n_kept = int(kept[at].sum()) if defined else None
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
        background_near_crowd=types.n_near_crowd,
        on_crowd=len(data.detections) - len(data.local.evaluated),
    )
