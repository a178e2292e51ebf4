"""Every reported metric, once: its key, label, unit, range, direction, origin and meaning.

Writers, aggregation, plots, the report, the docs and the schemas take names and labels from
here and nowhere else. ``standard`` says whose number it is: ``"COCO"`` (pycocotools),
``"VOC"``, ``"benchmark"`` (the benchmark's own evaluator or its README) or ``"ours"``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmark_eval.protocol import TEST_SPLITS

Better = Literal["higher", "lower", "nearest 0", "neither"]
Standard = Literal["COCO", "VOC", "benchmark", "ours"]

SPLIT_PREFIX = {"iid_test": "iid", "inat_test": "inat", "semantic_ood": "ood"}
"""How a split is spelled in front of a metric in the tables of a sweep."""
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
    """One reported number. ``block`` is the family's key in ``per_split.<split>``."""

    block: str
    key: str
    label: str
    meaning: str
    unit: str = "share"
    low: float | None = 0.0
    high: float | None = 1.0
    better: Better = "higher"
    standard: Standard = "benchmark"
    alias_of: str | None = None

    @property
    def path(self) -> str:
        """``block.key``, the metric's place under a split in ``<model>_summary.json``."""
        return f"{self.block}.{self.key}"


def _suite(block: str, what: str, standard: Standard) -> list[Metric]:
    """The twelve COCO numbers under one block."""
    tail = "species ignored" if what else "mean over species"
    per = "an image" if what else "an image and species"
    rows = [
        ("AP_50_95", "AP@[.5:.95]", "Average precision, mean over IoU 0.50, 0.55, ..., 0.95"),
        ("AP_50", "AP@.5", "Average precision at IoU 0.50"),
        ("AP_75", "AP@.75", "Average precision at IoU 0.75"),
        ("AP_small", "AP small", "AP@[.5:.95] of specimens up to 32² px"),
        ("AP_medium", "AP medium", "AP@[.5:.95] of specimens of 32² to 96² px"),
        ("AP_large", "AP large", "AP@[.5:.95] of specimens from 96² px"),
        ("AR_1", "AR@1", f"Recall with 1 detection {per}, mean over the IoU thresholds"),
        ("AR_10", "AR@10", f"Recall with 10 detections {per}, mean over the IoU thresholds"),
        ("AR_100", "AR@100", f"Recall with 100 detections {per}, mean over the IoU thresholds"),
        ("AR_small", "AR small", "AR@100 of specimens up to 32² px"),
        ("AR_medium", "AR medium", "AR@100 of specimens of 32² to 96² px"),
        ("AR_large", "AR large", "AR@100 of specimens from 96² px"),
    ]
    return [
        Metric(block, key, f"{what}{label}", f"{meaning}; {tail}.", standard=standard)
        for key, label, meaning in rows
    ]


def _agreement(block: str, of: str) -> list[Metric]:
    """Shares of hits named right at each rank above the species."""
    return [
        Metric(
            block, f"correct_{rank}", f"right {rank}", f"Share of {of} named in the right {rank}."
        )
        for rank in ("genus", "tribe", "subfamily")
    ]


def _count(
    block: str, key: str, label: str, meaning: str, standard: Standard = "benchmark"
) -> Metric:
    return Metric(block, key, label, meaning, "count", 0.0, None, "neither", standard)


def _imbalance() -> list[Metric]:
    rows: list[Metric] = [
        _count(
            "class_imbalance",
            "n_species_evaluated",
            "species ranked",
            "Scored species with training images.",
        )
    ]
    for tier, words in (
        ("head", "the quarter of species richest in training images"),
        ("medium", "the middle half of species by training images"),
        ("tail", "the quarter of species poorest in training images"),
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
                f"{tier} fewest images",
                f"Fewest training images in {words}.",
            ),
            _count(
                "class_imbalance",
                f"{tier}_max_train_imgs",
                f"{tier} most images",
                f"Most training images in {words}.",
            ),
        ]
    for key, label in (("AP_50", "AP@.5"), ("AP_50_95", "AP@[.5:.95]")):
        rows += [
            Metric(
                "class_imbalance",
                f"head_minus_tail_{key}",
                f"head minus tail {label}",
                f"Mean {label} of head species minus that of tail species; nearest 0 is best: rare species are served alike.",
                low=-1.0,
                better="nearest 0",
            ),
            Metric(
                "class_imbalance",
                f"{key}_train_count_correlation",
                f"r({label}, training images)",
                f"Pearson correlation over species of {label} with training images; nearest 0 is best.",
                unit="r",
                low=-1.0,
                better="nearest 0",
            ),
        ]
    return rows


