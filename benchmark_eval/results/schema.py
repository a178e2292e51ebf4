"""What one evaluated model is: the typed result, and the only reader and writer of its files.

``None`` means "not defined" (no ground truth, no hit, a split that was not asked for). It is
``null`` in JSON and an empty cell in CSV, and it never enters a mean. Metric names, labels and
meanings stand in ``benchmark_eval.results.registry``; a field here is named by its key there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem
from benchmark_eval.inputs.predictions import OnInvalid

SCHEMA_VERSION = 2
"""Version of the layout of ``<model>_summary.json``; a reader refuses any other."""

Engine = Literal["fast", "pycocotools"]


class PredictionDensity(msgspec.Struct, frozen=True, kw_only=True):
    """How many boxes a model wrote per scored specimen and per image of a split."""

    n_predictions: int
    n_gt: int
    n_images: int
    boxes_per_gt: float | None
    boxes_per_image: float | None


class CocoMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The twelve numbers of COCO's box evaluation (pycocotools ``COCOeval``)."""

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
    """One listed category of a split; AP at area "all" and 100 detections an image."""

    name: str
    AP_50: float | None
    AP_50_95: float | None
    n_gt: int
    n_matched_tp: int
    n_correct_species: int
    n_correct_genus: int


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Confidence against share of hits, over hits and false positives (crowd left out)."""

    ECE: float | None
    mean_confidence: float | None
    confidence_histogram: list[int]
    accuracy_per_bin: list[float | None]
    n_predictions: int


class BandAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of a band's hits whose name is right at each rank."""

    n: int
    correct_species: float
    correct_genus: float
    correct_tribe: float
    correct_subfamily: float


class Hierarchical(msgspec.Struct, frozen=True, kw_only=True):
    """Taxonomic agreement of hits, cumulative: a right species has a right genus too."""

    n_matched: int
    correct_species: float | None
    correct_genus: float | None
    correct_tribe: float | None
    correct_subfamily: float | None
    per_band: dict[str, BandAgreement]


class OodBand(msgspec.Struct, frozen=True, kw_only=True):
    """One distance band of unseen species, scored alone on the images that hold it."""

    n_species: int
    n_annotations: int
    n_images: int
    class_agnostic_AP_50: float | None
    class_agnostic_AP_50_95: float | None
    class_agnostic_AR_100: float | None
    n_matched_tp: int
    correct_genus: float | None
    correct_tribe: float | None
    correct_subfamily: float | None
    mean_confidence_matched: float | None
    mean_confidence_all_preds: float | None


class OodByBand(msgspec.Struct, frozen=True, kw_only=True):
    """The bands that the split's annotations hold, nearest first."""

    by_band: dict[str, OodBand]


class ClassImbalance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Mean AP of species rich, middling and poor in training images, and their gap.

    Every key is absent without training annotations; under four species only
    ``n_species_evaluated`` is present.
    """

    n_species_evaluated: int | UnsetType = UNSET
    head_n_species: int | UnsetType = UNSET
    head_AP_50: float | UnsetType | None = UNSET
    head_AP_50_95: float | UnsetType | None = UNSET
    head_min_train_imgs: int | UnsetType = UNSET
    head_max_train_imgs: int | UnsetType = UNSET
    medium_n_species: int | UnsetType = UNSET
    medium_AP_50: float | UnsetType | None = UNSET
    medium_AP_50_95: float | UnsetType | None = UNSET
    medium_min_train_imgs: int | UnsetType = UNSET
    medium_max_train_imgs: int | UnsetType = UNSET
    tail_n_species: int | UnsetType = UNSET
    tail_AP_50: float | UnsetType | None = UNSET
    tail_AP_50_95: float | UnsetType | None = UNSET
    tail_min_train_imgs: int | UnsetType = UNSET
    tail_max_train_imgs: int | UnsetType = UNSET
    head_minus_tail_AP_50: float | UnsetType | None = UNSET
    head_minus_tail_AP_50_95: float | UnsetType | None = UNSET
    AP_50_train_count_correlation: float | UnsetType | None = UNSET
    AP_50_95_train_count_correlation: float | UnsetType | None = UNSET


class Decomposition(msgspec.Struct, frozen=True, kw_only=True):
    """Finding against naming, from the localisation matching.

    ``detection_recall_open_vocabulary`` also counts detections of categories that the split does
    not list; all other metrics ignore them.
    """

    n_gt: int
    n_matched_tp: int
    detection_recall: float | None
    detection_recall_open_vocabulary: float | None = None
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
    """Images of one range of specimens (crowd counted), pooled and as a mean over images.

    ``n_images`` are those that hold a scored specimen; the image means of accuracy are over the
    ``n_images_with_tp`` images that have a hit.
    """

    n_images: int
    n_images_with_tp: int
    n_gt: int
    n_matched_tp: int
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
    """Density strata of a split, and (semantic_ood) of each band's specimens."""

    strata: DensityStrata
    by_band: dict[str, DensityStrata]


class Chance(msgspec.Struct, frozen=True, kw_only=True):
    """Wrong names against chance: how often a wrong name lands in the right genus or tribe."""

    n_misidentified: int
    observed_genus: float | None
    expected_genus: float | None
    enrichment_genus: float | None
    observed_tribe: float | None
    expected_tribe: float | None
    enrichment_tribe: float | None


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """One pair of species that the model confuses: ``n`` of ``n_matched_tp`` hits got this name."""

    gt_species: str
    pred_species: str
    n: int
    n_matched_tp: int
    same_genus: bool


