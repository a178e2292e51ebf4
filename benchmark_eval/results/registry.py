"""Registry of every reported metric: key, label, unit, range, direction, origin and meaning.

Writers, aggregation, plots, reports and docs take names and labels from here only. ``standard``
is the origin of a metric: ``"COCO"`` (pycocotools), ``"VOC"``, ``"benchmark"`` (the benchmark's
own evaluator or its README) or ``"ours"``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmark_eval.protocol import TEST_SPLITS

Better = Literal["higher", "lower", "nearest 0", "neither"]
Standard = Literal["COCO", "VOC", "benchmark", "ours"]

SPLIT_PREFIX = {"iid_test": "iid", "inat_test": "inat", "semantic_ood": "ood"}
"""Prefix of a split in metric names of the sweep tables."""
SPLIT_LABEL = {
    "iid_test": "in-distribution",
    "inat_test": "field photographs",
    "semantic_ood": "unseen species",
    "train": "training images",
}
BAND_LABEL = {
    "near_genus": "near (genus known)",
    "mid_tribe": "mid (tribe known)",
    "far_tribe": "far (tribe unknown)",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One reported metric. ``block`` is the key of its family in ``per_split.<split>``."""

    block: str
    key: str
    label: str
    meaning: str
    unit: str = "fraction"
    low: float | None = 0.0
    high: float | None = 1.0
    better: Better = "higher"
    standard: Standard = "benchmark"
    alias_of: str | None = None

    @property
    def path(self) -> str:
        """``block.key``, relative to the split in ``<model>_summary.json``."""
        return f"{self.block}.{self.key}"


def _suite(block: str, what: str, standard: Standard) -> list[Metric]:
    """The twelve COCO metrics of one block."""
    tail = "species ignored" if what else "mean over species"
    per = "per image" if what else "per image and species"
    rows = [
        ("AP_50_95", "AP@[.5:.95]", "Average precision, mean over IoU 0.50, 0.55, ..., 0.95"),
        ("AP_50", "AP@.5", "Average precision at IoU 0.50"),
        ("AP_75", "AP@.75", "Average precision at IoU 0.75"),
        ("AP_small", "AP small", "AP@[.5:.95] of specimens with an area of up to 32² px"),
        ("AP_medium", "AP medium", "AP@[.5:.95] of specimens with an area of 32² to 96² px"),
        ("AP_large", "AP large", "AP@[.5:.95] of specimens with an area of at least 96² px"),
        ("AR_1", "AR@1", f"Recall with 1 detection {per}, mean over the IoU thresholds"),
        ("AR_10", "AR@10", f"Recall with up to 10 detections {per}, mean over the IoU thresholds"),
        (
            "AR_100",
            "AR@100",
            f"Recall with up to 100 detections {per}, mean over the IoU thresholds",
        ),
        ("AR_small", "AR small", "AR@100 of specimens with an area of up to 32² px"),
        ("AR_medium", "AR medium", "AR@100 of specimens with an area of 32² to 96² px"),
        ("AR_large", "AR large", "AR@100 of specimens with an area of at least 96² px"),
    ]
    return [
        Metric(block, key, f"{what}{label}", f"{meaning}; {tail}.", standard=standard)
        for key, label, meaning in rows
    ]


def _agreement(block: str, of: str) -> list[Metric]:
    """Fractions of true positives with the correct genus, tribe and subfamily."""
    return [
        Metric(
            block,
            f"correct_{rank}",
            f"correct {rank}",
            f"Fraction of {of} with the correct {rank}.",
        )
        for rank in ("genus", "tribe", "subfamily")
    ]


def _count(
    block: str, key: str, label: str, meaning: str, standard: Standard = "benchmark"
) -> Metric:
    """A count from 0, for which neither direction is better."""
    return Metric(block, key, label, meaning, "count", 0.0, None, "neither", standard)


