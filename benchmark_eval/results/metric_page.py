"""Generates ``docs/metrics.md`` from the registry of metrics."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.results.detections_csv import DETECTION_MEANINGS
from benchmark_eval.results.evidence import COLUMNS, EVIDENCE_VERSION, UNDEFINED
from benchmark_eval.results.registry import CURVE_METRICS, HEADLINE, METRICS, Metric
from benchmark_eval.results.schema import ERROR_TYPES

_FAMILIES = {
    "prediction_density": (
        "Prediction density",
        "Counts of detections and specimens. Many detections per specimen are normal at a low "
        "confidence threshold and do not lower AP by themselves.",
    ),
    "coco": (
        "COCO suite",
        "The metrics of pycocotools, averaged over species. On unseen species they are near 0 by "
        "construction, because no detection can have the correct species.",
    ),
    "class_agnostic": (
        "Class-agnostic suite",
        "The same twelve metrics with all categories merged into one. They measure whether beetles "
        "are detected, regardless of species.",
    ),
    "calibration": (
        "Calibration",
        "Confidence compared with precision (fraction of true positives), regardless of species.",
    ),
    "hierarchical": (
        "Taxonomic agreement",
        "Fractions of true positives with the correct species, genus, tribe and subfamily. "
        "The fractions are cumulative: the correct species implies the correct genus. A blank rank "
        "never agrees.",
    ),
    "class_imbalance": (
        "Class imbalance",
        "Species are ranked by their number of training images: the lowest quarter is the tail, "
        "the highest quarter is the head, and the rest is medium.",
    ),
    "decomposition": (
        "Detection versus identification",
        "Where specimens are lost: missed, or detected but misidentified.",
    ),
    "ood_by_band": (
        "Unseen species by taxonomic distance",
        "semantic_ood only: each band is evaluated on its own specimens and the images that "
        "contain them. Bands: `near_genus`, `mid_tribe`, `far_tribe`.",
    ),
    "density": (
        "Density strata",
        "Images grouped by their number of specimens, including crowd. Strata: `1`, `2 to 10`, "
        "`>10` and `>1`; on semantic_ood also for each band, under `by_band.<band>.<stratum>`.",
    ),
    "chance": (
        "Misidentifications against chance",
        "Whether misidentified specimens are assigned a related species more often than expected "
        "by chance.",
    ),
    "detection_cap": (
        "Detection cap",
        "COCO evaluates at most 100 detections per image; some images contain more specimens.",
    ),
    "operating_point": (
        "Operating points",
        "Results at three confidence thresholds (that of the best F1, 0.25 and 0.50) and, under "
        "`curve` (JSON only), lists over 101 thresholds. The dot in `at_0.25` and `at_0.50` is "
        "part of the key.",
    ),
    "errors": (
        "Error types",
        "What is wrong with the detections, by type (table below). On semantic_ood species is "
        "ignored, so there are no wrong names. The gains `dAP_50` of single types do not add up.",
    ),
    "reliability": (
        "Reliability",
        "Confidence as the probability of an event, in ten bins with equally many detections. "
        "Events: `detected` (the detection is a true positive), `identified` (its species is "
        "correct, given that), `detected_and_identified` (both); on semantic_ood only the first. "
        "`all` has all detections, `operating` those at and above the operating threshold. The "
        "lists `edges`, `n_in_bin`, `mean_confidence` and `observed` are in JSON only; empty bins "
        "(tied confidences) are omitted.",
    ),
    "per_species": (
        "Per species",
        "One entry for each category that a split lists, keyed by its id; also one row each in "
        "`<model>_per_species.csv`.",
    ),
    "summary": (
        "Across splits",
        "Gaps between splits, and separation of known from unseen species, under `summary`.",
    ),
}
PLACES = {
    "ood_by_band": ("by_band.<band>",),
    "density": ("strata.<stratum>",),
    "operating_point": ("best_F1", "at_0.25", "at_0.50"),
    "per_species": ("<category_id>",),
    "errors": ("<type>",),
    "reliability": ("<event>.all", "<event>.operating"),
}
_WITHOUT_PLACE = ("errors.background_near_crowd", "errors.on_crowd")
"""Metrics that stand directly under their family."""
"""Keys between a family and its metrics, if any."""
_MATCHING = """The metrics are based on two matchings of detections to specimens:

