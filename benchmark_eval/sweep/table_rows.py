"""The rows of the tables about species, shares, bands, errors, confusion and confidence.

Each field is a column of the CSV file of that name, except ``SpeciesRow.budgets``. Intervals are
95 % ones; ``reason`` says why there is none. ``docs/sweep.md`` describes the columns.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from benchmark_eval.core.intervals import Covers, Reason
from benchmark_eval.inputs.manifest import Condition, condition_of

parsed = cache(condition_of)

Threshold = Literal["all", "operating"]
"""Whether detections of any confidence count, or those at and above the operating threshold."""


class ConditionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of one training condition."""

    architecture: str
    regime: str
    k_or_p: str

    @property
    def condition(self) -> Condition:
        """The condition as a sortable object."""
        return parsed(self.architecture, self.regime, self.k_or_p)


class BudgetResult(msgspec.Struct, frozen=True, kw_only=True):
    """One species at the smallest or largest budget of a regime, on iid_test; means over seeds."""

    regime: str
    end: Literal["smallest", "largest"]
    k_or_p: str | None
    AP_50_95: float | None
    species_recall: float | None


class SpeciesRow(msgspec.Struct, frozen=True, kw_only=True):
    """One species over the whole sweep.

    ``role`` is "known" if the species has training images or is scored on iid_test or inat_test,
    else "unseen". Counts of a split that is not evaluated, and of training images without
    train.json, are None. ``stratum`` is the density stratum with most of its specimens on
    iid_test (semantic_ood for an unseen one), the sparser one on ties.

    Results are those of the best architecture for the species, at the best condition of that
    architecture (``regime``, ``k_or_p``), as means over its ``n_seeds`` seeds: of a known species
    that with the highest AP_50_95 on iid_test (inat_test if it is scored there only), of an unseen
    one that with the highest detection recall. ``budgets`` are those of the same architecture.

    The confusion is the label that most of its detected specimens get instead, at ``threshold``
    (tied ones separated by "; "): ``confused_n`` specimens per seed, ``confused_share`` of its
    scored specimens. ``confused_n_seeds`` counts the seeds with at least 3 such specimens; it is
    "named" (fit to be named in a text) with at least 2 of them and no tie, otherwise
    ``confused_reason`` says why not.

    ``do_not_rely`` is None if it cannot be told, with the reason in ``do_not_rely_reason``.
    """

    category_id: int
    species: str
    genus: str
    role: Literal["known", "unseen"]
    tier: str
    target_band: str
    distance_band: str
    n_train_images: int | None
    n_train_specimens: int | None
    iid_n_images: int | None
    iid_n_specimens: int | None
    inat_n_images: int | None
    inat_n_specimens: int | None
    ood_n_images: int | None
    ood_n_specimens: int | None
    n_specimens_1: int | None
    n_specimens_2_to_10: int | None
    n_specimens_over_10: int | None
    stratum: str
    best_architecture: str
    regime: str
    k_or_p: str
    n_seeds: int
    iid_AP_50_95: float | None
    iid_AP_50_95_ci95_retraining_low: float | None
    iid_AP_50_95_ci95_retraining_high: float | None
    iid_AP_50: float | None
    iid_detection_recall: float | None
    iid_species_recall: float | None
    iid_species_recall_operating: float | None
    n_seeds_low_recall: int | None
    inat_AP_50_95: float | None
    inat_species_recall: float | None
    ood_detection_recall: float | None
    budgets: list[BudgetResult]
    threshold: str
    confused_with: str
    confused_n: float | None
    confused_share: float | None
    confused_n_seeds: int | None
    confused_named: bool | None
    confused_reason: str
    do_not_rely: bool | None
    do_not_rely_reason: str


class SpeciesCurveRow(ConditionRow, frozen=True, kw_only=True):
    """One species, split and condition: means over ``n_seeds`` seeds.

    The interval covers retraining. AP and species recall on semantic_ood are fixed by
    construction, and therefore None.
    """

    split: str
    category_id: int
    species: str
    n_specimens: int
    n_seeds: int
    AP_50_95: float | None
    AP_50_95_ci95_retraining_low: float | None
    AP_50_95_ci95_retraining_high: float | None
    AP_50: float | None
    detection_recall: float | None
    species_recall: float | None


class TierRow(ConditionRow, frozen=True, kw_only=True):
    """The mean of a metric over the species of a tier (head, medium or tail by training images)."""

    split: str
    tier: str
    metric: str
    min_train_images: int
    max_train_images: int
    n_species: int
    n_seeds: int
    n_left_out: int
    mean: float | None
    ci95_low: float | None
    ci95_high: float | None
    covers: Covers
    reason: Reason | None


