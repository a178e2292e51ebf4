"""The typed result of an evaluation, and the reader of ``<model>_summary.json``.

``None`` means undefined (no ground truth, no true positives, a split that was not evaluated). It
is ``null`` in JSON, an empty cell in CSV, and never part of a mean. Fields are named by the
metric keys of ``benchmark_eval.results.registry``, which has labels and meanings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.json_values import as_id, syntax_cause
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import read_input, unreadable
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.predictions import OnInvalid
from benchmark_eval.protocol import KNOWN_SPLITS, OOD_BANDS

SCHEMA_VERSION = 3
"""Layout version of ``<model>_summary.json``; other versions are rejected."""

Engine = Literal["fast", "pycocotools"]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number of boxes, images or species; a larger one cannot be counted exactly in columns."""
N_THRESHOLDS = 101
"""Number of confidence thresholds of an operating curve: 0.00, 0.01, ..., 1.00."""
_ID = re.compile(r"-?[0-9]{1,19}")


class PredictionDensity(msgspec.Struct, frozen=True, kw_only=True):
    """Detections per scored specimen and per image."""

    n_predictions: Count
    n_gt: Count
    n_images: Count
    boxes_per_gt: float | None
    boxes_per_image: float | None


class CocoMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The twelve metrics of COCO box evaluation (pycocotools ``COCOeval``)."""

    AP_50_95: float | None
    AP_50: float | None
    AP_75: float | None
    AP_small: float | None
    AP_medium: float | None
    AP_large: float | None
    AR_1: float | None
    AR_10: float | None
    AR_100: float | None
    AR_small: float | None
    AR_medium: float | None
    AR_large: float | None


class SpeciesScore(msgspec.Struct, frozen=True, kw_only=True):
    """One category that the split lists; AP at area "all" and 100 detections per image."""

    name: str
    AP_50: float | None
    AP_50_95: float | None
    n_gt: Count
    n_matched_tp: Count
    n_correct_species: Count
    n_correct_genus: Count


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Confidence against precision, over true and false positives (crowd ignored)."""

    ECE: float | None
    mean_confidence: float | None
    confidence_histogram: list[Count]
    accuracy_per_bin: list[float | None]
    n_predictions: Count


class BandAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Fractions of the true positives of a band that are correct at each rank."""

    n: Count
    correct_species: float
    correct_genus: float
    correct_tribe: float
    correct_subfamily: float


class Hierarchical(msgspec.Struct, frozen=True, kw_only=True):
    """Taxonomic agreement of true positives, cumulative from species to subfamily."""

    n_matched: Count
    correct_species: float | None
    correct_genus: float | None
    correct_tribe: float | None
    correct_subfamily: float | None
    per_band: dict[str, BandAgreement]


class OodBand(msgspec.Struct, frozen=True, kw_only=True):
    """One distance band of unseen species, evaluated on its own."""

    n_species: Count
    n_annotations: Count
    n_images: Count
    class_agnostic_AP_50: float | None
    class_agnostic_AP_50_95: float | None
    class_agnostic_AR_100: float | None
    n_matched_tp: Count
    correct_genus: float | None
    correct_tribe: float | None
    correct_subfamily: float | None
    mean_confidence_matched: float | None
    mean_confidence_all_preds: float | None


class OodByBand(msgspec.Struct, frozen=True, kw_only=True):
    """The bands that have annotations, nearest first."""

    by_band: dict[str, OodBand]


class ClassImbalance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Mean AP of species with many, medium and few training images, and the gap.

    Empty without training annotations; only ``n_species_evaluated`` below four species.
    """

    n_species_evaluated: Count | UnsetType = UNSET
    head_n_species: Count | UnsetType = UNSET
    head_AP_50: float | UnsetType | None = UNSET
    head_AP_50_95: float | UnsetType | None = UNSET
    head_min_train_imgs: Count | UnsetType = UNSET
    head_max_train_imgs: Count | UnsetType = UNSET
    medium_n_species: Count | UnsetType = UNSET
    medium_AP_50: float | UnsetType | None = UNSET
    medium_AP_50_95: float | UnsetType | None = UNSET
    medium_min_train_imgs: Count | UnsetType = UNSET
    medium_max_train_imgs: Count | UnsetType = UNSET
    tail_n_species: Count | UnsetType = UNSET
    tail_AP_50: float | UnsetType | None = UNSET
    tail_AP_50_95: float | UnsetType | None = UNSET
    tail_min_train_imgs: Count | UnsetType = UNSET
    tail_max_train_imgs: Count | UnsetType = UNSET
    head_minus_tail_AP_50: float | UnsetType | None = UNSET
    head_minus_tail_AP_50_95: float | UnsetType | None = UNSET
    AP_50_train_count_correlation: float | UnsetType | None = UNSET
    AP_50_95_train_count_correlation: float | UnsetType | None = UNSET


