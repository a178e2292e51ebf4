"""The charts of the page, with the controls that choose what each shows.

A control is one of

- ``filter``: rows with one value of a column; its choices are the values that the earlier controls
  leave,
- ``set``: rows with any of the checked values,
- ``map``: which columns stand for ``value``, ``low``, ``high``, ``x`` ..., with the words for
  ``@x`` and ``@y`` in the chart.

The script applies them in order and draws the rows that remain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmark_eval.inputs.manifest import budget_text
from benchmark_eval.protocol import OOD_BANDS, REGIMES
from benchmark_eval.report.facts import Facts
from benchmark_eval.report.looks import ERROR_FILL, QUANTITY_LOOK, Look
from benchmark_eval.report.lookup import best_threshold
from benchmark_eval.report.page import charts, rows
from benchmark_eval.report.page.charts import LEVEL, TOOLTIP, Scale, Spec
from benchmark_eval.results.registry import BAND_LABEL, HEADLINE, SPLIT_LABEL

Control = dict[str, Any]

SHARE_LABEL = {
    "detection_recall": "detection recall",
    "species_recall": "species recall",
    "classification_given_detection_acc": "species accuracy given detection",
}


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart.

    ``table`` names its rows; ``where`` keeps rows with given values. ``specs`` are its
    specifications by the ``spec`` of a chosen option, "" without one. ``y`` is the title of the
    vertical axis, with the values of controls in braces. ``series`` are the columns that tell
    lines apart. ``columns`` are those of the table below the chart. ``empty`` says why there is
    nothing to show. ``at`` is a slider over one column. ``widest`` is the largest width of a facet
    and ``labels`` that of the labels left of it in px, ``most`` the number of facets in a row.
    """

    id: str
    title: str
    about: str
    table: str
    controls: Sequence[Control]
    specs: Mapping[str, Spec]
    series: Sequence[str]
    columns: Sequence[tuple[str, str]]
    y: str = ""
    empty: str = ""
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    at: Mapping[str, Any] | None = None
    widest: int = 420
    most: int = 3
    details: bool = False
    labels: int = 0


def choice(id_: str, label: str, column: str, default: str | None = None, **more: Any) -> Control:
    """Rows with one value of a column."""
    return {
        "id": id_,
        "label": label,
        "kind": "filter",
        "field": column,
        "default": default,
        **more,
    }


def several(id_: str, label: str, column: str) -> Control:
    """Rows with any of the checked values of a column."""
    return {"id": id_, "label": label, "kind": "set", "field": column}


def mapping(id_: str, label: str, options: Sequence[Mapping[str, Any]]) -> Control:
    """Which columns are drawn."""
    return {"id": id_, "label": label, "kind": "map", "options": list(options)}


