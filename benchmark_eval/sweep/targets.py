"""AP of target species by their number of training images and their distance from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmark_eval.core.intervals import Estimate, estimate, mean_of
from benchmark_eval.core.numbers import difference
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.protocol import SPECIES_SPLITS
from benchmark_eval.results.registry import BAND_LABEL
from benchmark_eval.sweep.by_construction import fixed_at
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.tables import TARGET_KEYS, TARGET_REGIME, TargetGapRow, TargetRow


def target_means(result: ModelResult, target_band: Mapping[int, str]) -> dict[str, float | None]:
    """Mean AP of one model by band of target species, over targets and non-targets, and the gap.

    ``target_band`` maps a target species' category id to its band. Keys are
    ``<split>/<band, target, nontarget or gap>/<metric>``. Species without a scored specimen on the
    split are not part of any mean.
    """
    means: dict[str, float | None] = {}
    for split in SPECIES_SPLITS:
        scored = result.species.get(split)
        for key in TARGET_KEYS:
            ap = scored.by_id(key) if scored else {}
            for band in BAND_LABEL:
                means[f"{split}/{band}/{key}"] = mean_of(
                    value for number, value in ap.items() if target_band.get(number) == band
                )
            target = mean_of(value for number, value in ap.items() if number in target_band)
            others = mean_of(value for number, value in ap.items() if number not in target_band)
            means[f"{split}/target/{key}"] = target
            means[f"{split}/nontarget/{key}"] = others
            means[f"{split}/gap/{key}"] = difference(target, others)
    return means


def target_tables(
    groups: Mapping[Condition, Sequence[ModelResult]],
    means: Mapping[str, Mapping[str, float | None]],
    target_band: Mapping[int, str],
    splits: Sequence[str],
) -> tuple[list[TargetRow], list[TargetGapRow]]:
    """The band x k grid and target minus non-target, for each condition of the target regime.

    ``means`` are ``target_means`` by model name; ``splits`` are those that were evaluated.
    """
    grid: list[TargetRow] = []
    gaps: list[TargetGapRow] = []
    conditions = [c for c in groups if c.regime == TARGET_REGIME] if target_band else []
    for architecture in dict.fromkeys(c.architecture for c in conditions):
        for split in [s for s in SPECIES_SPLITS if s in splits]:
            for condition in [c for c in conditions if c.architecture == architecture]:
                models = groups[condition]

                def over_seeds(
                    part: str, split: str = split, models: Sequence[ModelResult] = models
                ) -> Estimate:
                    return estimate(means[m.entry.model_name][f"{split}/{part}"] for m in models)

                scored = {n for m in models for n in m.species[split].ids.tolist()}
                grid += [
                    TargetRow(
                        architecture=architecture,
                        split=split,
                        k=condition.k_or_p,
                        band=band,
                        n_species=sum(target_band.get(number) == band for number in scored),
                        AP_50=over_seeds(f"{band}/AP_50"),
                        AP_50_95=over_seeds(f"{band}/AP_50_95"),
                        by_construction=fixed_at(condition.k_or_p, TARGET_KEYS),
                    )
                    for band in BAND_LABEL
                ]
                gaps.append(
                    TargetGapRow(
                        architecture=architecture,
                        split=split,
                        k=condition.k_or_p,
                        target_AP_50=over_seeds("target/AP_50"),
                        nontarget_AP_50=over_seeds("nontarget/AP_50"),
                        gap_AP_50=over_seeds("gap/AP_50"),
                        target_AP_50_95=over_seeds("target/AP_50_95"),
                        nontarget_AP_50_95=over_seeds("nontarget/AP_50_95"),
                        gap_AP_50_95=over_seeds("gap/AP_50_95"),
                        by_construction=fixed_at(
                            condition.k_or_p, [f"target_{key}" for key in TARGET_KEYS]
                        ),
                    )
                )
    return grid, gaps
