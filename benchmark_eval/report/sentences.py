"""The results in words, question by question: a few sentences, then a table.

Two means are called different only if their 95 % intervals do not overlap; a difference within each
model only if its own interval excludes 0. Otherwise the sentence says "inconclusive". Every number
in a sentence has its interval and n.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from benchmark_eval.core.intervals import UNDEFINED, Estimate
from benchmark_eval.core.text import counted, percent
from benchmark_eval.inputs.manifest import Condition, budget_text
from benchmark_eval.report.lookup import BY_NAME, Lookup
from benchmark_eval.report.markdown import MISSING, escape, estimate, listing, table
from benchmark_eval.results.registry import BAND_LABEL, SPLIT_PREFIX
from benchmark_eval.sweep import questions
from benchmark_eval.sweep.best import best_conditions, best_threshold, defined_at_best, largest
from benchmark_eval.sweep.comparisons import Judged, Verdict
from benchmark_eval.sweep.pooled import FULL_DATA, pooled
from benchmark_eval.sweep.questions import NATURAL, TARGETS, UNIFORM
from benchmark_eval.sweep.tables import Aggregated, BudgetRow, CurveRow

INCONCLUSIVE = "inconclusive (the intervals overlap)"
NOT_TESTED = "not tested (fewer than 2 independent seeds)"
T = TypeVar("T")


class Facts:
    """The tables of a sweep in words. Every method returns lines of Markdown."""

    def __init__(self, data: Aggregated) -> None:
        self.data = data
        self.look = Lookup(data)
        self.best = best_conditions(data.learning_curves)
        self.judged = {"means": 0, "differences": 0}
        """Number of comparisons in the sentences so far, by the rule that decides them."""
        self.with_warnings = {name for item in data.identical for name in item.models}
        self.with_warnings |= {name for item in data.warnings for name in item.models}
        """The models that the report's warnings name."""
        self._conditions_with_warnings = {
            model.condition for model in data.models if model.model in self.with_warnings
        }

    # -- helpers ---------------------------------------------------------------------------

    def name(self, architecture: str) -> str:
        """An architecture as text."""
        return escape(self.look.label(architecture))

    def warned(self, row: CurveRow) -> str:
        """`` (warnings)`` if a model of the condition has warnings."""
        return " (warnings)" if row.condition in self._conditions_with_warnings else ""

    def means(self, verdicts: Mapping[str, Verdict]) -> str:
        """Verdicts on two means by architecture: ``positive for alder and birch``."""
        return self._tally("means", verdicts, "positive", "negative", INCONCLUSIVE)

    def differences(self, judged: Mapping[str, Judged], fixed: float = 0.0) -> str:
        """Verdicts on a difference within each model, or on a number against a fixed one."""
        verdicts = {name: item.verdict for name, item in judged.items()}
        above, below = ("above", "below") if fixed else ("positive", "negative")
        overlap = f"inconclusive (the interval includes {fixed:g})"
        return self._tally("differences", verdicts, above, below, overlap)

    def _tally(
        self, rule: str, verdicts: Mapping[str, Verdict], above: str, below: str, overlap: str
    ) -> str:
        """Names the architectures of each verdict, unless there is only one or all agree."""
        words = {
            "above": above,
            "below": below,
            "overlap": overlap,
            "no interval": NOT_TESTED,
            "undefined": "undefined",
        }
        groups: dict[str, list[str]] = {}
        for architecture, verdict in verdicts.items():
            groups.setdefault(words[verdict], []).append(self.name(architecture))
            self.judged[rule] += verdict in ("above", "below", "overlap")
        if len(self.look.architectures) == 1:
            return next(iter(groups))
        if len(groups) == 1 and len(verdicts) == len(self.look.architectures):
            every = "both" if len(verdicts) == 2 else f"all {len(verdicts)}"
            return f"{next(iter(groups))} for {every} architectures"
        return "; ".join(f"{text} for {listing(names)}" for text, names in groups.items())

    # -- data efficiency -------------------------------------------------------------------

    def growth(self, metric: str) -> list[str]:
        """The change from the smallest to the largest budget of each regime, and its last step."""
        lines, rows = [], []
        for regime in (UNIFORM, NATURAL):
            ends = questions.growth(self.data, regime, metric)
            # architectures of an incomplete sweep have different budgets
            for some in _grouped(ends, lambda g: map(budget, (g.first, g.before, g.last))):
                usual = next(iter(some.values()))
                metric_label = BY_NAME[metric].metric.label
                example = _largest(some, lambda g: g.last.metrics[metric])
                start, end = (
                    row.metrics[metric] for row in (some[example].first, some[example].last)
                )
                grown = {name: g.total for name, g in some.items()}
                step = {name: g.step for name, g in some.items()}
                text = (
                    f"- {regime}, from {budget(usual.first)} to {budget(usual.last)}: the change "
                    f"in {metric_label} is {self.means(grown)}. {self._for(example, 'It')} changes "
                    f"from {estimate(start)} to {estimate(end)}."
                )
                if usual.first is not usual.before:
                    text += (
                        f" The change over the last step, from {budget(usual.before)}, is "
                        f"{self.means(step)}."
                    )
                lines.append(text + self._step_pooled(some))
            rows += [
                [
                    self.name(name),
                    regime,
                    at_budget(g.first, metric),
                    MISSING if g.first is g.before else at_budget(g.before, metric),
                    at_budget(g.last, metric),
                ]
                for name, g in ends.items()
            ]
        if not lines:
            return [_nothing("regime with two budgets")]
        header = ["Architecture", "Regime", "Smallest budget", "Second largest", "Largest"]
        if all(row[3] == MISSING for row in rows):
            header, *rows = ([*cells[:3], *cells[4:]] for cells in (header, *rows))
        return [*lines, "", *table(header, rows, left=2)]

    def _step_pooled(self, some: Mapping[str, questions.Growth]) -> str:
        """The last step with the pooled seeds of all images, if the regime ends there."""
        verdicts = {name: g.step_pooled for name, g in some.items() if g.step_pooled}
        if not verdicts:
            return ""
        last = next(iter(some.values())).last
        other = NATURAL if last.regime == UNIFORM else UNIFORM
        return (
            f" {other} {budget_text(other, FULL_DATA[other])} is the same training set as "
            f"{budget(last)}; with its seeds included, the change over this step is "
            f"{self.means(verdicts)}."
        )

    def all_data(self, metrics: Sequence[str]) -> list[str]:
        """Results on all images, pooled over the regimes that train on them."""
        both = {
            name: values
            for name in self.look.architectures
            if (values := [pooled(self.data, name, metric) for metric in metrics])[0] is not None
        }
        if not both:
            return []
        names = [f"{regime} {budget_text(regime, k)}" for regime, k in FULL_DATA.items()]
        labels = [BY_NAME[metric].label for metric in metrics]
        return [
            f"{names[0]} and {names[1]} are the same training set, all images: differences "
            "between them are due to chance, and neither is the better condition. Pooled over "
            "the seeds of both, with the 95 % interval:",
            "",
            *table(
                ["Architecture, all images", *labels],
                [
                    [self.name(name), *(estimate(value or UNDEFINED) for value in values)]
                    for name, values in both.items()
                ],
            ),
        ]

    def _against(self, metric: str, lead: str, fixed: float = 0.0) -> list[str]:
        """A metric at the best conditions against a fixed number: one bullet, or none."""
        best = questions.at_best(self.best, metric, fixed)
        if not best:
            return []
        example = _largest(best, lambda item: item.value)
        top = f"The largest, for {self.name(example)}," if len(best) > 1 else "It"
        return [
            f"- {lead} is {self.differences(best, fixed)}. {top} is "
            f"{estimate(best[example].value)}."
        ]

    def _for(self, architecture: str, subject: str) -> str:
        """``It``, or with several architectures ``For alder, it``."""
        if len(self.look.architectures) == 1:
            return subject
        return f"For {self.name(architecture)}, {subject if '@' in subject else subject.lower()}"

    def architectures(self, metric: str) -> list[str]:
        """The architecture with the highest mean at its best condition against the others."""
        ranked = questions.ranking(self.best, metric)
        if ranked is None:
            return []
        return [
            f"- Architectures, each at its best condition: {self.name(ranked.top)} has the highest "
            f"mean, {estimate(ranked.value)}. Compared with each of the others, the difference is "
            f"{self.means(ranked.others)}.{self._pooled_ranks(metric)}"
        ]

    def _pooled_ranks(self, metric: str) -> str:
        """The same comparison on pooled seeds, if all images are best for every architecture."""
        ranked = questions.pooled_ranking(self.data, self.best, metric)
        if ranked is None:
            return ""
        return (
            f" On all images, pooled over the seeds of both regimes, {self.name(ranked.top)} has "
            f"the highest mean, {estimate(ranked.value)}; the difference is "
            f"{self.means(ranked.others)}."
        )

    def regimes_at_equal_cost(self, metric: str) -> list[str]:
        """global_uniform against incremental_natural at about the same number of images."""
        pairs = questions.equal_cost(self.data, metric)
        if not pairs:
            return [
                f"- No two conditions of {UNIFORM} and {NATURAL} below all data have "
                f"about the same number of images (within {_percent(questions.SAME_COST - 1)}), so "
                "the regimes cannot be compared at equal cost."
            ]
        lines = []
        for some in _grouped(
            pairs,
            lambda pair: [(r.k_or_p, r.n_images, r.source) for r in (pair.uniform, pair.natural)],
        ):
            verdicts = {name: pair.verdict for name, pair in some.items()}
            usual = next(iter(some.values()))
            lines.append(
                f"- Regimes, at about the same number of distinct training images "
                f"({_cost(usual.uniform)}; {_cost(usual.natural)}): {UNIFORM} minus {NATURAL} is "
                f"{self.means(verdicts)}."
            )
        rows = [
            [
                self.name(name),
                *(f"{budget(row)}, {images(row)} images: {estimate(row.headline[metric])}"
                  for row in (pair.uniform, pair.natural)),
            ]
            for name, pair in pairs.items()
        ]  # fmt: skip
        return [*lines, "", *table(["Architecture", UNIFORM, NATURAL], rows)]

    # -- field photographs and unseen species ----------------------------------------------

    def field(self) -> list[str]:
        """The gap between curated and field photographs of trained species."""
        shared = questions.n_shared_species(self.best)
        return self._against(
            "photography_robustness_gap_AP_50_shared_species",
            "Field photographs: the AP@.5 gap from curated to field photographs, over "
            f"{counted(shared, 'species', 'species')} scored on both splits,",
        ) or [_nothing("species scored both in distribution and on field photographs")]

    def unseen(self) -> list[str]:
        """The gap between trained and unseen species, and between near and far ones."""
        lines = self._against(
            "species_generalization_gap_AR_100",
            "Unseen species: the class-agnostic AR@100 gap from trained to unseen species",
        )
        gaps = questions.distance(self.best)
        if gaps:
            example = _largest(gaps, lambda gap: gap.difference.value)
            shown = gaps[example]
            judged = {name: gap.difference for name, gap in gaps.items()}
            lines.append(
                f"- Distance: near minus far class-agnostic AR@100 is {self.differences(judged)}. "
                f"{self._for(example, 'AR@100')} is {estimate(shown.left)} on near and "
                f"{estimate(shown.right)} on far species, a difference of "
                f"{estimate(shown.difference.value)}. The far band also differs in density, so "
                "distance need not be the cause: compare within one density."
            )
        return lines or [_nothing("unseen species")]

    def density(self) -> list[str]:
        """Recall on single specimens against that on dense images."""
        gaps = questions.density(self.data, self.best)
        if not gaps:
            return []
        example = _largest(gaps, lambda gap: gap.difference.value)
        shown = gaps[example]
        judged = {name: gap.difference for name, gap in gaps.items()}
        return [
            "- Density: recall on images with one unseen specimen minus recall on images with more "
            f"than ten is {self.differences(judged)}. {self._for(example, 'Recall')} is "
            f"{estimate(shown.left)} on single specimens and {estimate(shown.right)} among more "
            f"than ten (means over images), a difference of {estimate(shown.difference.value)}."
        ]

    # -- rare and common species -----------------------------------------------------------

    def imbalance(self) -> list[str]:
        """The gap between head and tail species at both ends of each regime."""
        lines, rows = [], []
        for regime in (UNIFORM, NATURAL):
            ends = questions.imbalance(self.data, regime)
            for some in _grouped(ends, lambda item: map(budget, (item.first, item.last))):
                first, last = next(iter(some.values())).first, next(iter(some.values())).last
                gaps = {name: item.gap for name, item in some.items()}
                example = _largest(gaps, lambda gap: gap.value)
                text = (
                    f"- {regime}, at {budget(last)}: head minus tail AP@.5 is "
                    f"{self.differences(gaps)}. {self._for(example, 'It')} is "
                    f"{estimate(gaps[example].value)}."
                )
                if first is not last:
                    widened = {name: item.widened for name, item in some.items()}
                    text += f" Its change from {budget(first)} is {self.means(widened)}."
                lines.append(text)
            rows += [
                [
                    self.name(name),
                    regime,
                    at_budget(item.first, questions.HEAD_MINUS_TAIL),
                    at_budget(item.last, questions.HEAD_MINUS_TAIL),
                ]
                for name, item in ends.items()
            ]
        if not lines:
            return [_nothing("head and tail species (they require train.json)")]
        header = ["Architecture", "Regime", "Head minus tail, smallest budget", "Largest"]
        return [*lines, "", *table(header, rows, left=2)]

    # -- detection versus identification ---------------------------------------------------

    def decomposition(self, split: str, where: str) -> list[str]:
        """Whether more specimens are missed or misidentified at the best condition."""
        prefix = SPLIT_PREFIX[split]
        recall, accuracy, species_recall, misidentified, missed = (
            f"{prefix}_{key}"
            for key in (
                "detection_recall",
                "classification_given_detection_acc",
                "species_recall",
                "classification_loss",
                "localisation_loss",
            )
        )
        best = defined_at_best(self.best, recall, misidentified)
        if not best:
            return [_nothing(f"scored specimens {where}")]
        judged = questions.bottleneck(best, split)
        example = _largest(best, lambda row: row.metrics[species_recall])
        m = best[example].metrics
        columns = {
            "Detected": recall,
            "Detected, open vocabulary": f"{prefix}_detection_recall_open_vocabulary",
            "Correctly identified, of detected": accuracy,
            "Detected and correctly identified": species_recall,
            "Misidentified": misidentified,
            "Missed": missed,
        }
        return [
            f"- {where[0].upper()}{where[1:]}, misidentified minus missed specimens is "
            f"{self.differences(judged)}. {self._for(example, 'It')} is "
            f"{estimate(judged[example].value)}: {estimate(m[recall])} of the specimens are "
            f"detected, {estimate(m[accuracy])} of those correctly identified, "
            f"{estimate(m[species_recall])} both.",
            "- Detections of a species that this split does not list are excluded, as in the "
            "benchmark's evaluator: a specimen detected only under such a label counts as missed. "
            "'Detected, open vocabulary' includes them; where it is well above 'Detected', wrong "
            "labels explain some of the missed specimens.",
            "",
            *table(
                ["Architecture", *columns, "Misidentified minus missed"],
                [
                    [
                        self.name(name),
                        *(estimate(row.metrics[key]) for key in columns.values()),
                        estimate(judged[name].value),
                    ]
                    for name, row in best.items()
                ],
            ),
        ]

    def thresholds(self) -> list[str]:
        """The confidence threshold with the highest mean F1 in distribution."""
        columns = {
            "F1": "F1",
            "Precision": "precision",
            "Detection recall": "recall",
            "Species recall": "species_recall",
            "False positives per image": "false_positives_per_image",
        }
        rows = [
            [
                self.name(name),
                f"{chosen.confidence:.2f}",
                *(estimate(chosen.metrics[key]) for key in columns.values()),
            ]
            for name in self.best
            if (chosen := best_threshold(self.data, name)) is not None
        ]
        if not rows:
            return []
        return [
            "The confidence threshold with the highest mean F1 in distribution, and its results "
            "(selected on the same images, so slightly optimistic):",
            "",
            *table(["Architecture", "Threshold", *columns], rows),
        ]

    # -- target species --------------------------------------------------------------------

    def targets(self) -> list[str]:
        """AP of target species by their distance from the other species."""
        cells = {
            (row.architecture, row.band, row.k): row.AP_50
            for row in self.data.target_species_curves
            if row.split == "iid_test"
        }
        contrasts = questions.target_contrasts(self.data)
        budgets = [k for k in self.look.budgets.get(TARGETS, []) if any(k == c[2] for c in cells)]
        if len(budgets) < 2:
            return [_nothing(f"two conditions of {TARGETS} with scored target species")]
        firsts = {name: item.first for name, item in contrasts.items() if item.first}
        lasts = {name: item.last for name, item in contrasts.items() if item.last}
        lines = []
        for which in (firsts, lasts):
            for some in _grouped(which, lambda item: [item[0]]):
                k = next(iter(some.values()))[0]
                judged = {name: contrast.difference for name, (_, contrast) in some.items()}
                example = _largest(judged, lambda item: item.value)
                shown = some[example][1]
                lines.append(
                    f"- Near minus far target species, at k={k}: the difference in AP@.5 is "
                    f"{self.differences(judged)}. {self._for(example, 'AP@.5')} is "
                    f"{estimate(shown.left)} on near and {estimate(shown.right)} on far target "
                    f"species, a difference of {estimate(judged[example].value)}."
                )
        ends = [*(k for which in (firsts, lasts) for k, _ in which.values()), *budgets[:1]]
        ends += budgets[-1:]
        columns = [k for k in budgets if k in ends]
        rows = [
            [self.name(name), BAND_LABEL[band], *(
                estimate(cells.get((name, band, k), UNDEFINED)) for k in columns
            )]
            for name in contrasts
            for band in BAND_LABEL
        ]  # fmt: skip
        header = ["Architecture", "Target species", *(f"AP@.5 at k={k}" for k in columns)]
        return [*lines, *self._target_gap(), "", *table(header, rows, left=2)]

    def _target_gap(self) -> list[str]:
        """Target minus non-target species at the largest k."""
        gaps = questions.target_gaps(self.data)
        lines = []
        for some in _grouped(gaps, lambda gap: [gap[0].k]):
            judged = {name: item for name, (_, item) in some.items()}
            example = _largest(judged, lambda item: item.value)
            lines.append(
                f"- Target minus non-target species, at k={some[example][0].k}: the difference in "
                f"AP@.5 is {self.differences(judged)}. {self._for(example, 'It')} is "
                f"{estimate(judged[example].value)}."
            )
        return lines

    # -- confidence ------------------------------------------------------------------------

    def confidence(self) -> list[str]:
        """Whether confidence is lower on unseen species and separates them from trained ones."""
        auroc = "novelty_det_AUROC"
        lines = self._against(
            "confidence_drop_OOD", "The drop in mean confidence from trained to unseen species"
        )
        lines += self._against(
            auroc,
            "The novelty AUROC of low confidence, compared with chance (0.5),",
            0.5,
        )
        if not lines:
            return [_nothing("true positives on unseen species")]
        keys = ("iid_ECE", "ood_ECE", "iid_mean_confidence", "ood_mean_confidence", auroc)
        rows = [
            [self.name(name), *(estimate(row.metrics[key]) for key in keys)]
            for name, row in self.best.items()
        ]
        header = [
            "Architecture",
            "Calibration error, in-distribution",
            "Calibration error, unseen species",
            "Mean confidence, in-distribution",
            "Mean confidence, unseen species",
            "Novelty AUROC",
        ]
        return [*lines, "", *table(header, rows)]