class DetectionCap(msgspec.Struct, frozen=True, kw_only=True):
    """What COCO's cap of 100 detections an image hides, as class-agnostic AR."""

    n_images_over_100: int
    n_detections_over_100: int
    AR_100: float | None
    AR_300: float | None
    AR_uncapped: float | None


class OperatingPointAt(msgspec.Struct, frozen=True, kw_only=True):
    """The localisation matching cut at one confidence."""

    confidence: float | None
    n_detections: int
    precision: float | None
    recall: float | None
    F1: float | None
    species_recall: float | None
    false_positives_per_image: float | None


class OperatingCurve(msgspec.Struct, frozen=True, kw_only=True):
    """The cut at 101 confidences 0.00, 0.01, ..., 1.00; every list has 101 values."""

    confidence: list[float]
    precision: list[float | None]
    recall: list[float | None]
    F1: list[float | None]
    species_recall: list[float | None]
    false_positives_per_image: list[float | None]


class OperatingPoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a user gets at a confidence cut: the best F1, two fixed cuts, and the curve."""

    best_F1: OperatingPointAt
    at_25: OperatingPointAt = field(name="at_0.25")
    at_50: OperatingPointAt = field(name="at_0.50")
    curve: OperatingCurve


class SplitEvaluation(msgspec.Struct, frozen=True, kw_only=True):
    """All families of one split. ``ood_by_band`` is present on semantic_ood only.

    ``confusions`` are the most frequent wrong names, most frequent first.
    """

    warnings: list[str]
    notes: list[str]
    n_predictions: int
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


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Differences and separations across splits; ``None`` where a side is not defined."""

    photography_robustness_gap_AP_50: float | None
    photography_robustness_gap_AP_50_95: float | None
    photography_robustness_gap_AP_50_shared_species: float | None
    photography_robustness_gap_AP_50_95_shared_species: float | None
    n_shared_species_iid_inat: int | None
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
    n_known_tp: int | None
    n_novel_tp: int | None
    novelty_det_AUROC_near_genus: float | None
    novelty_det_AUROC_mid_tribe: float | None
    novelty_det_AUROC_far_tribe: float | None
    novelty_novel_mean_conf_near_genus: float | None
    novelty_novel_mean_conf_mid_tribe: float | None
    novelty_novel_mean_conf_far_tribe: float | None


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The three numbers that the benchmark asks every report to give."""

    iid_test: float | None = field(name="iid_test.coco.AP_50_95")
    inat_test: float | None = field(name="inat_test.coco.AP_50_95")
    semantic_ood: float | None = field(name="semantic_ood.class_agnostic.AR_100")


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The options that shaped the numbers."""

    iou_threshold: float
    splits: list[str]
    engine: Engine
    on_invalid: OnInvalid


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What the numbers came from. Inputs maps a role (``predictions/iid_test``) to a SHA-256.

    ``benchmark`` is what the annotation files say of themselves.
    """

    package_version: str
    schema_version: int
    scoring_code: str
    inputs: dict[str, str]
    benchmark: str = ""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """One model on the benchmark: the content of ``<model>_summary.json``."""

    schema_version: int
    model: str
    headline: Headline
    summary: Summary
    per_split: dict[str, SplitEvaluation]
    config: RunConfig
    provenance: Provenance


def to_dict(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation as plain dicts and lists, with the aliases that the catalogue lists."""
    from benchmark_eval.results.registry import ALIASES

    tree: dict[str, Any] = msgspec.to_builtins(evaluation)
    for split in tree["per_split"].values():
        for block, alias, key in ALIASES:
            split[block][alias] = split[block][key]
    return tree


class _Version(msgspec.Struct):
    schema_version: int


def load_summary(path: str | Path) -> Evaluation:
    """Read a ``<model>_summary.json``.

    Raises InputError when it cannot be read, is no JSON, has another schema version, or lacks a
    field or has one of another type.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as fault:
        found = fault.strerror or type(fault).__name__
        raise InputError([Problem("unreadable", str(path), found, "a readable file")]) from fault
    return decode_summary(data, str(path))


def decode_summary(data: bytes, file: str) -> Evaluation:
    """The evaluation in the bytes of a summary; ``file`` is how messages call it."""
    again = f"written by another version of the package (this one writes {SCHEMA_VERSION})"
    version: int | None = None
    try:
        evaluation = msgspec.json.decode(data, type=Evaluation)
        version = evaluation.schema_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        shape = isinstance(fault, msgspec.ValidationError)
        try:
            version = msgspec.json.decode(data, type=_Version).schema_version
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            version = None
        if version in (None, SCHEMA_VERSION):
            problem = Problem(
                "not-a-summary" if shape else "not-json",
                file,
                str(fault),
                "a summary.json of benchmark-eval evaluate",
                cause="" if shape else "cut off or not JSON: evaluate the model again",
            )
            raise InputError([problem]) from fault
    if version != SCHEMA_VERSION:
        found, wanted = f"schema_version {version}", f"schema_version {SCHEMA_VERSION}"
        cause = f"{again}; evaluate the model again"
        raise InputError([Problem("schema-version", file, found, wanted, cause=cause)])
    return evaluation


LISTED = 10
"""How many pairs are listed."""
