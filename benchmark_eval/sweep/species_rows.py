"""species.csv: what the whole sweep says about each species."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmark_eval.core.arrays import Ints
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import REGIMES, SPECIES_SPLITS
from benchmark_eval.results.evidence import DENSITY
from benchmark_eval.results.registry import SPLIT_PREFIX
from benchmark_eval.sweep.best_evidence import Pairs
from benchmark_eval.sweep.confusion_rows import labels_of
from benchmark_eval.sweep.reliance import MIN_RECALL, reliance
from benchmark_eval.sweep.share_rows import OOD, Density
from benchmark_eval.sweep.species_curves import species_tiers
from benchmark_eval.sweep.table_rows import BudgetResult, SpeciesCurveRow, SpeciesRow

IID, INAT = SPECIES_SPLITS

Curves = Mapping[tuple[Condition, str], SpeciesCurveRow]
"""One species: its results by condition and split."""


@dataclass(frozen=True, slots=True)
class _Context:
    """What all rows share; ``pairs`` are those at the best condition, by condition and split."""

    benchmark: Benchmark
    density: Mapping[str, Density]
    best: Sequence[Condition]
    pairs: Mapping[tuple[Condition, str], Pairs]


def species_rows(
    benchmark: Benchmark,
    density: Mapping[str, Density],
    curves: Sequence[SpeciesCurveRow],
    best: Sequence[Condition],
    pairs: Sequence[Pairs],
) -> list[SpeciesRow]:
    """One row per species that has training images or is scored on an evaluated split.

    Parameters
    ----------
    benchmark
        For the taxonomy and the training images.
    density
        The scored specimens of the evaluated test splits.
    curves
        The results of every species at every condition.
    best
        The best condition of each architecture, in table order.
    pairs
        The misidentified specimens at those conditions that have evidence.
    """
    by_species: dict[int, dict[tuple[Condition, str], SpeciesCurveRow]] = {}
    for curve in curves:
        by_species.setdefault(curve.category_id, {})[curve.condition, curve.split] = curve
    context = _Context(benchmark, density, best, {(p.condition, p.split): p for p in pairs})
    categories = benchmark.categories
    on_iid = density[IID].specimens.sum(axis=0) > 0 if IID in density else None
    tiers = [""] * len(categories.ids)
    if on_iid is not None:
        rows = np.flatnonzero(on_iid)
        for row, tier in zip(
            rows.tolist(), species_tiers(categories.ids[rows], benchmark), strict=True
        ):
            tiers[row] = tier
    return [
        _row(context, row, tiers[row], by_species.get(number, {}))
        for row, number in enumerate(categories.ids.tolist())
        if number in by_species or categories.n_train_images[row] > 0
    ]


def _row(context: _Context, row: int, tier: str, curves: Curves) -> SpeciesRow:
    categories, benchmark = context.benchmark.categories, context.benchmark
    has_train = benchmark.train is not None
    sizes = {split: _sizes(context.density.get(split), row) for split in SPLIT_PREFIX}
    is_known = categories.n_train_images[row] > 0 or any(
        (sizes[split][1] or 0) > 0 for split in SPECIES_SPLITS
    )
    main = IID if is_known else OOD
    condition = _best_for(context.best, curves, is_known)
    strata = _strata(context.density.get(main), row)
    budgets = [] if condition is None else _budgets(curves, condition.architecture)
    counted: dict[str, Any] = {
        f"{prefix}_{name}": size
        for split, prefix in SPLIT_PREFIX.items()
        for name, size in zip(("n_images", "n_specimens"), sizes[split], strict=True)
    }
    return SpeciesRow(
        category_id=int(categories.ids[row]),
        species=categories.names[row],
        genus=categories.genera[row],
        role="known" if is_known else "unseen",
        tier=tier,
        target_band=categories.target_band[row],
        distance_band=categories.distance_band[row],
        n_train_images=max(0, int(categories.n_train_images[row])) if has_train else None,
        n_train_specimens=max(0, int(categories.n_train_objects[row])) if has_train else None,
        **counted,
        n_specimens_1=None if strata is None else int(strata[0]),
        n_specimens_2_to_10=None if strata is None else int(strata[1]),
        n_specimens_over_10=None if strata is None else int(strata[2]),
        stratum="" if strata is None or not strata.any() else DENSITY[int(strata.argmax())],
        best_architecture="" if condition is None else condition.architecture,
        regime="" if condition is None else condition.regime,
        k_or_p="" if condition is None else condition.k_or_p,
        budgets=budgets,
        **_levels(condition, curves, is_known),
        **_confusion(context, condition, main, row),
        **_reliance(context, condition, row, sizes[IID][1], is_known),
    )


def _sizes(density: Density | None, row: int) -> tuple[int | None, int | None]:
    """The images and the scored specimens of a species on a split."""
    if density is None:
        return None, None
    return int(density.on_image[:, row].sum()), int(density.specimens[:, row].sum())


def _strata(density: Density | None, row: int) -> Ints | None:
    return None if density is None else density.specimens[:, row]


def _best_for(best: Sequence[Condition], curves: Curves, is_known: bool) -> Condition | None:
    """The best condition of the architecture that is best for this species; the first on ties."""

    def level(condition: Condition) -> float:
        for split in (IID, INAT) if is_known else (OOD,):
            row = curves.get((condition, split))
            value = None if row is None else row.AP_50_95 if is_known else row.detection_recall
            if value is not None:
                return value
        return float("-inf")

    found = max(best, key=level, default=None)
    return None if found is None or level(found) == float("-inf") else found


def _budgets(curves: Curves, architecture: str) -> list[BudgetResult]:
    ends: tuple[Literal["smallest", "largest"], ...] = ("smallest", "largest")
    found = []
    for regime in REGIMES:
        own = [
            row
            for (condition, split), row in curves.items()
            if (condition.architecture, condition.regime, split) == (architecture, regime, IID)
        ]
        if own:
            ordered = sorted(own, key=lambda row: row.condition.value)
            for end, row in zip(ends, (ordered[0], ordered[-1]), strict=True):
                found.append(
                    BudgetResult(
                        regime=regime,
                        end=end,
                        k_or_p=row.k_or_p,
                        AP_50_95=row.AP_50_95,
                        species_recall=row.species_recall,
                    )
                )
    return found


def _levels(condition: Condition | None, curves: Curves, is_known: bool) -> dict[str, Any]:
    """The means over seeds at the best condition."""
    iid, inat, ood = (
        None if condition is None else curves.get((condition, split)) for split in SPLIT_PREFIX
    )
    first = next((row for row in ((iid, inat) if is_known else (ood,)) if row is not None), None)
    return {
        "n_seeds": 0 if first is None else first.n_seeds,
        "iid_AP_50_95": iid and iid.AP_50_95,
        "iid_AP_50_95_ci95_retraining_low": iid and iid.AP_50_95_ci95_retraining_low,
        "iid_AP_50_95_ci95_retraining_high": iid and iid.AP_50_95_ci95_retraining_high,
        "iid_AP_50": iid and iid.AP_50,
        "iid_detection_recall": iid and iid.detection_recall,
        "iid_species_recall": iid and iid.species_recall,
        "inat_AP_50_95": inat and inat.AP_50_95,
        "inat_species_recall": inat and inat.species_recall,
        "ood_detection_recall": ood and ood.detection_recall,
    }


def _confusion(
    context: _Context, condition: Condition | None, split: str, row: int
) -> dict[str, Any]:
    """The most frequent wrong label at the best condition."""
    nothing: dict[str, Any] = {
        "threshold": "",
        "confused_with": "",
        "confused_n": None,
        "confused_share": None,
        "confused_n_seeds": None,
        "confused_named": None,
        "confused_reason": "no evidence of the split",
    }
    pairs = None if condition is None else context.pairs.get((condition, split))
    if pairs is None:
        return nothing
    nothing |= {"threshold": pairs.threshold, "confused_reason": "never misidentified"}
    labels = labels_of(pairs, row)
    if not labels:
        return nothing
    top = labels[0]
    tied = [found.label for found in labels if found.rank == top.rank]
    return {
        "threshold": pairs.threshold,
        "confused_with": "; ".join(context.benchmark.categories.names[label] for label in tied),
        "confused_n": top.n,
        "confused_share": top.n / int(pairs.scored[row]),
        "confused_n_seeds": top.n_seeds,
        "confused_named": not top.reason,
        "confused_reason": top.reason,
    }


def _reliance(
    context: _Context, condition: Condition | None, row: int, n_scored: int | None, is_known: bool
) -> dict[str, Any]:
    """The recall at the operating threshold, and the mark with its reason."""
    found: dict[str, Any] = {"iid_species_recall_operating": None, "n_seeds_low_recall": None}
    if not is_known:
        return found | {"do_not_rely": None, "do_not_rely_reason": "unseen: it has no label"}
    pairs = None if condition is None else context.pairs.get((condition, IID))
    recalls: list[float | None] = []
    absorbed: list[dict[str, float]] = []
    if pairs is not None and pairs.threshold == "operating" and n_scored:
        names = context.benchmark.categories.names
        recalls = [n / n_scored for n in pairs.right[:, row].tolist()]
        absorbed = [
            {
                names[label]: int(counts[label]) / n_scored
                for label in np.flatnonzero(counts).tolist()
            }
            for counts in pairs.n[:, row]
        ]
        found["iid_species_recall_operating"] = int(pairs.right[:, row].sum()) / (
            n_scored * len(recalls)
        )
        found["n_seeds_low_recall"] = sum(n < MIN_RECALL for n in recalls if n is not None)
    mark, reason = reliance(n_scored, recalls, absorbed)
    if mark is None and pairs is None and n_scored is not None:
        reason = "no evidence of iid_test"
    return found | {"do_not_rely": mark, "do_not_rely_reason": reason}