def _imbalance() -> list[Metric]:
    """The metrics of head, medium and tail species."""
    rows: list[Metric] = [
        _count(
            "class_imbalance",
            "n_species_evaluated",
            "species ranked",
            "Scored species with training images.",
        )
    ]
    for tier, words in (
        ("head", "the quarter of species with the most training images"),
        ("medium", "the middle half of species by training images"),
        ("tail", "the quarter of species with the fewest training images"),
    ):
        rows += [
            _count(
                "class_imbalance", f"{tier}_n_species", f"{tier} species", f"Species in {words}."
            ),
            Metric("class_imbalance", f"{tier}_AP_50", f"{tier} AP@.5", f"Mean AP@.5 of {words}."),
            Metric(
                "class_imbalance",
                f"{tier}_AP_50_95",
                f"{tier} AP@[.5:.95]",
                f"Mean AP@[.5:.95] of {words}.",
            ),
            _count(
                "class_imbalance",
                f"{tier}_min_train_imgs",
                f"{tier}: fewest training images",
                f"Smallest number of training images of a species in {words}.",
            ),
            _count(
                "class_imbalance",
                f"{tier}_max_train_imgs",
                f"{tier}: most training images",
                f"Largest number of training images of a species in {words}.",
            ),
        ]
    for key, label in (("AP_50", "AP@.5"), ("AP_50_95", "AP@[.5:.95]")):
        rows += [
            Metric(
                "class_imbalance",
                f"head_minus_tail_{key}",
                f"head minus tail {label}",
                f"Mean {label} of head species minus that of tail species; 0 means no difference between common and rare species.",
                low=-1.0,
                better="nearest 0",
            ),
            Metric(
                "class_imbalance",
                f"{key}_train_count_correlation",
                f"r({label}, training images)",
                f"Pearson correlation over species between {label} and the number of training images.",
                unit="r",
                low=-1.0,
                better="nearest 0",
            ),
        ]
    return rows