- **AP and AR** use COCO matching with its ten IoU thresholds and its cap of 100 detections per
  image (`detection_cap` varies the cap).
- **All other metrics** use the *localisation matching*, which ignores species and has no cap. In
  each image, in order of descending confidence (file order for ties), each detection matches the
  unmatched specimen with the highest IoU, if that is at least `iou` (a config key, default 0.5);
  on equal IoU, the first one in the file."""
_TERMS = (
    ("true positive", "A detection matched to a scored specimen, whatever its predicted species."),
    ("detected", "A scored specimen matched to a detection. One per true positive."),
    ("missed", "A scored specimen without a match."),
    ("correctly identified", "A detected specimen whose predicted species is correct."),
    ("misidentified", "A detected specimen whose predicted species is wrong."),
    (
        "ignored",
        "A detection without a match that has an IoU of at least `iou` with a crowd region: "
        "neither true nor false positive.",
    ),
    ("false positive", "Any other detection without a match."),
    (
        "out-of-vocabulary",
        "A detection of a species that the split does not list (iid_test and inat_test). Excluded "
        "before any metric, except `*_open_vocabulary`.",
    ),
    (
        "scored, crowd",
        "Crowd annotations (`iscrowd` = 1) are real specimens that are not scored: detections on "
        "them are ignored. All other specimens are scored.",
    ),
    (
        "near, mid, far",
        "Unseen species by their closest trained relative: in the same genus (near), in the same "
        "tribe but another genus (mid), in another tribe (far).",
    ),
)
_REPEATED = """`ood_by_band` repeats both matchings with the specimens of each band only."""
_CONFUSIONS = """The most frequent confusions: at most ten pairs of species, sorted by descending
count, then by category ids. They are a list under `per_split.<split>.confusions`, in JSON only
(`<model>_report.txt` names the most frequent one, or says that several are tied). If many pairs
occur once, the choice among them is arbitrary.

| Key | Meaning |
| :-- | :-- |
| `gt_species`, `pred_species` | The true and the predicted species. |
| `n` | Number of detected specimens of the true species with this predicted species. |
| `n_matched_tp` | Number of detected specimens of the true species. |
| `same_genus` | Whether the two species are congeners. |"""
_OPERATING = """**The operating threshold** of a model is the confidence of the best F1 on iid_test.
It is used on every split: choosing another one on each split would use its ground truth. The option
`operating_confidence` sets it instead. `operating_threshold` in `<model>_summary.json` holds its
value and `source`. It is undefined (`null`) if iid_test is not scored, or without detections or
scored specimens on iid_test; values that depend on it are then empty."""
_ERROR_TYPES = (
    ("correct", "A true positive with the correct species; on semantic_ood any true positive."),
    ("wrong_name", "A true positive with a wrong species: the sum of the next three."),
    ("wrong_name_congener", "The predicted species is of the same genus."),
    ("wrong_name_same_tribe", "The predicted species is of the same tribe, but another genus."),
    ("wrong_name_other", "Any other wrong species."),
    (
        "duplicate",
        "Unmatched, with an IoU of at least `iou` with a specimen that another detection matched.",
    ),
    (
        "poor_box",
        "Unmatched, 0.1 <= IoU < `iou` with a specimen of the predicted species; on semantic_ood "
        "of any species.",
    ),
    ("both", "Unmatched, 0.1 <= IoU < `iou` with a specimen of another species only."),
    ("background", "Unmatched, and none of these."),
    ("missed", "A specimen without a true positive."),
)
_CLASS_AWARE = """Each detection that is not ignored on a crowd region has exactly one type, the
first that applies, so that `correct` + `wrong_name` + `missed` is the number of specimens.

