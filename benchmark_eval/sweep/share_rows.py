"""Shares of specimens, pooled and by species, and bands of unseen species at equal density."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmark_eval.core.arrays import Bools, Codes, Floats, Ints
from benchmark_eval.core.crossed import crossed_interval, crossed_table
from benchmark_eval.core.intervals import UNIT
from benchmark_eval.core.shares import pooled_share
from benchmark_eval.inputs.benchmark import Benchmark
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import OOD_BANDS, TEST_SPLITS
from benchmark_eval.results.evidence import DENSITY
from benchmark_eval.sweep.band_gaps import BandCounts, BandGap, band_gap
from benchmark_eval.sweep.evidence_counts import ModelCounts, SplitCounts, annotated_in
from benchmark_eval.sweep.species_tables import distinct_models
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.table_rows import BandGapRow, ShareRow

Groups = Mapping[Condition, Sequence[ModelResult]]
Counts = Mapping[str, ModelCounts]
Count = Callable[[SplitCounts], Codes]

OOD = "semantic_ood"
WEIGHTINGS: tuple[Literal["species", "specimens"], ...] = ("species", "specimens")


@dataclass(frozen=True, slots=True)
class _Share:
    """A share of specimens: its name, numerator and denominator, (species,) or (strata, species).

    ``everywhere``: also defined for unseen species, which cannot be identified.
    """

    name: str
    above: Count
    below: Count
    everywhere: bool = False


SHARES = (
    _Share("detection_recall", lambda c: c.found, lambda c: c.scored, everywhere=True),
    _Share("classification_given_detection_acc", lambda c: c.right, lambda c: c.found),
    _Share("species_recall", lambda c: c.right, lambda c: c.scored),
    _Share("correct_genus", lambda c: c.genus, lambda c: c.found, everywhere=True),
    _Share("detection_recall_open_vocabulary", lambda c: c.found_open, lambda c: c.scored),
    _Share(
        "classification_given_detection_acc_open_vocabulary",
        lambda c: c.right_open,
        lambda c: c.found_open,
    ),
    _Share("species_recall_open_vocabulary", lambda c: c.right_open, lambda c: c.scored),
)
"""The shares of a split; those by density are the first two, of known species."""


@dataclass(frozen=True, slots=True)
class Density:
    """The scored specimens of a split by density stratum and species, and its images.

    ``specimens`` is (strata, species), ``stratum`` (images,), ``on_image`` (images, species).
    """

    specimens: Ints
    stratum: Ints
    on_image: Bools

    def n_images(self, inside: Bools, stratum: int | None = None) -> int:
        """The images with a scored specimen of the species ``inside``, of one stratum or all."""
        rows = slice(None) if stratum is None else self.stratum == stratum
        return int(self.on_image[rows][:, inside].any(axis=1).sum())


def densities(benchmark: Benchmark, splits: Collection[str]) -> dict[str, Density]:
    """The density of each evaluated test split."""
    names = [name for name in TEST_SPLITS if name in splits and name in benchmark.splits]
    return {name: Density(*annotated_in(benchmark, name)) for name in names}


def with_evidence(models: Sequence[ModelResult], counts: Counts, split: str) -> list[ModelResult]:
    """The models of a condition that count on a split and have evidence of it."""
    return [
        model
        for model in distinct_models(models, split)
        if split in counts.get(model.entry.model_name, {})
    ]


def share_rows(
    groups: Groups, counts: Counts, benchmark: Benchmark, density: Mapping[str, Density]
) -> list[ShareRow]:
    """Every share of every condition with evidence, by split, band and density stratum.

    Shares of unseen species that are fixed by construction are left out: no species of theirs can
    be identified, and no genus unless it is known.
    """
    bands = np.array(benchmark.categories.distance_band, np.str_)
    sizes: dict[tuple[str, str, int | None], int] = {}
    rows: list[ShareRow] = []
    for condition, models in groups.items():
        for split, truth in density.items():
            used = with_evidence(models, counts, split)
            if not used:
                continue
            found = [counts[model.entry.model_name][split] for model in used]
            for band in ("", *OOD_BANDS) if split == OOD else ("",):
                of_band: Bools = (bands == band) if band else np.ones(len(bands), bool)
                for stratum in (None, *range(len(DENSITY))):
                    rows_of = slice(None) if stratum is None else slice(stratum, stratum + 1)
                    inside = of_band & (truth.specimens[rows_of].sum(axis=0) > 0)
                    place = (split, band, stratum)
                    if place not in sizes:
                        sizes[place] = truth.n_images(inside, stratum)
                    if not sizes[place]:
                        continue
                    for name, above, below in _of(found, truth, split, band, stratum):
                        rows.append(
                            _row(
                                condition,
                                (split, band, "" if stratum is None else DENSITY[stratum], name),
                                sizes[place],
                                (above[:, inside].T, below[:, inside].T),
                                stratum is not None,
                            )
                        )
    return rows


def _of(
    found: Sequence[SplitCounts], truth: Density, split: str, band: str, stratum: int | None
) -> Iterator[tuple[str, Ints, Ints]]:
    """The shares of a place: name, numerator and denominator, (seeds, species) each."""
    if stratum is not None:
        above = np.array([c.found_in[stratum] for c in found], np.int64)
        below = np.broadcast_to(truth.specimens[stratum], above.shape)
        yield "detection_recall", above, below
        if split != OOD:
            right = np.array([c.right_in[stratum] for c in found], np.int64)
            yield "classification_given_detection_acc", right, above
        return
    for share in SHARES:
        # of unseen species, only a near one has a known genus: all of them together mix its share
        # with zeros by construction
        fixed = share.name == "correct_genus" and band != OOD_BANDS[0]
        if split != OOD or (share.everywhere and not fixed):
            yield (
                share.name,
                np.array([share.above(c) for c in found], np.int64),
                np.array([share.below(c) for c in found], np.int64),
            )


def _row(
    condition: Condition,
    place: tuple[str, str, str, str],
    n_images: int,
    counted: tuple[Ints, Ints],
    is_stratum: bool,
) -> ShareRow:
    split, band, stratum, name = place
    above, below = counted
    pooled = pooled_share(above, below, n_images if is_stratum else None)
    shares: Floats = np.divide(
        above, below, out=np.full(above.shape, np.nan), where=below > 0, dtype=np.float64
    )
    # a species without a specimen in the denominator, such as one never detected, is left out
    mean = crossed_interval(crossed_table(shares), UNIT)
    found = pooled.interval
    return ShareRow(
        architecture=condition.architecture,
        regime=condition.regime,
        k_or_p=condition.k_or_p,
        split=split,
        band=band,
        stratum=stratum,
        share=name,
        n_images=n_images,
        n_specimens=pooled.n_specimens,
        n_species=found.n_species or 0,
        n_effective_species=pooled.n_effective_species,
        n_seeds=found.n_seeds,
        pooled=found.mean,
        ci95_low=found.low,
        ci95_high=found.high,
        covers=found.covers,
        bootstrap_low=pooled.bootstrap_low,
        bootstrap_high=pooled.bootstrap_high,
        leave_one_out_low=pooled.leave_one_out_low,
        leave_one_out_high=pooled.leave_one_out_high,
        size_correlation=pooled.size_correlation,
        reason=found.no_interval,
        no_verdict=found.no_verdict,
        species_mean=mean.mean,
        species_mean_n=mean.n_species or 0,
        species_mean_ci95_low=mean.low,
        species_mean_ci95_high=mean.high,
        species_mean_n_left_out=mean.n_left_out,
        species_mean_reason=mean.no_interval,
        species_mean_no_verdict=mean.no_verdict,
    )


@dataclass(frozen=True, slots=True)
class Band:
    """The species of a band, (species,), and its images by density stratum."""

    inside: Bools
    n_images: Sequence[int]


def ood_bands(benchmark: Benchmark, density: Density) -> dict[str, Band]:
    """The bands of unseen species that semantic_ood scores, of its ``density``."""
    names = np.array(benchmark.categories.distance_band, np.str_)
    scored = density.specimens.sum(axis=0) > 0
    found = {}
    for band in OOD_BANDS:
        inside: Bools = (names == band) & scored
        sizes = [density.n_images(inside, stratum) for stratum in range(len(DENSITY))]
        found[band] = Band(inside, sizes)
    return found


def band_counts(
    models: Sequence[ModelResult], counts: Counts, density: Density, band: Band
) -> BandCounts:
    """The detected and scored specimens of a band by density stratum.

    ``models`` have evidence of semantic_ood; ``density`` is that of this split.
    """
    found = np.array([counts[m.entry.model_name][OOD].found_in[:, band.inside] for m in models])
    by_seed = np.moveaxis(found.astype(np.int64), 0, 2)
    return BandCounts(by_seed, density.specimens[:, band.inside], band.n_images)


def band_gap_rows(
    groups: Groups, counts: Counts, benchmark: Benchmark, density: Mapping[str, Density]
) -> list[BandGapRow]:
    """Near against mid and far unseen species at equal density, for every condition."""
    truth = density.get(OOD)
    if truth is None:
        return []
    bands = ood_bands(benchmark, truth)
    near, *further = OOD_BANDS
    rows = []
    for condition, models in groups.items():
        used = with_evidence(models, counts, OOD)
        if not used:
            continue
        counted = {name: band_counts(used, counts, truth, bands[name]) for name in OOD_BANDS}
        for other in further:
            for weighting in WEIGHTINGS:
                gap = band_gap(counted[near], counted[other], weighting)
                rows.append(_gap_row(condition, other, weighting, gap))
    return rows


def _gap_row(
    condition: Condition, other: str, weighting: Literal["species", "specimens"], gap: BandGap
) -> BandGapRow:
    found = gap.interval
    return BandGapRow(
        architecture=condition.architecture,
        regime=condition.regime,
        k_or_p=condition.k_or_p,
        other_band=other,
        weighting=weighting,
        strata="; ".join(DENSITY[stratum] for stratum in gap.strata),
        coverage=gap.coverage,
        n_species=found.n_species or 0,
        n_seeds=found.n_seeds,
        near=gap.near,
        other=gap.far,
        near_minus_other=found.mean,
        ci95_low=found.low,
        ci95_high=found.high,
        covers=found.covers,
        reason=found.no_interval,
        no_verdict=found.no_verdict,
    )
