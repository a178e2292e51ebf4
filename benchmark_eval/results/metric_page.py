"""``docs/metrics.md``: the catalogue as a page for people, never written by hand."""

from __future__ import annotations

from itertools import groupby

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.results.registry import CURVE_METRICS, HEADLINE, METRICS, Metric

_FAMILIES = {
    "prediction_density": (
        "How many boxes",
        "Counts of predictions and specimens. Many boxes a specimen are normal at a low "
        "confidence threshold and harm no AP by themselves.",
    ),
    "coco": (
        "COCO suite",
        "pycocotools' numbers, species by species. On unseen species they are near zero by "
        "construction: no right name can be predicted.",
    ),
    "class_agnostic": (
        "Class-agnostic suite",
        "The same twelve with every category taken for one: was the beetle found at all?",
    ),
    "calibration": (
        "Calibration",
        "Confidence against the share of boxes that hit a specimen, whatever their name.",
    ),
    "hierarchical": (
        "Taxonomic agreement",
        "Of the boxes that hit a specimen, how many carry a name of the right species, genus, "
        "tribe, subfamily. Cumulative: a right species has the right genus too. Blank ranks "
        "agree with nothing.",
    ),
    "class_imbalance": (
        "Rare and common species",
        "Species ranked by their number of training images, in four quarters.",
    ),
    "decomposition": (
        "Finding against naming",
        "Where specimens are lost: not found, or found and wrongly named.",
    ),
    "ood_by_band": (
        "Unseen species by distance",
        "semantic_ood only: each band's specimens alone, on the images that hold them. Bands: "
        "`near_genus`, `mid_tribe`, `far_tribe`.",
    ),
    "density": (
        "Density strata",
        "By specimens on the image, crowd counted. Strata: `1`, `2 to 10`, `>10` and `>1`; on "
        "semantic_ood also within each band, under `by_band.<band>.<stratum>`.",
    ),
    "chance": (
        "Wrong names against chance",
        "Whether wrong names fall near the right one more often than by chance.",
    ),
    "detection_cap": (
        "What the cap hides",
        "COCO looks at the first 100 boxes of an image; crowded plates hold more.",
    ),
    "operating_point": (
        "Operating points",
        "What remains above a confidence cut: at the best F1, at 0.25, at 0.50, and under `curve` "
        "(JSON alone) as lists over 101 cuts. The dot in `at_0.25` and `at_0.50` is part of the "
        "key.",
    ),
    "per_species": (
        "Per species",
        "One entry for each category that a split lists, by its id; in `<model>_per_species.csv` "
        "a row each.",
    ),
    "summary": (
        "Across splits",
        "Differences and separations between splits, under `summary`.",
    ),
}
PLACES = {
    "ood_by_band": ("by_band.<band>",),
    "density": ("strata.<stratum>",),
    "operating_point": ("best_F1", "at_0.25", "at_0.50"),
    "per_species": ("<category_id>",),
}
"""What stands between a family and a key, where something does."""
_MATCHING = """Two matchings of boxes with specimens lie behind the numbers:

- **AP and AR**, wherever they stand, use COCO's, with its own ten IoU thresholds and its cap of 100
  boxes an image (`detection_cap` moves the cap).
- **Everything else** uses the *localisation matching*, which does not look at names and has no cap.
  In each image boxes take turns by falling confidence, in file order where it is equal. A box
  *takes* the specimen with the highest IoU of those that are still free, if that is at least `iou`
  (a key of the config, 0.5 unless you change it); on equal IoU the first in the file."""
