"""``docs/metrics.md``: the catalogue as a page for people, never written by hand."""

from __future__ import annotations

from itertools import groupby

from benchmark_eval.catalogue import CURVE_METRICS, HEADLINE, METRICS, SPLITS, Metric

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
        "semantic_ood only, under `ood_by_band.by_band.<band>`: each band's specimens alone, on "
        "the images that hold them.",
    ),
    "density": (
        "Density strata",
        "By specimens on the image, crowd counted: under `density.strata.<stratum>` 1, 2-10, "
        ">10 and >1; on semantic_ood also under `density.by_band.<band>.<stratum>`.",
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
        "What remains above a confidence cut: at the best F1, at 0.25, at 0.50, and as a curve "
        "over 101 cuts.",
    ),
    "per_species": ("Per species", "One entry for each category that a split lists."),
    "summary": (
        "Across splits",
        "Differences and separations between splits, under `summary`.",
    ),
}
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
        "<!-- written by `benchmark-eval catalogue`; edit benchmark_eval/catalogue.py instead -->",
        "",
        "Every number that is reported, by family. A key stands in `<model>_summary.json` under "
        "`per_split.<split>.<family>`, in `<model>_summary.csv` as metric of category "
        "`<family>`. A value that is not defined is `null` in JSON and an empty cell in CSV. "
        f"Splits: {', '.join(f'`{split}`' for split in SPLITS)}.",
        "",
        "The three headline numbers: "
        + ", ".join(f"`{'.'.join(m.path[1:])}`" for m in CURVE_METRICS if m.name in HEADLINE)
        + ".",
        "",
    ]
    own = [metric for metric in METRICS if metric.alias_of is None]
    for family, metrics in groupby(own, key=lambda metric: metric.block):
        title, words = _FAMILIES[family]
        lines += [f"## {title}: `{family}`", "", words, "", *_table(list(metrics)), ""]
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
        f"| `{m.key}` | {m.label} | {_range(m)} | {_BETTER[m.better]} | {_ORIGIN[m.standard]} "
        f"| {m.meaning} |"
        for m in metrics
    ]
    return [head, "| :-- " * 6 + "|", *rows]


def _range(metric: Metric) -> str:
    if metric.low is None and metric.high is None:
        return metric.unit
    if metric.high is None:
        return f"{metric.unit}, from {metric.low:g}"
    if metric.low is None:
        return f"{metric.unit}, up to {metric.high:g}"
    return f"{metric.unit}, {metric.low:g} to {metric.high:g}"