class Decomposition(msgspec.Struct, frozen=True, kw_only=True):
    """Detection versus identification, from the localisation matching.

    ``*_open_vocabulary`` also count out-of-vocabulary detections; all other metrics ignore them.
    """

    n_gt: Count
    n_matched_tp: Count
    detection_recall: float | None
    detection_recall_open_vocabulary: float | None = None
    classification_given_detection_acc_open_vocabulary: float | None = None
    species_recall_open_vocabulary: float | None = None
    classification_given_detection_acc: float | None
    acc_genus_given_det: float | None
    acc_tribe_given_det: float | None
    species_recall: float | None
    genus_recall: float | None
    tribe_recall: float | None
    localisation_loss: float | None
    classification_loss: float | None
    joint_AP_50: float | None
    detection_only_AP_50: float | None
    classification_loss_ratio: float | None
    classification_loss_ratio_note: str
    mean_confidence_matched: float | None
    median_iou_matched: float | None
    is_species_meaningful: bool


class DensityStratum(msgspec.Struct, frozen=True, kw_only=True):
    """Images with a range of specimens (crowd counted), pooled and as a mean over images.

    ``n_images`` counts images with a scored specimen. The image mean of accuracy is over the
    ``n_images_with_tp`` images with a true positive.
    """

    n_images: Count
    n_images_with_tp: Count
    n_gt: Count
    n_matched_tp: Count
    recall: float | None
    classification_given_detection_acc: float | None
    species_recall: float | None
    image_mean_recall: float | None
    image_mean_classification_given_detection_acc: float | None
    image_mean_species_recall: float | None


class DensityStrata(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"one": "1", "few": "2 to 10", "many": ">10", "multi": ">1"},
):
    """The strata by specimens per image: 1, 2 to 10, >10, and all above 1."""

    one: DensityStratum
    few: DensityStratum
    many: DensityStratum
    multi: DensityStratum


class Density(msgspec.Struct, frozen=True, kw_only=True):
    """Density strata of a split, and on semantic_ood of each band."""

    strata: DensityStrata
    by_band: dict[str, DensityStrata]


class Chance(msgspec.Struct, frozen=True, kw_only=True):
    """Misidentifications with the correct genus or tribe: observed and expected by chance."""

    n_misidentified: Count
    observed_genus: float | None
    expected_genus: float | None
    enrichment_genus: float | None
    observed_tribe: float | None
    expected_tribe: float | None
    enrichment_tribe: float | None


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """One confused pair of species: ``n`` of the ``n_matched_tp`` detected specimens."""

    gt_species: str
    pred_species: str
    n: Count
    n_matched_tp: Count
    same_genus: bool


class DetectionCap(msgspec.Struct, frozen=True, kw_only=True):
    """Class-agnostic AR at COCO's cap of 100 detections per image, at 300, and without a cap."""

    n_images_over_100: Count
    n_detections_over_100: Count
    AR_100: float | None
    AR_300: float | None
    AR_uncapped: float | None


class OperatingPointAt(msgspec.Struct, frozen=True, kw_only=True):
    """The localisation matching at one confidence threshold."""

    confidence: float | None
    n_detections: Count
    precision: float | None
    recall: float | None
    F1: float | None
    species_recall: float | None
    false_positives_per_image: float | None


class OperatingCurve(msgspec.Struct, frozen=True, kw_only=True):
    """The operating points at 0.00, 0.01, ..., 1.00; every list has 101 values."""

    confidence: list[float]
    precision: list[float | None]
    recall: list[float | None]
    F1: list[float | None]
    species_recall: list[float | None]
    false_positives_per_image: list[float | None]


class OperatingPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The operating point of the best F1, two fixed thresholds, and the curve."""

    best_F1: OperatingPointAt
    at_25: OperatingPointAt = field(name="at_0.25")
    at_50: OperatingPointAt = field(name="at_0.50")
    curve: OperatingCurve


ERROR_TYPES = (
    "correct",
    "wrong_name_congener",
    "wrong_name_same_tribe",
    "wrong_name_other",
    "poor_box",
    "both",
    "duplicate",
    "background",
    "missed",
)
"""Every detection outside crowd regions has one of these types, every missed specimen the last."""


class ErrorCount(msgspec.Struct, frozen=True, kw_only=True):
    """One error type: ``n`` over all detections, ``per_100_images`` at the operating threshold.

    ``n`` is by the localisation matching. ``n_class_aware`` is by the matching behind AP@.5, and
    ``dAP_50`` what AP@.5 gains if these errors are repaired.
    """

    n: int
    n_operating: int | None
    per_100_images: float | None
    n_class_aware: int
    dAP_50: float | None


class Errors(msgspec.Struct, frozen=True, kw_only=True):
    """Error types of a split, without detections on crowd regions.

    On semantic_ood species is ignored: no wrong names, no "both", and AP@.5 is class-agnostic.
    ``wrong_name`` is the sum of the three kinds, but for ``dAP_50``.
    """

    correct: ErrorCount
    wrong_name: ErrorCount | UnsetType = UNSET
    wrong_name_congener: ErrorCount | UnsetType = UNSET
    wrong_name_same_tribe: ErrorCount | UnsetType = UNSET
    wrong_name_other: ErrorCount | UnsetType = UNSET
    poor_box: ErrorCount
    both: ErrorCount | UnsetType = UNSET
    duplicate: ErrorCount
    background: ErrorCount
    missed: ErrorCount
    background_near_crowd: int
    on_crowd: int


class ReliabilityBins(msgspec.Struct, frozen=True, kw_only=True):
    """Confidence against an observed fraction in bins with equally many detections.

    The lists have one value per bin that is not empty, in ascending order of confidence; ``edges``
    has all bin edges.
    """

    n_detections: int
    ECE_equal_mass: float | None
    edges: list[float]
    n_in_bin: list[int]
    mean_confidence: list[float]
    observed: list[float]


class ReliabilityOf(msgspec.Struct, frozen=True, kw_only=True):
    """One event: over all detections, and at and above the operating threshold."""

    all: ReliabilityBins
    operating: ReliabilityBins | None


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """Three events: a specimen is detected; its species is correct, given that; both.

    On semantic_ood no species can be correct, so only the first is present.
    """

    detected: ReliabilityOf
    identified: ReliabilityOf | UnsetType = UNSET
    detected_and_identified: ReliabilityOf | UnsetType = UNSET


class OperatingThreshold(msgspec.Struct, frozen=True, kw_only=True):
    """The confidence threshold of the model, used on every split, and where it comes from.

    ``confidence`` is None if it is undefined, and ``source`` then says why.
    """

    confidence: float | None
    source: str


class SplitEvaluation(msgspec.Struct, frozen=True, kw_only=True):
    """All metric families of one split. ``ood_by_band`` is present on semantic_ood only.

    ``confusions`` lists the most frequent ones, by descending count.
    """

    warnings: list[str]
    notes: list[str]
    n_predictions: Count
    prediction_density: PredictionDensity
    coco: CocoMetrics
    per_species: dict[str, SpeciesScore]
    class_agnostic: CocoMetrics
    calibration: Calibration
    hierarchical: Hierarchical
    ood_by_band: OodByBand | UnsetType = UNSET
    class_imbalance: ClassImbalance
    decomposition: Decomposition
    density: Density
    chance: Chance
    confusions: list[Confusion] = []
    detection_cap: DetectionCap
    operating_point: OperatingPoint
    errors: Errors
    reliability: Reliability


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics across splits; ``None`` if either side is undefined."""

    photography_robustness_gap_AP_50: float | None
    photography_robustness_gap_AP_50_95: float | None
    photography_robustness_gap_AP_50_shared_species: float | None
    photography_robustness_gap_AP_50_95_shared_species: float | None
    n_shared_species_iid_inat: Count | None
    species_generalization_gap_AR_100: float | None
    species_generalization_gap_AP_50: float | None
    confidence_drop_OOD: float | None
    ood_band_gap_AP_50: float | None
    ood_band_gap_AR_100: float | None
    ood_band_gap_correct_genus: float | None
    ood_band_gap_correct_tribe: float | None
    ood_band_gap_confidence: float | None
    novelty_det_AUROC: float | None
    novelty_det_FPR_95TPR: float | None = field(name="novelty_det_FPR@95TPR")
    novelty_known_mean_conf: float | None
    novelty_novel_mean_conf: float | None
    n_known_tp: Count | None
    n_novel_tp: Count | None
    novelty_det_AUROC_near_genus: float | None
    novelty_det_AUROC_mid_tribe: float | None
    novelty_det_AUROC_far_tribe: float | None
    novelty_novel_mean_conf_near_genus: float | None
    novelty_novel_mean_conf_mid_tribe: float | None
    novelty_novel_mean_conf_far_tribe: float | None


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The three metrics that the benchmark requires in every report."""

    iid_test: float | None = field(name="iid_test.coco.AP_50_95")
    inat_test: float | None = field(name="inat_test.coco.AP_50_95")
    semantic_ood: float | None = field(name="semantic_ood.class_agnostic.AR_100")


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The options that affect the metrics."""

    iou_threshold: float
    splits: list[str]
    engine: Engine
    on_invalid: OnInvalid
    operating_confidence: float | None = None


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Provenance of the metrics. ``inputs`` maps a role (``predictions/iid_test``) to a SHA-256.

    ``benchmark`` is the dataset description in the annotation files; ``evidence`` the SHA-256 of
    ``<model>_evidence.npz``.
    """

    package_version: str
    schema_version: int
    scoring_code: str
    inputs: dict[str, str]
    benchmark: str = ""
    evidence: str = ""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """One model on the benchmark: the content of ``<model>_summary.json``."""

    schema_version: int
    model: str
    headline: Headline
    summary: Summary
    operating_threshold: OperatingThreshold
    per_split: dict[str, SplitEvaluation]
    config: RunConfig
    provenance: Provenance


def to_dict(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation as plain dicts and lists, with the aliases of the registry."""
    from benchmark_eval.results.registry import ALIASES

    tree: dict[str, Any] = msgspec.to_builtins(evaluation)
    for split in tree["per_split"].values():
        for block, alias, key in ALIASES:
            split[block][alias] = split[block][key]
    return tree