_WORDS = (
    ("hit", "A box that took a scored specimen, whatever species it names."),
    ("found", "A scored specimen that a box took. There are as many of these as hits."),
    ("rightly named", "A found specimen whose box names its species."),
    (
        "left out",
        "A box that took nothing and has an IoU of at least `iou` with a crowd region: neither hit "
        "nor false positive.",
    ),
    ("false positive", "Any other box that took nothing."),
    (
        "scored, crowd",
        "Crowd (`iscrowd` = 1) are specimens that are there but not scored: nothing is gained or "
        "lost by them. All others are scored.",
    ),
    (
        "near, mid, far",
        "Of unseen species: a trained species shares the genus; the tribe at most; neither.",
    ),
)
_REPEATED = """`ood_by_band` repeats both matchings with each band's specimens alone. On
iid_test and inat_test boxes named as a species that the split does not list are left out before
anything is counted; `detection_recall_open_vocabulary` alone keeps them."""
_CONFUSIONS = """The most frequent wrong names, most frequent first, then by category id: at most
ten pairs of species, a list under `per_split.<split>.confusions`, in JSON alone
(`<model>_report.txt` shows those that occur twice or more). Where many pairs occur once, which of
these are listed means nothing.

| Key | Meaning |
| :-- | :-- |
| `gt_species`, `pred_species` | The specimen's species, and the one that its box named. |
| `n` | How many found specimens of the true species were named so. |
| `n_matched_tp` | How many specimens of the true species were found. |
| `same_genus` | Whether the two are congeners. |"""
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
        "<!-- written by `benchmark-eval catalogue`; "
        "edit benchmark_eval/results/registry.py instead -->",
        "",
        "Every number that is reported, by family. A key stands in `<model>_summary.json` under "
        "`per_split.<split>.<family>` (`summary` at the top), in `<model>_summary.csv` as metric "
        "of category `<family>`. A value that is not defined is `null` in JSON and an empty cell "
        f"in CSV. Splits: {', '.join(f'`{split}`' for split in TEST_SPLITS)}.",
        "",
        "The three headline numbers: "
        + ", ".join(f"`{'.'.join(m.path[1:])}`" for m in CURVE_METRICS if m.name in HEADLINE)
        + ".",
        "",
        "## What a hit is",
        "",
        *_MATCHING.splitlines(),
        "",
        "| Word | Meaning |",
        "| :-- | :-- |",
        *(f"| {word} | {meaning} |" for word, meaning in _WORDS),
        "",
        *_REPEATED.splitlines(),
        "",
    ]
    own = [metric for metric in METRICS if metric.alias_of is None]
    for family, metrics in groupby(own, key=lambda metric: metric.block):
        title, words = _FAMILIES[family]
        lines += [f"## {title}: `{family}`", "", words, "", *_table(list(metrics)), ""]
        if family == "chance":
            lines += ["## Who is taken for whom: `confusions`", "", *_CONFUSIONS.splitlines(), ""]
    lines += [
        "## Other spellings",
        "",
        "The benchmark's evaluator spells some keys otherwise. `<model>_summary.json` holds "
        "them too; nothing else does.",
        "",
        "| Family | Key | The same as |",
        "| :-- | :-- | :-- |",
        *(f"| `{m.block}` | `{m.key}` | `{m.alias_of}` |" for m in METRICS if m.alias_of),
        "",
        "## Columns of a sweep's tables",
        "",
        "`learning_curves.csv` has `<name>_mean`, `<name>_std`, `<name>_n`, `<name>_ci95_low` and "
        "`<name>_ci95_high` for each of these names, `models.csv` the values behind them.",
        "",
        "| Name | What it is | Where it stands in `<model>_summary.json` |",
        "| :-- | :-- | :-- |",
        *(f"| `{m.name}` | {m.label} | `{'.'.join(m.path)}` |" for m in CURVE_METRICS),
    ]
    return "\n".join(lines) + "\n"


def _table(metrics: list[Metric]) -> list[str]:
    head = "| Key | Label | Unit, range | Direction | Origin | Meaning |"
    rows = [
        f"| {keys(m)} | {m.label} | {_range(m)} | {_BETTER[m.better]} | {_ORIGIN[m.standard]} "
        f"| {m.meaning} |"
        for m in metrics
    ]
    return [head, "| :-- " * 6 + "|", *rows]


def keys(metric: Metric) -> str:
    """Where a metric stands under its family, every place named."""
    places = PLACES.get(metric.block)
    names = [f"{place}.{metric.key}" for place in places] if places else [metric.key]
    return ", ".join(f"`{name}`" for name in names)


def _range(metric: Metric) -> str:
    if metric.low is None and metric.high is None:
        return metric.unit
    if metric.high is None:
        return f"{metric.unit}, from {metric.low:g}"
    if metric.low is None:
        return f"{metric.unit}, up to {metric.high:g}"
    return f"{metric.unit}, {metric.low:g} to {metric.high:g}"