def budget(row: CurveRow | BudgetRow) -> str:
    """``k=5``, ``p=0.1``."""
    return budget_text(row.regime, row.k_or_p)


def label(condition: Condition) -> str:
    """``global_uniform k=5``."""
    return f"{condition.regime} {budget_text(condition.regime, condition.k_or_p)}"


def images(row: BudgetRow) -> str:
    """Distinct training images: ``161`` counted, ``about 161`` expected."""
    about = "about " if row.source == "expected" else ""
    return MISSING if row.n_images is None else f"{about}{row.n_images:,.0f}"


def at_budget(row: CurveRow, metric: str) -> str:
    """``k=5: 0.540 (0.441 to 0.639; n=3)``."""
    return f"{budget(row)}: {estimate(row.metrics[metric])}"


def _cost(row: BudgetRow) -> str:
    return f"{row.regime} {budget(row)}: {images(row)} images"


def _grouped(items: Mapping[str, T], key: Callable[[T], Iterable[Hashable]]) -> list[dict[str, T]]:
    """The items in groups of equal key, in order of appearance."""
    groups: dict[tuple[Hashable, ...], dict[str, T]] = {}
    for name, item in items.items():
        groups.setdefault(tuple(key(item)), {})[name] = item
    return list(groups.values())


def _largest(items: Mapping[str, T], value: Callable[[T], Estimate]) -> str:
    return largest({name: value(item) for name, item in items.items()})


def _percent(fraction: float) -> str:
    return percent(round(1000 * fraction), 1000)


def _nothing(what: str) -> str:
    return f"- Not available: this sweep has no {what}."
