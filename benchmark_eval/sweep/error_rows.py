"""The errors of every condition by type, and what repairing each type would gain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmark_eval.core.intervals import DIFFERENCE, Interval, Reason, seed_interval
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.sweep.species_tables import distinct_models
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.table_rows import ErrorRow

_COUNT = (0.0, math.inf)


def error_rows(groups: Mapping[Condition, Sequence[ModelResult]]) -> list[ErrorRow]:
    """The error types of every condition and split, from the summaries.

    Seeds with the same prediction file on the split count once.
    """
    rows = []
    for condition, models in groups.items():
        for split in TEST_SPLITS:
            found = [m.errors[split] for m in distinct_models(models, split) if split in m.errors]
            for name in found[0] if found else ():
                errors = seed_interval([each[name][0] for each in found], _COUNT)
                gain = seed_interval([each[name][1] for each in found], DIFFERENCE)
                rows.append(
                    ErrorRow(
                        architecture=condition.architecture,
                        regime=condition.regime,
                        k_or_p=condition.k_or_p,
                        split=split,
                        error_type=name,
                        n_seeds=len(found),
                        per_100_images=errors.mean,
                        per_100_images_ci95_retraining_low=errors.low,
                        per_100_images_ci95_retraining_high=errors.high,
                        per_100_images_reason=_reason(errors),
                        dAP_50=gain.mean,
                        dAP_50_ci95_retraining_low=gain.low,
                        dAP_50_ci95_retraining_high=gain.high,
                        dAP_50_reason=_reason(gain),
                    )
                )
    return rows


def _reason(found: Interval) -> Reason | None:
    """Why there is no interval; these values are no shares, so that 0 is not a bound of theirs."""
    if found.no_interval is Reason.AT_BOUND:
        return Reason.NONE_OBSERVED if found.mean == 0 else Reason.NO_VARIATION
    return found.no_interval