def option(
    value: str,
    label: str,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One choice of ``mapping``: columns by their names in the chart, and fixed words."""
    return {
        "value": value,
        "label": label,
        "map": dict(columns or {}),
        "set": dict(words or {}),
        **more,
    }


INTERVALS = mapping(
    "interval",
    "Interval",
    [
        option(
            "both",
            "species and retraining",
            {"low": "b_low", "high": "b_high", "why": "b_why"},
            {"covers": "species and retraining"},
        ),
        option(
            "retraining",
            "retraining",
            {"low": "r_low", "high": "r_high", "why": "r_why"},
            {"covers": "retraining"},
        ),
    ],
)
RETRAINING_ONLY = mapping(
    "interval",
    "Interval",
    [
        option(
            "retraining",
            "retraining",
            {"low": "r_low", "high": "r_high", "why": "r_why"},
            {"covers": "retraining"},
        )
    ],
)
SEEDS_T = mapping(
    "interval",
    "Interval",
    [option("retraining", "retraining (Student's t over seeds)", {}, {"covers": "retraining"})],
)
COSTS = (
    option("images", "training images", {"x": "n_images"}, {}, spec="cost", x="training images"),
    option(
        "specimens",
        "training specimens",
        {"x": "n_specimens"},
        {},
        spec="cost",
        x="training specimens",
    ),
    option(
        "cost",
        "cost at your prices",
        {},
        {},
        spec="cost",
        x="cost at the prices entered",
        price=True,
    ),
)
CONFIGURED = option(
    "price",
    "price (configuration)",
    {"x": "price"},
    {},
    spec="cost",
    x="price, as in the configuration",
)
SCALE = mapping(
    "scale",
    "Scale of costs",
    [
        option("linear", "linear", scale="linear"),
        option("log", "logarithmic", scale="log"),
    ],
)
CONDITION = (("architecture", "Architecture"), ("regime", "Regime"), ("budget", "Budget"))
VALUE = (
    ("value", "Value"),
    ("low", "95 % low"),
    ("high", "95 % high"),
    ("covers", "Interval covers"),
    ("n", "Seeds (n)"),
    ("fixed", "Note"),
    ("source", "Source"),
)
SEED = (("model", "Model"), ("value_text", "Value"), ("seeds", "Seeds (n)"), ("source", "Source"))


def tables(facts: Facts) -> dict[str, list[rows.Row]]:
    """The rows of all charts, by table."""
    data, order = facts.data, rows.budget_order(facts)

    def placed(items: list[rows.Row]) -> list[rows.Row]:
        """With the budget as text, and its position."""
        for row in items:
            regime, budget = str(row["regime"]), str(row.pop("k_or_p"))
            row["budget"] = budget_text(regime, budget)
            row["order"] = order.get((regime, budget), 0)
        return items

    threshold = rows.THRESHOLD_LABEL
    species = [
        {key: value for key, value in row.items() if key not in {"category_id"}}
        for row in placed(rows.fields(data.species_curves, "species_curves.csv", split=SPLIT_LABEL))
    ]
    gains = rows.fields(data.target_gains, "target_gains.csv", split=SPLIT_LABEL)
    for row in gains:
        row["order"] = order.get((REGIMES[2], str(row["k"])), 0)
        row["name"] = BAND_LABEL.get(str(row["name"]), str(row["name"]))
        row["fixed"] = "by construction" if row.pop("by_construction") else ""
        row["n"] = row.pop("n_seeds")
        row["metric"] = rows.TARGET_LABEL.get(str(row["metric"]), str(row["metric"]))
    bands = {**BAND_LABEL, "": rows.ALL_BANDS}
    return {
        "learning": rows.learning(facts),
        "targets": rows.targets(facts),
        "gains": gains,
        "density": rows.density(facts),
        "shares": placed(
            rows.fields(
                data.pooled_shares,
                "pooled_shares.csv",
                split=SPLIT_LABEL,
                band=bands,
                share=SHARE_LABEL,
                stratum={"": "any density"},
            )
        ),
        "errors": [
            row
            for row in placed(
                rows.fields(
                    data.error_types,
                    "error_types.csv",
                    split=SPLIT_LABEL,
                    error_type={name: fill.label for name, fill in ERROR_FILL.items()},
                )
            )
            if row["error_type"] != "wrong_name"  # the sum of the three kinds
        ],
        "thresholds": rows.thresholds(facts),
        "reliability": placed(
            rows.fields(
                data.reliability,
                "reliability.csv",
                split=SPLIT_LABEL,
                event=rows.EVENT_LABEL,
                threshold=threshold,
            )
        ),
        "risk": placed(rows.fields(data.risk_coverage, "risk_coverage.csv", split=SPLIT_LABEL)),
        "novelty": placed(
            rows.fields(data.novelty_histograms, "novelty_histograms.csv", group=BAND_LABEL)
        ),
        "species": species,
        "confusions": placed(
            rows.fields(data.confusions, "confusions.csv", split=SPLIT_LABEL, threshold=threshold)
        ),
        "genera": rows.genera(facts),
    }


def panels(facts: Facts) -> dict[str, list[Panel]]:
    """The charts of each section."""
    best = {name: row.metrics[HEADLINE[0]].mean for name, row in facts.shown.items()}
    names = facts.look.architectures
    scale = charts.by_architecture(names, best)
    by = charts.facet("architecture", names)
    start = _defaults(facts)
    evidence = _evidence(facts)
    return {
        "curves": _curves(facts, scale, start),
        "equal-budget": _equal(facts, by, start),
        "targets": _targets(facts, by),
        "unseen": _unseen(facts, by, start, evidence),
        "losses": _losses(by, start, evidence),
        "confidence": _confidence(facts, scale, by, evidence),
        "species": _species(scale, evidence),
        "genera": _genera(by, evidence),
    }


def _defaults(facts: Facts) -> dict[str, str]:
    lead = facts.lead
    split, metric = rows.metric_place(HEADLINE[0])
    return {
        "split": split,
        "metric": metric,
        "architecture": lead.architecture if lead else "",
        "regime": lead.regime if lead else "",
        "budget": budget_text(lead.regime, lead.k_or_p) if lead else "",
    }


def _evidence(facts: Facts) -> str:
    n, total = len(facts.data.without_evidence), len(facts.data.models)
    if not n:
        return ""
    return (
        f"{n:,} of {total:,} models have no evidence file (<model>_evidence.npz), from which this "
        "is computed: evaluate them again with this version. "
    )


def _axis(facts: Facts, *first: Mapping[str, Any]) -> Control:
    """Costs, with the prices of the configuration if it has any."""
    priced = any(row.price is not None for row in facts.data.budget_curves)
    options = [*first, *COSTS, *([CONFIGURED] if priced else [])]
    return mapping("axis", "Horizontal axis", options)


def _curves(facts: Facts, scale: Scale, start: Mapping[str, str]) -> list[Panel]:
    tips = (*TOOLTIP, *LEVEL)
    regimes = charts.facet("regime", REGIMES)
    seeds = (*TOOLTIP, *SEED)
    budget = charts.curves(
        charts.ordinal("budget", "training budget", "order"),
        scale,
        regimes,
        tips,
        seeds=seeds,
        independent=True,
    )
    cost = charts.curves(
        charts.quantity("x", "@x", type="@scale"), scale, regimes, tips, seeds=seeds
    )
    return [
        Panel(
            "curves",
            "Learning curves",
            "A metric over the training budget, one panel per regime and one line per "
            "architecture: means with intervals, and each seed as a small open point.",
            "learning",
            [
                choice("split", "Split", "split", start["split"]),
                choice("metric", "Metric", "metric", start["metric"]),
                INTERVALS,
                _axis(facts, option("budget", "budget", spec="budget")),
                SCALE,
                several("architectures", "Architectures", "architecture"),
            ],
            {"budget": budget, "cost": cost},
            ("architecture", "regime"),
            [*CONDITION, ("model", "Model"), ("x", "Horizontal axis"), *VALUE],
            y="{metric}, {split}",
            empty="No metric of this sweep has a value.",
        )
    ]


def _equal(facts: Facts, by: Spec, start: Mapping[str, str]) -> list[Panel]:
    cost = charts.curves(
        charts.quantity("x", "@x", type="@scale"), charts.BY_REGIME, by, (*TOOLTIP, *LEVEL)
    )
    return [
        Panel(
            "equal",
            "Regimes over the same cost",
            "A metric over the real cost, one panel per architecture and one line per regime: at "
            "one position on the axis the regimes cost the same.",
            "learning",
            [
                choice("split", "Split", "split", start["split"]),
                choice("metric", "Metric", "metric", start["metric"]),
                INTERVALS,
                _axis(facts),
                SCALE,
            ],
            {"cost": cost},
            ("architecture", "regime"),
            [*CONDITION, ("x", "Horizontal axis"), *VALUE],
            y="{metric}, {split}",
            where={"kind": ["mean"]},
            empty="The costs are unknown: the benchmark has no train.json, and the manifest names "
            "no training annotations.",
        )
    ]


def _targets(facts: Facts, by: Spec) -> list[Panel]:
    others = ("all targets", "all other species")
    x = charts.ordinal("k", "images per target species (k)", "order")
    tips = (("architecture", "Architecture"), ("group", "Species"), ("k", "k"), *LEVEL)
    gain_tips = (
        *(("architecture", "Architecture"), ("name", "Band"), ("k", "k")),
        *(("n_species", "Species"), *LEVEL),
    )
    absent = (
        f"Regime {REGIMES[2]} is not in the manifest."
        if REGIMES[2] not in facts.look.regimes
        else "No target species is scored."
    )
    return [
        Panel(
            "targets",
            "Target species by distance band",
            "AP of the target species of each band, of all targets and of all other species over "
            "the number of images per target species, one panel per architecture. At k = 0 the AP "
            "of targets is 0 by construction.",
            "targets",
            [
                choice("split", "Split", "split", SPLIT_LABEL["iid_test"]),
                choice("metric", "Metric", "metric", rows.TARGET_LABEL["AP_50_95"]),
                SEEDS_T,
                several("groups", "Species", "group"),
            ],
            {"": charts.curves(x, charts.by_band("group", *others), by, tips)},
            ("architecture", "group"),
            [("architecture", "Architecture"), ("group", "Species"), ("k", "k"),
             ("n_species", "Number of species"), *VALUE],
            y="{metric}, {split}",
            empty=absent,
        ),
        Panel(
            "gains",
            "What the images of targets bring",
            "Gain over no images, and the share of the gain of all images that it closes, by "
            "distance band.",
            "gains",
            [
                choice("split", "Split", "split", SPLIT_LABEL["iid_test"]),
                choice("metric", "Metric", "metric", rows.TARGET_LABEL["AP_50_95"]),
                mapping(
                    "show",
                    "Show",
                    [
                        option(
                            "gain", "gain, AP(k) - AP(0)",
                            {"value": "gain", "low": "gain_ci95_low", "high": "gain_ci95_high",
                             "why": "reason", "covers": "covers"},
                        ),
                        option(
                            "closed", "share of the gain of all images",
                            {"value": "share_closed", "low": "share_closed_ci95_low",
                             "high": "share_closed_ci95_high", "why": "reason",
                             "covers": "covers"},
                        ),
                    ],
                ),
            ],
            {"": charts.curves(x, charts.by_band("name"), by, gain_tips)},
            ("architecture", "name"),
            [("architecture", "Architecture"), ("name", "Band"), ("k", "k"),
             ("n_species", "Species"), *VALUE],
            y="{show}",
            where={"level": ["band"]},
            empty=absent,
        ),
    ]  # fmt: skip


def _at_condition(start: Mapping[str, str]) -> list[Control]:
    return [
        choice("regime", "Regime", "regime", start["regime"]),
        choice("budget", "Budget", "budget", start["budget"], last=True),
    ]


def _unseen(facts: Facts, by: Spec, start: Mapping[str, str], evidence: str) -> list[Panel]:
    x = charts.ordinal("stratum", "specimens on the image", rows.STRATA)
    unseen = SPLIT_LABEL["semantic_ood"]
    absent = "" if unseen in _splits(facts) else "Split semantic_ood was not evaluated."
    tips = (
        *TOOLTIP,
        *(("band", "Band"), ("stratum", "Specimens on the image"), ("n_images", "Images")),
        *(("n_specimens", "Specimens"), *LEVEL),
    )
    looks = [*charts.BANDS, Look(rows.ALL_BANDS, "#222222", "D", ":")]
    share_x = charts.ordinal(
        "band", "distance band", [*(BAND_LABEL[band] for band in OOD_BANDS), rows.ALL_BANDS]
    )
    share_x["axis"]["labelExpr"] = "split(datum.label, ' ')[0]"
    share_tips = (
        *TOOLTIP,
        *(("band", "Band"), ("stratum", "Specimens on the image"), ("n_images", "Images")),
        *(("n_specimens", "Specimens"), ("n_species", "Species")),
        *(
            ("n_effective_species", "Effective species"),
            ("no_verdict", "No verdict, because"),
            *LEVEL,
        ),
    )
    strata_looks = [
        Look(label, color, marker, "-")
        for label, color, marker in zip(
            ("any density", *rows.STRATA),
            ("#222222", "#9A9A9A", "#5A5A5A", "#000000"),
            ("D", "o", "s", "^"),
            strict=True,
        )
    ]
    return [
        Panel(
            "density",
            "Bands and density",
            "Recall by the number of specimens on the image and by distance band, one panel per "
            "architecture. Compare bands at equal density only. Points of fewer than 10 images "
            "have no interval and no line.",
            "density",
            [
                choice("split", "Split", "split", unseen),
                choice("metric", "Metric", "metric", "detection recall"),
                *_at_condition(start),
                SEEDS_T,
                several("bands", "Bands", "band"),
            ],
            {"": charts.curves(x, Scale("band", looks), by, tips, line="datum.n_images >= 10")},
            ("architecture", "band"),
            [*CONDITION, ("band", "Band"), ("stratum", "Specimens on the image"),
             ("n_images", "Images"), ("n_specimens", "Specimens"), *VALUE],
            y="{metric}",
            empty="No images by density.",
        ),
        Panel(
            "shares",
            "Shares with unequal species",
            "A share of specimens by distance band and density, as an unweighted mean over species "
            "or pooled over specimens.",
            "shares",
            [
                choice("split", "Split", "split", unseen),
                choice("share", "Share", "share", "detection recall"),
                *_at_condition(start),
                mapping(
                    "weight",
                    "Mean",
                    [
                        option("species", "over species (unweighted)",
                               {"value": "species_mean", "low": "species_mean_ci95_low",
                                "high": "species_mean_ci95_high", "why": "species_mean_reason",
                                "n": "n_seeds"}),
                        option("pooled", "pooled over specimens",
                               {"value": "pooled", "low": "ci95_low", "high": "ci95_high",
                                "why": "reason", "n": "n_seeds"}),
                    ],
                ),
                several("strata", "Specimens on the image", "stratum"),
            ],
            {"": charts.curves(share_x, Scale("stratum", strata_looks), by, share_tips,
                               line="false")},
            ("architecture", "stratum"),
            [*CONDITION, ("band", "Band"), ("stratum", "Specimens on the image"),
             ("n_images", "Images"), ("n_specimens", "Specimens"), ("n_species", "Species"),
             ("n_effective_species", "Effective species"), ("no_verdict", "No verdict, because"),
             *VALUE],
            y="{share}",
            empty=absent or evidence or "No shares.",
        ),
    ]  # fmt: skip


def _splits(facts: Facts) -> set[str]:
    return {SPLIT_LABEL[split] for split in facts.data.inputs.options.get("splits", [])}


def _losses(by: Spec, start: Mapping[str, str], evidence: str) -> list[Panel]:
    labels = {
        "recall": "detection recall",
        "accuracy": "species accuracy given detection",
        "species_recall": "species recall",
    }
    tips = (*TOOLTIP, ("metric", "Metric"), *LEVEL)
    decomposition = charts.curves(
        charts.ordinal("budget", "training budget", "order"),
        charts.by_quantity("metric", labels),
        charts.facet("regime", REGIMES),
        tips,
        independent=True,
        spread=False,
    )
    error_tips = (*TOOLTIP, ("error_type", "Error"), *LEVEL)
    return [
        Panel(
            "decomposition",
            "Detection and identification",
            "Detection recall, species accuracy given detection and their product, species recall. "
            "The distance from 1 down to detection recall is missed; that from there down to "
            "species recall is misidentified.",
            "learning",
            [
                choice("split", "Split", "split", start["split"]),
                choice("architecture", "Architecture", "architecture", start["architecture"]),
                RETRAINING_ONLY,
            ],
            {"": decomposition},
            ("architecture", "regime", "metric"),
            [*CONDITION, ("metric", "Metric"), *VALUE],
            y="share of specimens, {split}",
            where={"kind": ["mean"], "metric": list(labels.values())},
            empty="No split of specimens was evaluated.",
        ),
        Panel(
            "errors",
            "Error types",
            "How often each error occurs at the operating threshold, or what AP@.5 gains if that "
            "type alone is repaired. The gains do not add up.",
            "errors",
            [
                choice("split", "Split", "split", start["split"]),
                *_at_condition(start),
                mapping(
                    "show",
                    "Show",
                    [
                        option(name, label,
                               {"value": name, "low": f"{name}_ci95_retraining_low",
                                "high": f"{name}_ci95_retraining_high", "why": f"{name}_reason",
                                "n": "n_seeds"},
                               {"covers": "retraining"})
                        for name, label in (
                            ("per_100_images", "number per 100 images"),
                            ("dAP_50", "gain of AP@.5 if repaired"),
                        )
                    ],
                ),
            ],
            {"": charts.error_bars(by, error_tips)},
            ("architecture",),
            [*CONDITION, ("error_type", "Error"), *VALUE],
            y="{show}",
            labels=115,
            empty=evidence or "No errors were counted.",
        ),
    ]  # fmt: skip


def _confidence(facts: Facts, scale: Scale, by: Spec, evidence: str) -> list[Panel]:
    iid = SPLIT_LABEL["iid_test"]
    lead = facts.lead
    found = best_threshold(facts.data, lead.architecture) if lead else None
    quantity_tips = (
        *TOOLTIP,
        *(("confidence", "Threshold"), ("n_specimens", "Specimens"), *LEVEL),
    )
    threshold = charts.with_threshold(
        charts.curves(
            charts.quantity("confidence", "confidence threshold"),
            scale,
            charts.facet("quantity", list(rows.QUANTITIES)),
            quantity_tips,
            shared_y=False,
        )
    )
    # one mark per 0.01 would hide the lines
    threshold["spec"]["layer"][2]["transform"].append(
        {"filter": "round(datum.confidence * 100) % 10 === 0"}
    )
    band = threshold["spec"]["layer"][0]
    band["mark"] = {"type": "area", "opacity": 0.15}
    band["encoding"]["opacity"] = {"value": 0.2}
    band["encoding"]["detail"] = {"field": "series", "type": "nominal"}
    reliable = charts.with_diagonal(
        charts.curves(
            charts.quantity("mean_confidence", "mean confidence of the bin", domain=[0, 1]),
            scale,
            by,
            (
                *TOOLTIP,
                ("mean_confidence", "Mean confidence"),
                ("detections", "Detections"),
                *LEVEL,
            ),
            y="@y",
        )
    )
    risk_tips = (
        *TOOLTIP,
        *(("coverage", "Coverage"), ("confidence", "Confidence at least")),
        *(("true_positives", "True positives"), ("n_species", "Species"), *LEVEL),
    )
    histogram = [
        Look("known, correct", QUANTITY_LOOK["recall"].color, "o", "-"),
        Look("known, wrong", QUANTITY_LOOK["accuracy"].color, "s", "--"),
        *charts.BANDS,
    ]
    return [
        Panel(
            "threshold",
            "What a confidence threshold costs",
            "Missed specimens, false alarms per 100 images and specimens that are detected and "
            "correctly identified, over the confidence threshold, for the best condition of each "
            "architecture. Move the slider to read the values at one threshold.",
            "thresholds",
            [choice("split", "Split", "split", iid), SEEDS_T],
            {"": threshold},
            ("architecture", "quantity"),
            [*CONDITION, ("quantity", "Quantity"), ("confidence", "Threshold"),
             ("n_specimens", "Specimens"), *VALUE],
            y=" ",
            at={"field": "confidence", "label": "Confidence threshold", "low": 0, "high": 1,
                "step": 0.01, "default": found.confidence if found else 0.5},
            empty="No split with scored specimens was evaluated.",
        ),
        Panel(
            "reliability",
            "Reliability",
            "How often detections of a confidence are right, in bins of about equally many "
            "detections. On the diagonal, confidence is the frequency.",
            "reliability",
            [
                choice("split", "Split", "split", iid),
                choice("event", "Right means", "event"),
                choice("threshold", "Detections", "threshold", rows.THRESHOLD_LABEL["operating"]),
                mapping("interval", "Interval", [
                    option("covers", "as the table says",
                           {"value": "observed", "low": "ci95_low", "high": "ci95_high",
                            "why": "reason", "detections": "n", "n": "n_seeds"})]),
            ],
            {"": reliable},
            ("architecture",),
            [*CONDITION, ("mean_confidence", "Mean confidence"), ("detections", "Detections"),
             *VALUE],
            y="observed frequency",
            empty=evidence or "No detections.",
        ),
        Panel(
            "risk",
            "Wrong names if only confident ones are given",
            "The share of wrong names if only the most confident true positives get a species "
            "name, with the others unnamed or named by the genus of their label.",
            "risk",
            [
                choice("split", "Split", "split", iid),
                mapping("show", "Show", [
                    option("species", "wrong species, of those named",
                           {"value": "wrong_species", "low": "ci95_low", "high": "ci95_high",
                            "why": "reason", "true_positives": "n", "n": "n_seeds"}),
                    option("fallback", "wrong names with fall-back to genus",
                           {"value": "wrong_with_fallback",
                            "low": "wrong_with_fallback_ci95_low",
                            "high": "wrong_with_fallback_ci95_high", "why": "reason",
                            "true_positives": "n", "n": "n_seeds"}),
                ]),
            ],
            {"": charts.curves(charts.quantity("coverage", "share of true positives that get a "
                                               "species name"), scale,
                               charts.facet("split"), risk_tips)},
            ("architecture",),
            [*CONDITION, ("coverage", "Coverage"), ("confidence", "Confidence at least"),
             ("true_positives", "True positives"), ("n_species", "Species"), *VALUE],
            y="{show}",
            widest=640,
            empty=evidence or "No true positives.",
        ),
        Panel(
            "novelty",
            "Known and unseen species by confidence",
            "True positives by confidence: known species with the correct and with a wrong name, "
            "and unseen species by distance band.",
            "novelty",
            [mapping("show", "Show", [
                option("share", "share of the group",
                       {"value": "share", "n": "n_seeds", "count": "n"},
                       {"why": "descriptive"})])],
            {"": charts.steps(Scale("group", histogram), by,
                              (*TOOLTIP, ("group", "Group"), ("lower", "From"), ("upper", "To"),
                               ("count", "True positives per seed"), *LEVEL))},
            ("architecture", "group"),
            [*CONDITION, ("group", "Group"), ("lower", "From"), ("upper", "To"),
             ("count", "True positives per seed"), *VALUE],
            y="share of the group",
            empty=evidence or "Needs both in-distribution and unseen species.",
        ),
    ]  # fmt: skip


def _species(scale: Scale, evidence: str) -> list[Panel]:
    tips = (*TOOLTIP, ("n_specimens", "Specimens"), *LEVEL)
    plain = {"n": "n_seeds"}
    return [
        Panel(
            "species",
            "One species",
            "The results of one species over the training budget, its place in the benchmark, and "
            "its confusions in both directions. Unseen species have a detection recall only: "
            "their AP and species recall are 0 by construction.",
            "species",
            [
                choice("species", "Species", "species", search=True),
                choice("split", "Split", "split", SPLIT_LABEL["iid_test"]),
                mapping("metric", "Metric", [
                    option("AP_50_95", "AP@[.5:.95]",
                           {"value": "AP_50_95", "low": "AP_50_95_ci95_retraining_low",
                            "high": "AP_50_95_ci95_retraining_high", **plain},
                           {"covers": "retraining"}),
                    *(option(key, label, {"value": key, **plain},
                             {"why": "descriptive", "low": "", "high": ""})
                      for key, label in (
                          ("AP_50", "AP@.5"),
                          ("detection_recall", "detection recall"),
                          ("species_recall", "species recall"))),
                ]),
            ],
            {"": charts.curves(charts.ordinal("budget", "training budget", "order"), scale,
                               charts.facet("regime", REGIMES), tips, independent=True)},
            ("architecture", "regime"),
            [*CONDITION, ("n_specimens", "Specimens"), *VALUE],
            y="{metric}, {species}",
            empty=evidence or "No species was scored.",
            details=True,
        )
    ]  # fmt: skip


def _genera(by: Spec, evidence: str) -> list[Panel]:
    tips = (
        *TOOLTIP,
        *(("true", "True genus"), ("predicted", "Predicted genus"), ("value_text", "Share")),
        *(("count", "Specimens per seed"), ("of", "of"), ("interval", "95 % interval")),
        *(("n", "Seeds (n)"), ("source", "Source")),
    )
    return [
        Panel(
            "genera",
            "Confusion of genera",
            "Specimens by true and predicted genus, as shares of the scored specimens of the true "
            "genus, at the best condition of an architecture. The diagonal is the correct genus; "
            "what a row lacks to 1 is missed.",
            "genera",
            [
                choice("split", "Split", "split", SPLIT_LABEL["iid_test"]),
                choice("threshold", "Detections", "threshold"),
                choice("architecture", "Architecture", "architecture"),
                mapping("show", "Show", [
                    option("share", "share of the true genus", {}, {"why": "descriptive"})]),
            ],
            {"": charts.matrix(by, tips)},
            ("architecture",),
            [*CONDITION, ("true", "True genus"), ("predicted", "Predicted genus"),
             ("value", "Share of the true genus"), ("count", "Specimens per seed"),
             ("of", "of"), ("n", "Seeds (n)"), ("source", "Source")],
            most=1,
            empty=evidence or "No confusions: no split with trained species was evaluated.",
        )
    ]  # fmt: skip