**AP@.5 gained.** AP is not based on the localisation matching: a detection with the correct species
can match a specimen although a detection of another species with a higher confidence covers it.
`n_class_aware` and `dAP_50` therefore follow the matching behind AP@.5 at IoU 0.50, and the
definitions of TIDE (Bolya et al. 2020). Every unmatched detection with an IoU of at least 0.50 with
a specimen of another species is a wrong name there, so these counts can be far larger. The repairs:
the best-scored wrong name or poor box on a specimen without a match becomes a true positive; all
other errors of the type are removed; missed specimens (without any of these) are removed from the
ground truth. Without crowd regions they equal those of the package `tidecv` 1.0.1, with these
differences:"""
_TIDE = (
    (
        "Mean AP",
        "over species with specimens or detections",
        "over species with scored specimens, as in AP@.5",
    ),
    ("Cap", "100 detections per image", "100 per image and species, as in AP@.5"),
    ("Equal IoU with two specimens", "the first one matches", "the last one, as in AP@.5"),
    ("Tied confidences", "repaired detections come first", "the order does not change"),
    (
        "Crowd regions",
        "detections on them have a type",
        "ignored as in AP@.5; those with an IoU of at least 0.50 with any region have no type",
    ),
)
_BETTER = {
    "higher": "higher is better",
    "lower": "lower is better",
    "nearest 0": "nearest 0 is best",
    "neither": "",
}
_ORIGIN = {
    "COCO": "COCO (pycocotools)",
    "VOC": "PASCAL VOC",
    "benchmark": "the benchmark's evaluator",
    "ours": "ours",
}


def render_page() -> str:
    """The text of ``docs/metrics.md``."""
    lines = [
        "# Metrics",
        "",
        "<!-- generated by `benchmark-eval catalogue`; "
        "edit benchmark_eval/results/registry.py instead -->",
        "",
        "Every reported metric, by family. Keys are found in `<model>_summary.json` under "
        "`per_split.<split>.<family>` (`summary` at the top level) and in `<model>_summary.csv` "
        "in the column `metric`, with the category `<family>`. An undefined value is `null` in "
        "JSON and an empty cell "
        f"in CSV. Splits: {', '.join(f'`{split}`' for split in TEST_SPLITS)}.",
        "",
        "The three headline metrics: "
        + ", ".join(f"`{'.'.join(m.path[1:])}`" for m in CURVE_METRICS if m.name in HEADLINE)
        + ".",
        "",
        "## Matching and terms",
        "",
        *_MATCHING.splitlines(),
        "",
        "| Term | Meaning |",
        "| :-- | :-- |",
        *(f"| {term} | {meaning} |" for term, meaning in _TERMS),
        "",
        *_REPEATED.splitlines(),
        "",
        *_OPERATING.splitlines(),
        "",
    ]
    own = [metric for metric in METRICS if metric.alias_of is None]
    for family, metrics in groupby(own, key=lambda metric: metric.block):
        title, text = _FAMILIES[family]
        lines += [f"## {title}: `{family}`", "", text, "", *_table(list(metrics)), ""]
        if family == "errors":
            lines += _error_types()
        if family == "chance":
            lines += ["## Confusions: `confusions`", "", *_CONFUSIONS.splitlines(), ""]
    lines += [
        "## Aliases",
        "",
        "The benchmark's evaluator uses other names for some keys. `<model>_summary.json` contains "
        "both names; all other files contain only the key.",
        "",
        "| Family | Alias | Key |",
        "| :-- | :-- | :-- |",
        *(f"| `{m.block}` | `{m.key}` | `{m.alias_of}` |" for m in METRICS if m.alias_of),
        "",
        *_detections(),
        *_evidence(),
        "## Columns of the sweep tables",
        "",
        "`learning_curves.csv` has `<name>_mean`, `<name>_std`, `<name>_n`, `<name>_ci95_low` and "
        "`<name>_ci95_high` for each of these names; `models.csv` has the value of each model.",
        "",
        "| Name | Metric | Path in `<model>_summary.json` |",
        "| :-- | :-- | :-- |",
        *(f"| `{m.name}` | {m.label} | `{'.'.join(m.path)}` |" for m in CURVE_METRICS),
    ]
    return "\n".join(lines) + "\n"


def _error_types() -> list[str]:
    """The definitions of the error types."""
    return [
        "| Type | By the localisation matching (`n`, `per_100_images`, `detections.csv`) |",
        "| :-- | :-- |",
        *(f"| `{name}` | {meaning} |" for name, meaning in _ERROR_TYPES),
        "",
        *_CLASS_AWARE.splitlines(),
        "",
        "| | tidecv | here |",
        "| :-- | :-- | :-- |",
        *(f"| {what} | {tide} | {here} |" for what, tide, here in _TIDE),
        "",
    ]


def _detections() -> list[str]:
    """The columns of detections.csv."""
    return [
        "## Columns of `<model>_detections.csv`",
        "",
        "`detections: hits` (default): one row per true positive, by split, ascending image id and "
        "descending confidence. `detections: all`: also false positives and missed specimens, and "
        "the column `error_type`. `detections: none`: no file. Detections ignored on crowd regions "
        "have no row.",
        "",
        "| Column | Meaning |",
        "| :-- | :-- |",
        *(f"| `{name}` | {meaning} |" for name, meaning in DETECTION_MEANINGS.items()),
        "",
    ]


def _evidence() -> list[str]:
    """The arrays of evidence.npz."""
    return [
        "## Arrays of `<model>_evidence.npz`",
        "",
        "Counts and scores of one model from which the statistics of a sweep are computed, for "
        "`numpy.load`. The same inputs give the same bytes. `header` is JSON as bytes: "
        f"`schema_version` ({EVIDENCE_VERSION}), the model, its options, inputs and category "
        "names. `category_ids` has the ids of all categories of the benchmark; species are rows of "
        "it. `score_edges` has the edges of the bins of confidence. Each split has the arrays "
        "below, as `<split>/<array>`. The axis `threshold` has two rows: all detections, and those "
        f"at and above the operating threshold ({UNDEFINED} if it is undefined). Counts of several "
        "models can be added if their `category_ids` are equal.",
        "",
        "| Array | Type | Axes | Meaning |",
        "| :-- | :-- | :-- | :-- |",
        *(
            f"| `{c.name}` | {np.dtype(c.dtype).name} | {', '.join(c.shape)} | {c.meaning} |"
            for c in COLUMNS
        ),
        "",
        f"The axis `error type`: {', '.join(f'`{name}`' for name in ERROR_TYPES)}.",
        "",
    ]


def _table(metrics: list[Metric]) -> list[str]:
    """Rows of the table of a family."""
    head = "| Key | Label | Unit, range | Direction | Origin | Meaning |"
    rows = [
        f"| {keys(m)} | {m.label} | {_range(m)} | {_BETTER[m.better]} | {_ORIGIN[m.standard]} "
        f"| {m.meaning} |"
        for m in metrics
    ]
    return [head, "| :-- " * 6 + "|", *rows]


def keys(metric: Metric) -> str:
    """Every key of a metric under its family."""
    places = None if metric.path in _WITHOUT_PLACE else PLACES.get(metric.block)
    names = [f"{place}.{metric.key}" for place in places] if places else [metric.key]
    return ", ".join(f"`{name}`" for name in names)


def _range(metric: Metric) -> str:
    """Unit and range of a metric."""
    if metric.low is None and metric.high is None:
        return metric.unit
    if metric.high is None:
        return f"{metric.unit}, from {metric.low:g}"
    if metric.low is None:
        return f"{metric.unit}, up to {metric.high:g}"
    return f"{metric.unit}, {metric.low:g} to {metric.high:g}"