# fmt: off
METRICS: tuple[Metric, ...] = (
    _count("prediction_density", "n_predictions", "detections", "Evaluated detections (out-of-vocabulary detections excluded)."),
    _count("prediction_density", "n_gt", "specimens", "Scored specimens (no crowd)."),
    _count("prediction_density", "n_images", "images", "Images of the split."),
    Metric("prediction_density", "boxes_per_gt", "detections per specimen", "Detections per scored specimen.", "ratio", 0.0, None, "neither"),
    Metric("prediction_density", "boxes_per_image", "detections per image", "Detections per image.", "ratio", 0.0, None, "neither"),
    *_suite("coco", "", "COCO"),
    *_suite("class_agnostic", "class-agnostic ", "benchmark"),
    Metric("calibration", "ECE", "expected calibration error", "Absolute difference between mean confidence and precision in ten confidence bins, averaged with the number of detections as weight; detections on crowd ignored. A bin includes its lower edge. As in the benchmark's evaluator, the inner edges are `numpy.linspace(0, 1, 11)[1:-1]`; three of them are just above 0.3, 0.6 and 0.7, so these scores are in the bin below, while 0.1, 0.2, 0.4, 0.5, 0.8 and 0.9 are in the bin above.", better="lower"),
    Metric("calibration", "mean_confidence", "mean confidence", "Mean confidence of true and false positives.", better="neither"),
    _count("calibration", "n_predictions", "true and false positives", "True and false positives (detections on crowd ignored)."),
    _count("hierarchical", "n_matched", "true positives", "Detections matched to a scored specimen."),
    Metric("hierarchical", "correct_species", "correct species", "Fraction of true positives with the correct species."),
    *_agreement("hierarchical", "true positives"),
    *_imbalance(),
    _count("decomposition", "n_gt", "specimens", "Scored specimens."),
    _count("decomposition", "n_matched_tp", "true positives", "Scored specimens detected, whatever species is predicted."),
    Metric("decomposition", "detection_recall", "detection recall", "Fraction of specimens detected, whatever species is predicted; no cap on detections, out-of-vocabulary detections excluded."),
    Metric("decomposition", "detection_recall_open_vocabulary", "detection recall, open vocabulary", "Fraction of specimens detected if out-of-vocabulary detections count too.", standard="ours"),
    Metric("decomposition", "classification_given_detection_acc_open_vocabulary", "species accuracy given detection, open vocabulary", "Fraction of detected specimens that are correctly identified if out-of-vocabulary detections count too.", standard="ours"),
    Metric("decomposition", "species_recall_open_vocabulary", "species recall, open vocabulary", "Fraction of specimens detected and correctly identified if out-of-vocabulary detections count too.", standard="ours"),
    Metric("decomposition", "classification_given_detection_acc", "species accuracy given detection", "Fraction of detected specimens that are correctly identified."),
    Metric("decomposition", "acc_genus_given_det", "genus accuracy given detection", "Fraction of detected specimens with the correct genus."),
    Metric("decomposition", "acc_tribe_given_det", "tribe accuracy given detection", "Fraction of detected specimens with the correct tribe."),
    Metric("decomposition", "species_recall", "species recall", "Fraction of specimens detected and correctly identified."),
    Metric("decomposition", "genus_recall", "genus recall", "Fraction of specimens detected with the correct genus."),
    Metric("decomposition", "tribe_recall", "tribe recall", "Fraction of specimens detected with the correct tribe."),
    Metric("decomposition", "localisation_loss", "missed", "Fraction of specimens not detected: 1 - detection recall.", better="lower", standard="ours"),
    Metric("decomposition", "classification_loss", "misidentified", "Fraction of specimens detected but misidentified: detection recall - species recall.", better="lower"),
    Metric("decomposition", "joint_AP_50", "joint AP@.5", "COCO AP@.5: detected and correctly identified."),
    Metric("decomposition", "detection_only_AP_50", "detection-only AP@.5", "Class-agnostic AP@.5; duplicate detections as other species lower it, so it is not an upper bound of joint AP@.5."),
    Metric("decomposition", "classification_loss_ratio", "classification loss ratio", "1 - joint AP@.5 / detection-only AP@.5; negative if duplicate detections lower the latter. Prefer `classification_loss`.", low=None, better="lower"),
    Metric("decomposition", "mean_confidence_matched", "mean confidence of true positives", "Mean confidence of true positives.", better="neither", standard="ours"),
    Metric("decomposition", "median_iou_matched", "median IoU of true positives", "Median IoU of true positives with their specimens.", standard="ours"),
    _count("ood_by_band", "n_species", "species", "Annotated species of the band."),
    _count("ood_by_band", "n_annotations", "annotations", "Annotations of the band."),
    _count("ood_by_band", "n_images", "images", "Images with an annotation of the band."),
    Metric("ood_by_band", "class_agnostic_AP_50", "class-agnostic AP@.5", "AP@.5 on the band's specimens, species ignored."),
    Metric("ood_by_band", "class_agnostic_AP_50_95", "class-agnostic AP@[.5:.95]", "AP@[.5:.95] on the band's specimens, species ignored."),
    Metric("ood_by_band", "class_agnostic_AR_100", "class-agnostic AR@100", "AR@100 on the band's specimens, species ignored."),
    _count("ood_by_band", "n_matched_tp", "true positives", "True positives on the band's specimens."),
    *_agreement("ood_by_band", "the band's true positives"),
    Metric("ood_by_band", "mean_confidence_matched", "mean confidence of true positives", "Mean confidence of the band's true positives.", better="neither"),
    Metric("ood_by_band", "mean_confidence_all_preds", "mean confidence of all detections", "Mean confidence of all detections on the band's images.", better="neither"),
    _count("density", "n_images", "images", "Images of the stratum with a scored specimen.", "ours"),
    _count("density", "n_images_with_tp", "images with a true positive", "Images of the stratum with a true positive.", "ours"),
    _count("density", "n_gt", "specimens", "Scored specimens of the stratum.", "ours"),
    _count("density", "n_matched_tp", "true positives", "True positives of the stratum.", "ours"),
    Metric("density", "recall", "detection recall", "Fraction of the stratum's specimens detected.", standard="ours"),
    Metric("density", "classification_given_detection_acc", "species accuracy given detection", "Fraction of the stratum's true positives correctly identified.", standard="ours"),
    Metric("density", "species_recall", "species recall", "Fraction of the stratum's specimens detected and correctly identified.", standard="ours"),
    Metric("density", "image_mean_recall", "detection recall (mean over images)", "Mean over images of detection recall.", standard="ours"),
    Metric("density", "image_mean_classification_given_detection_acc", "species accuracy given detection (mean over images)", "Mean of species accuracy over images with a true positive.", standard="ours"),
    Metric("density", "image_mean_species_recall", "species recall (mean over images)", "Mean over images of species recall.", standard="ours"),
    _count("chance", "n_misidentified", "misidentified", "True positives with the wrong species.", "ours"),
    *(
        metric
        for rank in ("genus", "tribe")
        for metric in (
            Metric("chance", f"observed_{rank}", f"misidentified within the correct {rank}", f"Fraction of misidentified true positives with the correct {rank}.", standard="ours"),
            Metric("chance", f"expected_{rank}", f"correct {rank} by chance", "The fraction expected if wrong species were drawn at random from the predicted ones.", better="neither", standard="ours"),
            Metric("chance", f"enrichment_{rank}", f"{rank} enrichment", f"`observed_{rank}` / `expected_{rank}`.", "ratio", 0.0, None, "neither", "ours"),
        )
    ),
    _count("detection_cap", "n_images_over_100", "images over the cap", "Images with more than 100 detections.", "ours"),
    _count("detection_cap", "n_detections_over_100", "detections over the cap", "Detections beyond the first 100 of their image.", "ours"),
    Metric("detection_cap", "AR_100", "class-agnostic AR@100", "Class-agnostic AR with up to 100 detections per image.", standard="ours"),
    Metric("detection_cap", "AR_300", "class-agnostic AR@300", "Class-agnostic AR with up to 300 detections per image.", standard="ours"),
    Metric("detection_cap", "AR_uncapped", "class-agnostic AR without a cap", "Class-agnostic AR with all detections.", standard="ours"),
    Metric("operating_point", "confidence", "confidence threshold", "Detections below this confidence are discarded.", better="neither", standard="ours"),
    _count("operating_point", "n_detections", "detections at or above the threshold", "True and false positives at or above the threshold.", "ours"),
    Metric("operating_point", "precision", "precision", "Fraction of these detections that are true positives.", standard="ours"),
    Metric("operating_point", "recall", "recall", "Fraction of specimens detected.", standard="ours"),
    Metric("operating_point", "F1", "F1", "Harmonic mean of precision and recall.", standard="ours"),
    Metric("operating_point", "species_recall", "species recall", "Fraction of specimens detected and correctly identified.", standard="ours"),
    Metric("operating_point", "false_positives_per_image", "false positives per image", "False positives per image.", "per image", 0.0, None, "lower", "ours"),
    _count("errors", "n", "detections", "Detections (for `missed`: specimens) of the type, by the localisation matching.", "ours"),
    _count("errors", "n_operating", "at the operating threshold", "The same with detections at and above the operating threshold.", "ours"),
    Metric("errors", "per_100_images", "per 100 images", "`n_operating` per 100 images of the split.", "per 100 images", 0.0, None, "neither", "ours"),
    _count("errors", "n_class_aware", "by the matching behind AP@.5", "Detections (for `missed`: specimens) of the type by TIDE's definitions, with the matching behind AP@.5.", "ours"),
    Metric("errors", "dAP_50", "AP@.5 gained", "What AP@.5 (on semantic_ood the class-agnostic one) gains if the errors of `n_class_aware` are repaired; empty for `correct`.", better="lower", standard="ours"),
    _count("errors", "background_near_crowd", "background near crowd", "Detections on the background that have an IoU of 0.1 or more with a crowd region.", "ours"),
    _count("errors", "on_crowd", "on crowd", "Detections ignored on crowd regions; they have no error type.", "ours"),
    _count("reliability", "n_detections", "detections", "Detections in the bins.", "ours"),
    Metric("reliability", "ECE_equal_mass", "ECE, bins of equal size", "Absolute difference between mean confidence and observed fraction, averaged over the bins with the number of detections as weight.", better="lower", standard="ours"),
    Metric("per_species", "AP_50", "AP@.5", "AP of the species at IoU 0.50.", standard="COCO"),
    Metric("per_species", "AP_50_95", "AP@[.5:.95]", "AP of the species, mean over IoU 0.50, 0.55, ..., 0.95.", standard="COCO"),
    _count("per_species", "n_gt", "specimens", "Scored specimens of the species."),
    _count("per_species", "n_matched_tp", "true positives", "Specimens of the species detected.", "ours"),
    _count("per_species", "n_correct_species", "correctly identified", "Specimens detected and correctly identified.", "ours"),
    _count("per_species", "n_correct_genus", "correct genus", "Specimens detected with the correct genus.", "ours"),
    Metric("summary", "photography_robustness_gap_AP_50", "photography gap AP@.5", "AP@.5 in distribution minus that on field photographs.", low=-1.0, better="lower"),
    Metric("summary", "photography_robustness_gap_AP_50_95", "photography gap AP@[.5:.95]", "AP@[.5:.95] in distribution minus that on field photographs.", low=-1.0, better="lower"),
    Metric("summary", "photography_robustness_gap_AP_50_shared_species", "photography gap AP@.5, shared species", "Mean difference of AP@.5 over the species scored on both splits.", low=-1.0, better="lower"),
    Metric("summary", "photography_robustness_gap_AP_50_95_shared_species", "photography gap AP@[.5:.95], shared species", "Mean difference of AP@[.5:.95] over the species scored on both splits.", low=-1.0, better="lower"),
    _count("summary", "n_shared_species_iid_inat", "shared species", "Species scored both in distribution and on field photographs."),
    Metric("summary", "species_generalization_gap_AR_100", "generalization gap AR@100", "Class-agnostic AR@100 in distribution minus that on unseen species.", low=-1.0, better="lower"),
    Metric("summary", "species_generalization_gap_AP_50", "generalization gap AP@.5", "Class-agnostic AP@.5 in distribution minus that on unseen species.", low=-1.0, better="lower"),
    Metric("summary", "confidence_drop_OOD", "confidence drop", "Mean confidence in distribution minus that on unseen species.", low=-1.0),
    Metric("summary", "ood_band_gap_AP_50", "band gap AP@.5", "Class-agnostic AP@.5, near_genus minus far_tribe.", low=-1.0, better="lower"),
    Metric("summary", "ood_band_gap_AR_100", "band gap AR@100", "Class-agnostic AR@100, near_genus minus far_tribe.", low=-1.0, better="lower"),
    Metric("summary", "ood_band_gap_correct_genus", "band gap correct genus", "Fraction of true positives with the correct genus, near_genus minus far_tribe.", low=-1.0, better="neither"),
    Metric("summary", "ood_band_gap_correct_tribe", "band gap correct tribe", "Fraction of true positives with the correct tribe, near_genus minus far_tribe.", low=-1.0, better="neither"),
    Metric("summary", "ood_band_gap_confidence", "band gap confidence", "Mean confidence of true positives, near_genus minus far_tribe.", low=-1.0, better="neither"),
    Metric("summary", "novelty_det_AUROC", "novelty AUROC", "AUROC of 1 - confidence as a score that separates true positives on unseen species (positive class) from those in distribution; 0.5 is chance level."),
    Metric("summary", "novelty_det_FPR@95TPR", "novelty FPR at 95 % TPR", "False positive rate (known species) of the novelty score at a true positive rate (unseen species) of 95 %.", better="lower"),
    Metric("summary", "novelty_known_mean_conf", "mean confidence, known species", "Mean confidence of true positives in distribution.", better="neither"),
    Metric("summary", "novelty_novel_mean_conf", "mean confidence, unseen species", "Mean confidence of true positives on unseen species.", better="neither"),
    _count("summary", "n_known_tp", "true positives, known species", "True positives in distribution."),
    _count("summary", "n_novel_tp", "true positives, unseen species", "True positives on unseen species."),
    *(
        metric
        for band in BAND_LABEL
        for metric in (
            Metric("summary", f"novelty_det_AUROC_{band}", f"novelty AUROC, {band}", f"Novelty AUROC of the true positives on {band} species."),
            Metric("summary", f"novelty_novel_mean_conf_{band}", f"mean confidence, {band}", f"Mean confidence of the true positives on {band} species.", better="neither"),
        )
    ),
)
# fmt: on