class TargetGainRow(msgspec.Struct, frozen=True, kw_only=True):
    """What k images of each target species bring, by band or by species.

    ``gain`` is AP(k) - AP(0), ``gain_of_all`` is AP(all) - AP(0), and ``share_closed`` the sum of
    the gains over the sum of the gains of all images. The intervals of a band cover ``covers``; a
    single species has none. ``by_construction`` is true at k = 0, where AP is 0.
    """

    architecture: str
    split: str
    metric: str
    k: str
    level: Literal["band", "species"]
    name: str
    band: str
    n_species: int
    n_seeds: int
    AP: float | None
    gain: float | None
    gain_ci95_low: float | None
    gain_ci95_high: float | None
    gain_of_all: float | None
    share_closed: float | None
    share_closed_ci95_low: float | None
    share_closed_ci95_high: float | None
    covers: Covers
    reason: str
    by_construction: bool


class RetentionRow(ConditionRow, frozen=True, kw_only=True):
    """iid_test against inat_test over the species that both score.

    ``gap`` is in distribution minus field, with an interval over ``gap_covers``; ``retention`` is
    the sum over species on inat_test over that on iid_test, with an interval over species.
    """

    metric: str
    n_species: int
    n_seeds: int
    in_distribution: float | None
    field: float | None
    gap: float | None
    gap_ci95_low: float | None
    gap_ci95_high: float | None
    gap_covers: Covers
    gap_reason: Reason | None
    retention: float | None
    retention_ci95_species_low: float | None
    retention_ci95_species_high: float | None
    retention_reason: Reason | None


class ShareRow(ConditionRow, frozen=True, kw_only=True):
    """A share of specimens, pooled over species and seeds and as an unweighted mean over species.

    ``band`` and ``stratum`` are empty for all. The interval of the pooled share (``ci95_low``) and
    that of the species mean cover ``covers``. ``bootstrap_low`` is the dataset card's
    species-cluster bootstrap, which covers too little; ``leave_one_out_low`` the smallest share
    without one species. ``no_verdict`` says why the pooled share permits no conclusion, and
    ``species_mean_no_verdict`` why that mean permits none. ``species_mean_n_left_out`` counts the
    scored species without a share in some seed.
    """

    split: str
    band: str
    stratum: str
    share: str
    n_images: int
    n_specimens: int
    n_species: int
    n_effective_species: float | None
    n_seeds: int
    pooled: float | None
    ci95_low: float | None
    ci95_high: float | None
    covers: Covers
    bootstrap_low: float | None
    bootstrap_high: float | None
    leave_one_out_low: float | None
    leave_one_out_high: float | None
    size_correlation: float | None
    reason: Reason | None
    no_verdict: Reason | None
    species_mean: float | None
    species_mean_n: int
    species_mean_ci95_low: float | None
    species_mean_ci95_high: float | None
    species_mean_n_left_out: int
    species_mean_reason: Reason | None
    species_mean_no_verdict: Reason | None


class BandGapRow(ConditionRow, frozen=True, kw_only=True):
    """Detection recall of near minus another band, within the density strata that both fill.

    ``near`` and ``other`` are standardised to the density of near, of which the ``strata`` hold
    ``coverage``. ``weighting`` "species" is the mean over species, "specimens" pools them.
    """

    other_band: str
    weighting: Literal["species", "specimens"]
    strata: str
    coverage: float | None
    n_species: int
    n_seeds: int
    near: float | None
    other: float | None
    near_minus_other: float | None
    ci95_low: float | None
    ci95_high: float | None
    covers: Covers
    reason: Reason | None
    no_verdict: Reason | None


class ErrorRow(ConditionRow, frozen=True, kw_only=True):
    """One error type on a split: means over seeds, with intervals over retraining.

    ``per_100_images`` counts at the operating threshold; ``dAP_50`` is what AP@.5 gains if only
    this type is repaired. They do not add up to 1 - AP@.5.
    """

    split: str
    error_type: str
    n_seeds: int
    per_100_images: float | None
    per_100_images_ci95_retraining_low: float | None
    per_100_images_ci95_retraining_high: float | None
    per_100_images_reason: Reason | None
    dAP_50: float | None
    dAP_50_ci95_retraining_low: float | None
    dAP_50_ci95_retraining_high: float | None
    dAP_50_reason: Reason | None