# fmt: off
METRICS: tuple[Metric, ...] = (
    _count("prediction_density", "n_predictions", "boxes", "Predictions that were scored."),
    _count("prediction_density", "n_gt", "specimens", "Scored specimens (crowd left out)."),
    _count("prediction_density", "n_images", "images", "Images of the split."),
    Metric("prediction_density", "boxes_per_gt", "boxes per specimen", "Predictions per scored specimen.", "ratio", 0.0, None, "neither"),
    Metric("prediction_density", "boxes_per_image", "boxes per image", "Predictions per image.", "ratio", 0.0, None, "neither"),
    *_suite("coco", "", "COCO"),
    *_suite("class_agnostic", "class-agnostic ", "benchmark"),
    Metric("calibration", "ECE", "expected calibration error", "Distance of mean confidence from the share of hits in each of ten bins, weighted by boxes; crowd left out.", better="lower"),
    Metric("calibration", "mean_confidence", "mean confidence", "Mean confidence of hits and false positives.", better="neither"),
    _count("calibration", "n_predictions", "boxes judged", "Hits and false positives (boxes on crowd left out)."),
    _count("hierarchical", "n_matched", "hits", "Detections that took a scored specimen."),
    Metric("hierarchical", "correct_species", "right species", "Share of hits with the right species name."),
    *_agreement("hierarchical", "hits"),
    *_imbalance(),
    _count("decomposition", "n_gt", "specimens", "Scored specimens."),
    _count("decomposition", "n_matched_tp", "specimens found", "Scored specimens taken by a detection."),
    Metric("decomposition", "detection_recall", "detection recall", "Share of specimens found, no cap on boxes; boxes named as a species that the split does not list are left out, all others count whatever their name."),
    Metric("decomposition", "detection_recall_open_vocabulary", "detection recall, any name", "Share of specimens found when boxes of unlisted species count too: what was found but named as a species outside the split.", standard="ours"),
    Metric("decomposition", "classification_given_detection_acc", "species accuracy given detection", "Share of found specimens with the right name."),
    Metric("decomposition", "acc_genus_given_det", "genus accuracy given detection", "Share of found specimens in the right genus."),
    Metric("decomposition", "acc_tribe_given_det", "tribe accuracy given detection", "Share of found specimens in the right tribe."),
    Metric("decomposition", "species_recall", "species recall", "Share of specimens found and rightly named."),
    Metric("decomposition", "genus_recall", "genus recall", "Share of specimens found and named in the right genus."),
    Metric("decomposition", "tribe_recall", "tribe recall", "Share of specimens found and named in the right tribe."),
    Metric("decomposition", "localisation_loss", "lost to localisation", "Share of specimens not found.", better="lower", standard="ours"),
    Metric("decomposition", "classification_loss", "lost to naming", "Share of specimens found but wrongly named.", better="lower"),
    Metric("decomposition", "joint_AP_50", "joint AP@.5", "COCO AP@.5: found and rightly named."),
    Metric("decomposition", "detection_only_AP_50", "detection-only AP@.5", "Class-agnostic AP@.5; duplicates under other names lower it, so it is no upper bound."),
    Metric("decomposition", "classification_loss_ratio", "classification loss ratio", "1 - joint AP@.5 / detection-only AP@.5; negative where duplicates depress the second. Read the loss to naming instead.", low=None, better="lower"),
    Metric("decomposition", "mean_confidence_matched", "mean confidence of hits", "Mean confidence of hits.", better="neither", standard="ours"),
    Metric("decomposition", "median_iou_matched", "median IoU of hits", "Median IoU of hits with their specimens.", standard="ours"),
    _count("ood_by_band", "n_species", "species", "Species of the band with an annotation."),
    _count("ood_by_band", "n_annotations", "annotations", "Annotations of the band."),
    _count("ood_by_band", "n_images", "images", "Images that hold the band."),
    Metric("ood_by_band", "class_agnostic_AP_50", "class-agnostic AP@.5", "AP@.5 on the band's specimens, species ignored."),
    Metric("ood_by_band", "class_agnostic_AP_50_95", "class-agnostic AP@[.5:.95]", "AP@[.5:.95] on the band's specimens, species ignored."),
    Metric("ood_by_band", "class_agnostic_AR_100", "class-agnostic AR@100", "AR@100 on the band's specimens, species ignored."),
    _count("ood_by_band", "n_matched_tp", "hits", "Hits on the band's specimens."),
    *_agreement("ood_by_band", "the band's hits"),
    Metric("ood_by_band", "mean_confidence_matched", "mean confidence of hits", "Mean confidence of the band's hits.", better="neither"),
    Metric("ood_by_band", "mean_confidence_all_preds", "mean confidence of all boxes", "Mean confidence of every box on the band's images.", better="neither"),
    _count("density", "n_images", "images", "Images of the stratum with a scored specimen.", "ours"),
    _count("density", "n_images_with_tp", "images with a hit", "Images of the stratum with a hit.", "ours"),
    _count("density", "n_gt", "specimens", "Scored specimens of the stratum.", "ours"),
    _count("density", "n_matched_tp", "hits", "Hits of the stratum.", "ours"),
    Metric("density", "recall", "detection recall", "Share of the stratum's specimens found.", standard="ours"),
    Metric("density", "classification_given_detection_acc", "species accuracy given detection", "Share of the stratum's hits rightly named.", standard="ours"),
    Metric("density", "species_recall", "species recall", "Share of the stratum's specimens found and rightly named.", standard="ours"),
    Metric("density", "image_mean_recall", "detection recall (mean over images)", "Mean over images of the share found.", standard="ours"),
    Metric("density", "image_mean_classification_given_detection_acc", "species accuracy (mean over images)", "Mean over images with a hit of the share rightly named.", standard="ours"),
    Metric("density", "image_mean_species_recall", "species recall (mean over images)", "Mean over images of the share found and rightly named.", standard="ours"),
    _count("chance", "n_misidentified", "wrong names", "Hits with a wrong species name.", "ours"),
    *(
        metric
        for rank in ("genus", "tribe")
        for metric in (
            Metric("chance", f"observed_{rank}", f"wrong names in the right {rank}", f"Share of wrongly named hits in the right {rank}.", standard="ours"),
            Metric("chance", f"expected_{rank}", f"right {rank} by chance", "The same share if wrong names fell as often as each name is given.", better="neither", standard="ours"),
            Metric("chance", f"enrichment_{rank}", f"{rank} enrichment", f"Observed over expected share in the right {rank}.", "ratio", 0.0, None, "neither", "ours"),
        )
    ),
    _count("detection_cap", "n_images_over_100", "images over the cap", "Images with more than 100 boxes.", "ours"),
    _count("detection_cap", "n_detections_over_100", "boxes over the cap", "Boxes beyond the first 100 of their image.", "ours"),
    Metric("detection_cap", "AR_100", "class-agnostic AR@100", "Class-agnostic recall with 100 boxes an image.", standard="ours"),
    Metric("detection_cap", "AR_300", "class-agnostic AR@300", "Class-agnostic recall with 300 boxes an image.", standard="ours"),
    Metric("detection_cap", "AR_uncapped", "class-agnostic AR without a cap", "Class-agnostic recall with every box.", standard="ours"),
    Metric("operating_point", "confidence", "confidence cut", "Boxes below this confidence are put aside.", better="neither", standard="ours"),
    _count("operating_point", "n_detections", "boxes kept", "Hits and false positives at or above the cut.", "ours"),
    Metric("operating_point", "precision", "precision", "Share of kept boxes that hit a specimen.", standard="ours"),
    Metric("operating_point", "recall", "recall", "Share of specimens hit by a kept box.", standard="ours"),
    Metric("operating_point", "F1", "F1", "Harmonic mean of precision and recall.", standard="ours"),
    Metric("operating_point", "species_recall", "species recall", "Share of specimens hit and rightly named by a kept box.", standard="ours"),
    Metric("operating_point", "false_positives_per_image", "false alarms per image", "Kept boxes that hit nothing, per image.", "per image", 0.0, None, "lower", "ours"),
    Metric("per_species", "AP_50", "AP@.5", "The species' AP at IoU 0.50.", standard="COCO"),
    Metric("per_species", "AP_50_95", "AP@[.5:.95]", "The species' AP, mean over the IoU thresholds.", standard="COCO"),
    _count("per_species", "n_gt", "specimens", "Scored specimens of the species."),
    _count("per_species", "n_matched_tp", "found", "Specimens of the species found.", "ours"),
    _count("per_species", "n_correct_species", "rightly named", "Specimens found and rightly named.", "ours"),
    _count("per_species", "n_correct_genus", "right genus", "Specimens found and named in the right genus.", "ours"),
    Metric("summary", "photography_robustness_gap_AP_50", "photography gap AP@.5", "AP@.5 in distribution minus on field photographs.", low=-1.0, better="lower"),
    Metric("summary", "photography_robustness_gap_AP_50_95", "photography gap AP@[.5:.95]", "AP@[.5:.95] in distribution minus on field photographs.", low=-1.0, better="lower"),
    Metric("summary", "photography_robustness_gap_AP_50_shared_species", "photography gap AP@.5, shared species", "Mean over species scored on both of the AP@.5 difference.", low=-1.0, better="lower"),
    Metric("summary", "photography_robustness_gap_AP_50_95_shared_species", "photography gap AP@[.5:.95], shared species", "Mean over species scored on both of the AP@[.5:.95] difference.", low=-1.0, better="lower"),
    _count("summary", "n_shared_species_iid_inat", "shared species", "Species scored in distribution and on field photographs."),
    Metric("summary", "species_generalization_gap_AR_100", "generalization gap AR@100", "Class-agnostic AR@100 in distribution minus on unseen species.", low=-1.0, better="lower"),
    Metric("summary", "species_generalization_gap_AP_50", "generalization gap AP@.5", "Class-agnostic AP@.5 in distribution minus on unseen species.", low=-1.0, better="lower"),
    Metric("summary", "confidence_drop_OOD", "confidence drop", "Mean confidence in distribution minus on unseen species.", low=-1.0),
    Metric("summary", "ood_band_gap_AP_50", "band gap AP@.5", "Class-agnostic AP@.5, near_genus minus far_tribe.", low=-1.0, better="lower"),
    Metric("summary", "ood_band_gap_AR_100", "band gap AR@100", "Class-agnostic AR@100, near_genus minus far_tribe.", low=-1.0, better="lower"),
    Metric("summary", "ood_band_gap_correct_genus", "band gap right genus", "Share of hits in the right genus, near_genus minus far_tribe.", low=-1.0, better="neither"),
    Metric("summary", "ood_band_gap_correct_tribe", "band gap right tribe", "Share of hits in the right tribe, near_genus minus far_tribe.", low=-1.0, better="neither"),
    Metric("summary", "ood_band_gap_confidence", "band gap confidence", "Mean confidence of hits, near_genus minus far_tribe.", low=-1.0, better="neither"),
    Metric("summary", "novelty_det_AUROC", "novelty AUROC", "How well 1 - confidence tells hits on unseen species from hits in distribution; 0.5 is chance."),
    Metric("summary", "novelty_det_FPR@95TPR", "novelty FPR at 95 % recall", "Share of known hits flagged when 95 % of novel hits are.", better="lower"),
    Metric("summary", "novelty_known_mean_conf", "mean confidence of known hits", "Mean confidence of hits in distribution.", better="neither"),
    Metric("summary", "novelty_novel_mean_conf", "mean confidence of novel hits", "Mean confidence of hits on unseen species.", better="neither"),
    _count("summary", "n_known_tp", "known hits", "Hits in distribution."),
    _count("summary", "n_novel_tp", "novel hits", "Hits on unseen species."),
    *(
        metric
        for band in BAND_LABEL
        for metric in (
            Metric("summary", f"novelty_det_AUROC_{band}", f"novelty AUROC, {band}", f"Novelty AUROC of the {band} species' hits."),
            Metric("summary", f"novelty_novel_mean_conf_{band}", f"mean confidence of novel hits, {band}", f"Mean confidence of the {band} species' hits.", better="neither"),
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
"""(block, alias, key): the benchmark evaluator's spellings, written in summary.json alone."""

METRICS += tuple(
    Metric(
        block,
        alias,
        f"{original.label} (alias)",
        f"The benchmark evaluator's name of {key}.",
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
    """One metric of the sweep's tables: ``name`` is the column stem, ``path`` where it stands.

    ``path`` starts at the top of ``<model>_summary.json``; its parts are dict keys.
    """

    name: str
    path: tuple[str, ...]
    metric: Metric
    split: str | None

    @property
    def label(self) -> str:
        """Label with its split, ready for an axis or a table."""
        if self.split is None:
            return self.metric.label
        place = SPLIT_LABEL[self.split]
        band = self.path[4] if self.metric.block == "ood_by_band" else None
        return f"{self.metric.label}, {place}{f', {BAND_LABEL[band]}' if band else ''}"


def _curve(split: str, block: str, key: str, name: str | None = None) -> CurveMetric:
    return CurveMetric(
        f"{SPLIT_PREFIX[split]}_{name or key}",
        ("per_split", split, block, key),
        BY_PATH[f"{block}.{key}"],
        split,
    )


def _curve_metrics() -> tuple[CurveMetric, ...]:
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
                "species_recall",
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
"""The three numbers that every report gives, as names of ``CURVE_METRICS``."""
