"""What images of the target species bring each band and each species of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Bools, Floats, Ints
from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import DIFFERENCE, Covers, Reason, mean_of
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import SPECIES_SPLITS
from benchmark_eval.results.registry import BAND_LABEL
from benchmark_eval.sweep.conditions import trains_on_all
from benchmark_eval.sweep.designs import first_names
from benchmark_eval.sweep.species_tables import (
    distinct_models,
    scored_species,
    species_ap,
    species_by_seed,
)
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.table_rows import TargetGainRow
from benchmark_eval.sweep.tables import TARGET_REGIME
from benchmark_eval.sweep.target_gains import share_closed, species_share_closed

KEY = "AP_50_95"

Groups = Mapping[Condition, Sequence[ModelResult]]


@dataclass(frozen=True, slots=True)
class _Targets:
    """The target species of a split: ids, names and bands, (species,)."""

    species: Ints
    names: Sequence[str]
    bands: Sequence[str]


def target_gain_rows(groups: Groups, benchmark: Benchmark) -> list[TargetGainRow]:
    """The gain of every band and species of targets, at every k of each architecture.

    All images are those of the target regime at a k that no target exceeds, otherwise of a
    condition with the same training images. Seeds are paired by number. Without k = 0, and
    without such a condition, the columns that need it are None.
    """
    everyone = [model for models in groups.values() for model in models]
    categories = benchmark.categories
    rows: list[TargetGainRow] = []
    for split in SPECIES_SPLITS:
        scored = scored_species(everyone, split)
        at = categories.rows_of(scored)
        bands = [categories.target_band[row] for row in at.tolist()]
        is_target: Bools = np.array([bool(band) for band in bands], np.bool_)
        targets = _Targets(
            scored[is_target],
            [categories.names[row] for row in at[is_target].tolist()],
            [band for band in bands if band],
        )
        if not len(targets.species):
            continue
        for architecture in dict.fromkeys(condition.architecture for condition in groups):
            own = {c: m for c, m in groups.items() if c.architecture == architecture and m}
            rows += list(_architecture(architecture, own, split, targets, benchmark))
    return rows


def _architecture(
    architecture: str, own: Groups, split: str, targets: _Targets, benchmark: Benchmark
) -> Iterator[TargetGainRow]:
    curve = [condition for condition in own if condition.regime == TARGET_REGIME]
    everything = _all_images(list(own), benchmark)
    seeds = sorted({model.entry.seed for models in own.values() for model in models})
    nothing = np.full((len(targets.species), len(seeds)), np.nan)

    def table(condition: Condition | None) -> Floats:
        if condition is None:
            return nothing
        models = distinct_models(own[condition], split)
        return _by_seed(models, split, targets.species, seeds)

    zero = table(next((c for c in curve if c.k_or_p == "0"), None))
    every = table(everything)
    for condition in curve:
        at_k = table(condition)
        is_zero = condition.k_or_p == "0"
        for band in BAND_LABEL:
            inside = np.array([name == band for name in targets.bands], bool)
            if inside.any():
                parts = (at_k[inside], zero[inside], every[inside])
                yield _band(architecture, split, condition, band, parts, is_zero)
        yield from _species(architecture, split, condition, targets, (at_k, zero, every), is_zero)


def _by_seed(
    models: Sequence[ModelResult], split: str, species: Ints, seeds: Sequence[int]
) -> Floats:
    """The AP of some of the scored species, (species, seeds); NaN where there is none."""
    scored = scored_species(models, split)
    table = species_by_seed(models, split, species_ap(KEY), scored, seeds)
    found = np.full((len(species), len(seeds)), np.nan)
    inside = np.isin(species, scored)
    found[inside] = table[np.searchsorted(scored, species[inside])]
    return found


def _all_images(conditions: Sequence[Condition], benchmark: Benchmark) -> Condition | None:
    """The condition with all images: of the target regime if it has one, otherwise of another."""
    first = first_names(conditions, benchmark)
    full = {first[c.regime, c.k_or_p] for c in conditions if trains_on_all(c)}
    same = [c for c in conditions if first[c.regime, c.k_or_p] in full]
    return next((c for c in same if c.regime == TARGET_REGIME), same[0] if same else None)


def _band(
    architecture: str,
    split: str,
    condition: Condition,
    band: str,
    tables: tuple[Floats, Floats, Floats],
    is_zero: bool,
) -> TargetGainRow:
    at_k, zero, every = tables
    gain = crossed_interval(crossed_table(at_k, zero), DIFFERENCE)
    of_all = crossed_table(every, zero)
    share = share_closed(at_k, zero, every)
    reason = Reason.BY_CONSTRUCTION if is_zero else share.no_interval or gain.no_interval
    level = crossed_table(at_k)
    return TargetGainRow(
        architecture=architecture,
        split=split,
        metric=KEY,
        k=condition.k_or_p,
        level="band",
        name=band,
        band=band,
        n_species=level.n_species if is_zero else gain.n_species or 0,
        n_seeds=level.n_seeds if is_zero else gain.n_seeds,
        AP=level.mean,
        gain=None if is_zero else gain.mean,
        gain_ci95_low=None if is_zero else gain.low,
        gain_ci95_high=None if is_zero else gain.high,
        gain_of_all=of_all.mean,
        share_closed=None if is_zero else share.mean,
        share_closed_ci95_low=None if is_zero else share.low,
        share_closed_ci95_high=None if is_zero else share.high,
        covers=gain.covers,
        reason=reason or "",
        by_construction=is_zero,
    )


def _species(
    architecture: str,
    split: str,
    condition: Condition,
    targets: _Targets,
    tables: tuple[Floats, Floats, Floats],
    is_zero: bool,
) -> Iterator[TargetGainRow]:
    at_k, zero, every = tables
    shares = species_share_closed(at_k, zero, every)
    for at, (name, band) in enumerate(zip(targets.names, targets.bands, strict=True)):
        share, reason = shares[at]
        gain = _means(at_k[at] - zero[at])
        yield TargetGainRow(
            architecture=architecture,
            split=split,
            metric=KEY,
            k=condition.k_or_p,
            level="species",
            name=name,
            band=band,
            n_species=1,
            n_seeds=int((~np.isnan(at_k[at] if is_zero else at_k[at] - zero[at])).sum()),
            AP=_means(at_k[at]),
            gain=None if is_zero else gain,
            gain_ci95_low=None,
            gain_ci95_high=None,
            gain_of_all=_means(every[at] - zero[at]),
            share_closed=None if is_zero else share,
            share_closed_ci95_low=None,
            share_closed_ci95_high=None,
            covers=Covers.BOTH,
            reason=Reason.BY_CONSTRUCTION if is_zero else reason or Reason.FEW_SPECIES,
            by_construction=is_zero,
        )


def _means(values: Floats) -> float | None:
    return mean_of(values[~np.isnan(values)].tolist())