ALIASES: tuple[tuple[str, str, str], ...] = (
    *(
        ("class_agnostic", f"class_agnostic_{m.key}", m.key)
        for m in METRICS
        if m.block == "class_agnostic"
    ),
    ("decomposition", "acc_species_given_det", "classification_given_detection_acc"),
    ("decomposition", "detection_only_AP_50_ref", "detection_only_AP_50"),
)
"""(block, alias, key): spellings of the benchmark's evaluator, in summary.json only."""

METRICS += tuple(
    Metric(
        block,
        alias,
        f"{original.label} (alias)",
        f"Name of {key} in the benchmark's evaluator.",
        original.unit,
        original.low,
        original.high,
        original.better,
        original.standard,
        alias_of=key,
    )
    for block, alias, key in ALIASES
    for original in METRICS
    if (original.block, original.key) == (block, key)
)

BY_PATH: dict[str, Metric] = {metric.path: metric for metric in METRICS}


@dataclass(frozen=True, slots=True)
class CurveMetric:
    """One metric of the sweep tables: ``name`` is the column stem.

    ``path`` holds the keys that lead to the value in ``<model>_summary.json``.
    """

    name: str
    path: tuple[str, ...]
    metric: Metric
    split: str | None

    @property
    def label(self) -> str:
        """Label with the split, for an axis or a table."""
        if self.split is None:
            return self.metric.label
        place = SPLIT_LABEL[self.split]
        band = self.path[4] if self.metric.block == "ood_by_band" else None
        return f"{self.metric.label}, {place}{f', {BAND_LABEL[band]}' if band else ''}"