class _Version(msgspec.Struct):
    """The one field needed to explain why a summary does not decode."""

    schema_version: int


def load_summary(path: str | Path) -> Evaluation:
    """Read a ``<model>_summary.json``.

    Raises
    ------
    InputError
        If the file is unreadable, not JSON, of another schema version, or not a summary.
    """
    try:
        data = read_input(path)
    except OSError as error:
        raise InputError([unreadable(path, error)]) from error
    return decode_summary(data, str(path))


def decode_summary(data: bytes, file: str) -> Evaluation:
    """Decode the bytes of a summary; ``file`` names it in messages."""
    version: Count | None = None
    try:
        evaluation = msgspec.json.decode(data, type=Evaluation)
        version = evaluation.schema_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        cause = syntax_cause(data)
        try:
            version = msgspec.json.decode(data, type=_Version).schema_version
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            version = None
        if version in (None, SCHEMA_VERSION):
            problem = Problem(
                "not-json" if cause else "not-a-summary",
                file,
                str(error),
                "a summary.json written by benchmark-eval evaluate",
                cause=f"{cause or 'edited manually, or not a summary'}; evaluate the model again",
            )
            raise InputError([problem]) from error
    if version != SCHEMA_VERSION:
        found, expected = f"schema_version {version}", f"schema_version {SCHEMA_VERSION}"
        cause = "written by another version of benchmark_eval; evaluate the model again"
        raise InputError([Problem("schema-version", file, found, expected, cause=cause)])
    problems = [
        Problem("not-a-summary", file, found, expected, field=field, cause="edited; evaluate again")
        for field, found, expected in _contradictions(evaluation)
    ]
    if problems:
        raise InputError(problems)
    return evaluation


def _contradictions(evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    """(field, found, expected) of what the types allow but no evaluation writes."""
    splits, listed = list(evaluation.per_split), evaluation.config.splits
    if set(splits) != set(listed) or len(set(listed)) != len(listed):
        yield "per_split", ", ".join(splits) or "no split", f"config.splits: {', '.join(listed)}"
    for split in splits:
        if split not in KNOWN_SPLITS:
            yield "per_split", f"split {split!r}", f"only {', '.join(KNOWN_SPLITS)}"
    for split, block in evaluation.per_split.items():
        where = f"per_split.{split}"
        for number in block.per_species:
            if not _ID.fullmatch(number) or as_id(int(number)) is None:
                yield f"{where}.per_species", f"category id {number!r}", "a 64-bit integer"
        ood = {} if block.ood_by_band is UNSET else block.ood_by_band.by_band
        for name, bands in (
            ("hierarchical.per_band", block.hierarchical.per_band),
            ("ood_by_band.by_band", ood),
            ("density.by_band", block.density.by_band),
        ):
            for band in bands:
                if band not in OOD_BANDS:
                    yield f"{where}.{name}", f"band {band!r}", f"only {', '.join(OOD_BANDS)}"
        curve = block.operating_point.curve
        for key in curve.__struct_fields__:
            n = len(getattr(curve, key))
            if n != N_THRESHOLDS:
                place = f"{where}.operating_point.curve.{key}"
                yield place, counted(n, "value"), f"{N_THRESHOLDS} values"
        n_bins = len(block.calibration.confidence_histogram)
        if n_bins != len(block.calibration.accuracy_per_bin):
            found = f"{len(block.calibration.accuracy_per_bin)} values"
            yield f"{where}.calibration.accuracy_per_bin", found, f"{n_bins}, one per bin"


LISTED = 10
"""Largest number of confusions in a summary."""