class ConfusionRow(ConditionRow, frozen=True, kw_only=True):
    """A confused pair of species at the best condition of an architecture.

    ``n`` is the mean number of specimens per seed, ``share`` the share of the scored specimens of
    the true species. ``n_seeds_at_least_3`` counts the seeds with at least 3 such specimens.
    ``rank`` orders the labels of the true species; tied ones share a rank. ``named`` is true for
    a pair that is fit to be named in a text, otherwise ``reason`` says why not.
    """

    split: str
    threshold: Threshold
    true_species: str
    predicted_species: str
    relation: Literal["congener", "same tribe", "other"]
    n_seeds: int
    n: float
    n_specimens: int
    share: float
    n_seeds_at_least_3: int
    rank: int
    named: bool
    reason: str


class GenusConfusionRow(ConditionRow, frozen=True, kw_only=True):
    """Misidentified specimens of a genus by the genus of their label, at a best condition.

    ``n`` is the mean number of specimens per seed, ``n_specimens`` the scored specimens of the true
    genus and ``share`` their ratio. Equal genera: the correct genus with the wrong species.
    """

    split: str
    threshold: Threshold
    true_genus: str
    predicted_genus: str
    n_seeds: int
    n: float
    n_specimens: int
    share: float


class LabelRow(ConditionRow, frozen=True, kw_only=True):
    """How often true positives get a label, and how often it is right; means over seeds.

    ``group`` is "all" at the best condition of an architecture, or "targets": the labels of
    specimens of target species, in the target regime. ``given_per_true`` is ``n_given`` over the
    number of true positives of that species (``n_true``), None if there are none.
    """

    split: str
    group: Literal["all", "targets"]
    threshold: Threshold
    label: str
    label_is_target: bool
    n_seeds: int
    n_given: float
    n_right: float
    n_true: float
    given_per_true: float | None


class EnrichmentRow(ConditionRow, frozen=True, kw_only=True):
    """Misidentified specimens with the correct genus or tribe, against chance.

    Counts are sums over seeds. ``enrichment`` is observed over expected, with an interval over
    species.
    """

    split: str
    taxon: Literal["genus", "tribe"]
    n_seeds: int
    n_species: int
    n_misidentified: int
    observed: float | None
    expected: float | None
    enrichment: float | None
    ci95_species_low: float | None
    ci95_species_high: float | None
    reason: Reason | None


class ReliabilityRow(ConditionRow, frozen=True, kw_only=True):
    """One bin of a reliability curve at the best condition of an architecture.

    Bins hold about equally many detections of all seeds; ``n`` is their sum over seeds.
    """

    split: str
    event: Literal["detected", "identified", "detected_and_identified"]
    threshold: Threshold
    bin: int
    lower: float
    upper: float
    n: int
    n_species: int
    n_seeds: int
    mean_confidence: float
    observed: float
    ci95_low: float | None
    ci95_high: float | None
    covers: Covers
    reason: Reason | None


class RiskRow(ConditionRow, frozen=True, kw_only=True):
    """Errors of the names if only the most confident true positives get a species name.

    ``coverage`` is the share of true positives (of all seeds) with at least ``confidence``.
    ``wrong_species`` is the share of them with a wrong species. With fall-back, the others get the
    genus of their label: ``wrong_with_fallback`` is the share of all true positives with a wrong
    species above and a wrong genus below.
    """

    split: str
    coverage: float
    confidence: float
    n: int
    n_species: int
    n_seeds: int
    wrong_species: float
    ci95_low: float | None
    ci95_high: float | None
    covers: Covers
    reason: Reason | None
    wrong_with_fallback: float
    wrong_with_fallback_ci95_low: float | None
    wrong_with_fallback_ci95_high: float | None


class NoveltyRow(ConditionRow, frozen=True, kw_only=True):
    """Known against unseen species by 1 - confidence, at the best condition of an architecture.

    ``band`` and ``stratum`` are empty for all. AUROC and FPR at 95 % TPR are means over seeds;
    their intervals resample known and unseen species separately.
    """

    band: str
    stratum: str
    n_seeds: int
    n_known: float
    n_novel: float
    n_known_species: int
    n_novel_species: int
    AUROC: float | None
    AUROC_ci95_species_low: float | None
    AUROC_ci95_species_high: float | None
    FPR_95TPR: float | None
    FPR_95TPR_ci95_species_low: float | None
    FPR_95TPR_ci95_species_high: float | None
    reason: Reason | None


class HistogramRow(ConditionRow, frozen=True, kw_only=True):
    """True positives of a group by confidence: mean number per seed and share of the group.

    ``group`` is "known, correct", "known, wrong" or a band of unseen species.
    """

    group: str
    lower: float
    upper: float
    n_seeds: int
    n: float
    share: float