def _curve(split: str, block: str, key: str, name: str | None = None) -> CurveMetric:
    """One metric of a split as a column of learning_curves.csv."""
    return CurveMetric(
        f"{SPLIT_PREFIX[split]}_{name or key}",
        ("per_split", split, block, key),
        BY_PATH[f"{block}.{key}"],
        split,
    )


def _curve_metrics() -> tuple[CurveMetric, ...]:
    """All columns of learning_curves.csv."""
    rows: list[CurveMetric] = []
    for split in TEST_SPLITS:
        ood = split == "semantic_ood"
        if not ood:
            rows += [_curve(split, "coco", key) for key in ("AP_50_95", "AP_50", "AP_75", "AR_100")]
        rows.append(_curve(split, "class_agnostic", "AR_100", "class_agnostic_AR_100"))
        rows += [
            _curve(split, "decomposition", key)
            for key in (
                *(() if ood else ("detection_only_AP_50",)),
                "joint_AP_50",
                "classification_given_detection_acc",
                "classification_loss_ratio",
                "detection_recall",
                *(() if ood else ("detection_recall_open_vocabulary",)),
                *(() if ood else ("classification_given_detection_acc_open_vocabulary",)),
                "species_recall",
                *(() if ood else ("species_recall_open_vocabulary",)),
                "classification_loss",
                "localisation_loss",
            )
        ]
        if split != "inat_test":
            rows += [
                _curve(split, "hierarchical", key) for key in ("correct_genus", "correct_tribe")
            ]
        rows += [_curve(split, "calibration", key) for key in ("ECE", "mean_confidence")]
        if not ood:
            rows += [
                _curve(split, "class_imbalance", key)
                for key in (
                    "head_AP_50",
                    "medium_AP_50",
                    "tail_AP_50",
                    "head_minus_tail_AP_50",
                    "AP_50_train_count_correlation",
                )
            ]
    for band in BAND_LABEL:
        for key, name in (
            ("class_agnostic_AP_50", "AP_50"),
            ("class_agnostic_AR_100", "AR_100"),
            ("correct_genus", "correct_genus"),
            ("correct_tribe", "correct_tribe"),
            ("mean_confidence_matched", "mean_confidence_matched"),
        ):
            path = ("per_split", "semantic_ood", "ood_by_band", "by_band", band, key)
            rows.append(
                CurveMetric(
                    f"ood_{band}_{name}", path, BY_PATH[f"ood_by_band.{key}"], "semantic_ood"
                )
            )
    rows += [
        CurveMetric(m.key, ("summary", m.key), m, None) for m in METRICS if m.block == "summary"
    ]
    return tuple(rows)


CURVE_METRICS: tuple[CurveMetric, ...] = _curve_metrics()
"""Every metric of learning_curves.csv, in column order."""

HEADLINE: tuple[str, ...] = ("iid_AP_50_95", "inat_AP_50_95", "ood_class_agnostic_AR_100")
"""The three headline metrics, as names of ``CURVE_METRICS``."""
