"""What the numbers say, question by question: a few sentences, then the table behind them.

Two means are called different only where their 95 % intervals share no value ("holds"); a
difference within each model only where its own interval leaves out 0 ("is clear"). Otherwise the
sentence says that it cannot be told. Every number in a sentence carries its interval and n.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from benchmark_eval.core.intervals import UNDEFINED, Estimate
from benchmark_eval.core.text import counted
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

INCONCLUSIVE = "cannot be told (the intervals overlap)"
T = TypeVar("T")


class Facts:
    """The tables of a sweep in words. Every method returns lines of Markdown."""

    def __init__(self, data: Aggregated) -> None:
        self.data = data
        self.look = Lookup(data)
        self.best = best_conditions(data.learning_curves)
        self.judged = {"means": 0, "differences": 0}
        """How many comparisons the sentences made so far, by the rule that decides them."""
        self.doubtful = {name for item in data.identical for name in item.models}
        self.doubtful |= {name for item in data.warnings for name in item.models}
        """The models that stand under the report's warnings."""
        self._doubtful_conditions = {
            model.condition for model in data.models if model.model in self.doubtful
        }

    # -- helpers ---------------------------------------------------------------------------

    def name(self, architecture: str) -> str:
        """An architecture as text."""
        return escape(self.look.label(architecture))

    def warned(self, row: CurveRow) -> str:
        """`` (warnings)`` behind a condition with a model that has some."""
        return " (warnings)" if row.condition in self._doubtful_conditions else ""

    def means(
        self, verdicts: Mapping[str, Verdict], above: str, below: str, unclear: str = INCONCLUSIVE
    ) -> str:
        """What comparing two means says, by architecture: ``holds for alder and birch``."""
        return self._tally("means", verdicts, above, below, unclear)

    def differences(
        self, judged: Mapping[str, Judged], above: str, below: str, fixed: float = 0.0
    ) -> str:
        """What a difference within each model says, or another number against a fixed one."""
        verdicts = {name: item.verdict for name, item in judged.items()}
        unclear = f"cannot be told (the interval includes {fixed:g})"
        return self._tally("differences", verdicts, above, below, unclear)

    def _tally(
        self, rule: str, verdicts: Mapping[str, Verdict], above: str, below: str, unclear: str
    ) -> str:
        """Names every architecture that is meant, unless it is the only one or all agree."""
        words = {
            "above": above,
            "below": below,
            "overlap": unclear,
            "no interval": "cannot be told (one seed)",
            "undefined": "is not defined",
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

    # -- how quality grows with data -------------------------------------------------------

    def growth(self, metric: str) -> list[str]:
        """From the smallest to the largest budget of each regime, and whether it still rises."""
        lines, rows = [], []
        for regime in (UNIFORM, NATURAL):
            ends = questions.growth(self.data, regime, metric)
            # an incomplete sweep: each architecture is told at its own budgets
            for some in _alike(ends, lambda g: map(budget, (g.first, g.before, g.last))):
                usual = next(iter(some.values()))
                metric_label = BY_NAME[metric].metric.label
                example = _largest(some, lambda g: g.last.metrics[metric])
                start, end = (
                    row.metrics[metric] for row in (some[example].first, some[example].last)
                )
                grown = {name: g.total for name, g in some.items()}
                step = {name: g.step for name, g in some.items()}
                text = (
                    f"- {regime}, from {budget(usual.first)} to {budget(usual.last)}: that "
                    f"{metric_label} grows with data "
                    f"{self.means(grown, 'holds', 'is wrong, it falls')}. "
                    f"{self._for(example)}it goes from {estimate(start)} to {estimate(end)}."
                )
                if usual.first is not usual.before:
                    text += (
                        f" That the last step, from {budget(usual.before)}, is a gain "
                        f"{self.means(step, 'holds', 'is wrong, it is a loss')}."
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
            return [_nothing("a regime with two budgets")]
        header = ["Architecture", "Regime", "Smallest budget", "Last but one", "Largest"]
        if all(row[3] == MISSING for row in rows):
            header, *rows = ([*cells[:3], *cells[4:]] for cells in (header, *rows))
        return [*lines, "", *table(header, rows, left=2)]

    def _step_pooled(self, some: Mapping[str, questions.Growth]) -> str:
        """The last step judged on all seeds of its end, where that is all data."""
        told = {name: g.step_pooled for name, g in some.items() if g.step_pooled}
        if not told:
            return ""
        last = next(iter(some.values())).last
        other = NATURAL if last.regime == UNIFORM else UNIFORM
        return (
            f" {other} {budget_text(other, FULL_DATA[other])} is the same training set as "
            f"{budget(last)}; with its seeds too, that this step is a gain "
            f"{self.means(told, 'holds', 'is wrong, it is a loss')}."
        )

    def all_data(self, metrics: Sequence[str]) -> list[str]:
        """That two conditions are one training set, and their seeds taken together."""
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
            f"{names[0]} and {names[1]} are the same training set, all images: what differs "
            "between them is chance, and the better of the two is no better condition. Their "
            "seeds taken together, with the 95 % interval:",
            "",
            *table(
                ["Architecture, on all images", *labels],
                [
                    [self.name(name), *(estimate(value or UNDEFINED) for value in values)]
                    for name, values in both.items()
                ],
            ),
        ]

    def _against(
        self, metric: str, lead: str, below: str, what: str, fixed: float = 0.0
    ) -> list[str]:
        """A metric at the best conditions against a fixed number: one bullet, or none.

        ``below`` says that it lies below; ``what`` is what its largest mean is of.
        """
        best = questions.at_best(self.best, metric, fixed)
        if not best:
            return []
        example = _largest(best, lambda item: item.value)
        top = f"Largest {what}, of {self.name(example)}" if len(best) > 1 else f"The {what}"
        return [
            f"- {lead} {self.differences(best, 'is clear', below, fixed)}. {top}: "
            f"{estimate(best[example].value)}."
        ]

    def _for(self, architecture: str) -> str:
        """``For alder `` where there are several architectures."""
        return f"For {self.name(architecture)} " if len(self.look.architectures) > 1 else "Here "

    def architectures(self, metric: str) -> list[str]:
        """The architectures at their best conditions, against the highest."""
        ranked = questions.ranking(self.best, metric)
        if ranked is None:
            return []
        return [
            f"- Between architectures, each at its best condition: {self.name(ranked.top)} has the "
            f"highest mean, {estimate(ranked.value)}. That the others lie below it "
            f"{self.means(ranked.others, 'holds', 'is wrong')}.{self._pooled_ranks(metric)}"
        ]

    def _pooled_ranks(self, metric: str) -> str:
        """The same comparison on all seeds of all data, where all have these as their best."""
        ranked = questions.pooled_ranking(self.data, self.best, metric)
        if ranked is None:
            return ""
        return (
            f" On all seeds of all images, of both regimes, {self.name(ranked.top)} has the "
            f"highest, {estimate(ranked.value)}; that the others lie below it "
            f"{self.means(ranked.others, 'holds', 'is wrong')}."
        )

    def regimes_at_equal_cost(self, metric: str) -> list[str]:
        """global_uniform against incremental_natural where both cost about as many images."""
        pairs = questions.equal_cost(self.data, metric)
        if not pairs:
            return [
                f"- No two conditions of {UNIFORM} and {NATURAL} short of all data cost about as "
                f"many images (within {questions.SAME_COST - 1:.0%}), so the regimes cannot be "
                "compared at equal cost."
            ]
        lines = []
        for some in _alike(
            pairs,
            lambda pair: [(r.k_or_p, r.n_images, r.source) for r in (pair.uniform, pair.natural)],
        ):
            told = {name: pair.verdict for name, pair in some.items()}
            usual = next(iter(some.values()))
            lines.append(
                f"- Between regimes, at about the same number of distinct training images "
                f"({_cost(usual.uniform)}; {_cost(usual.natural)}): "
                + self.means(
                    told,
                    "equal shares of every species buy more",
                    "the natural mix buys more",
                    "which buys more cannot be told (the intervals overlap)",
                )
                + "."
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
        """What the best condition loses on field photographs of species it was trained on."""
        shared = questions.n_shared_species(self.best)
        return self._against(
            "photography_robustness_gap_AP_50_shared_species",
            f"Field photographs: over the {counted(shared, 'species', 'species')} that both "
            "splits score, that AP@.5 is lower than on curated photographs",
            "is wrong, it is higher",
            "loss",
        ) or [_nothing("species scored both in distribution and on field photographs")]

    def unseen(self) -> list[str]:
        """What the best condition loses on unseen species, and by their distance."""
        lines = self._against(
            "species_generalization_gap_AR_100",
            "Unseen species: that class-agnostic AR@100 is lower than on trained species",
            "is wrong, it is higher",
            "loss",
        )
        gaps = questions.distance(self.best)
        if gaps:
            example = _largest(gaps, lambda gap: gap.difference.value)
            shown = gaps[example]
            judged = {name: gap.difference for name, gap in gaps.items()}
            lines.append(
                "- Distance: that near species are found better than far ones "
                f"{self.differences(judged, 'is clear', 'is wrong, far ones are')}. "
                f"{self._for(example)}class-agnostic AR@100 is {estimate(shown.left)} on near and "
                f"{estimate(shown.right)} on far species, a difference of "
                f"{estimate(shown.difference.value)}. The far "
                "band differs in density too, so distance need not be the reason: compare within "
                "one density."
            )
        return lines or [_nothing("unseen species")]

    def density(self) -> list[str]:
        """Finding on single specimens against crowded images."""
        gaps = questions.density(self.data, self.best)
        if not gaps:
            return []
        example = _largest(gaps, lambda gap: gap.difference.value)
        shown = gaps[example]
        judged = {name: gap.difference for name, gap in gaps.items()}
        return [
            "- Density: that specimens alone on their image are found better than those among "
            f"more than ten {self.differences(judged, 'is clear', 'is wrong')}. "
            f"{self._for(example)}{estimate(shown.left)} of single unseen specimens are found and "
            f"{estimate(shown.right)} of those on crowded images (means over images), a difference "
            f"of {estimate(shown.difference.value)}."
        ]

    # -- rare and common species -----------------------------------------------------------

    def rare(self) -> list[str]:
        """The gap between head and tail species at both ends of each regime."""
        lines, rows = [], []
        for regime in (UNIFORM, NATURAL):
            ends = questions.imbalance(self.data, regime)
            for some in _alike(ends, lambda item: map(budget, (item.first, item.last))):
                first, last = next(iter(some.values())).first, next(iter(some.values())).last
                gaps = {name: item.gap for name, item in some.items()}
                example = _largest(gaps, lambda gap: gap.value)
                text = (
                    f"- {regime}, at {budget(last)}: that rare species are served worse than "
                    "common ones "
                    f"{self.differences(gaps, 'is clear', 'is wrong, they are served better')}. "
                    f"{self._for(example)}head minus tail AP@.5 is {estimate(gaps[example].value)}."
                )
                if first is not last:
                    moved = {name: item.widened for name, item in some.items()}
                    text += (
                        f" That this gap is wider than at {budget(first)} "
                        f"{self.means(moved, 'holds', 'is wrong, it is narrower')}."
                    )
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
            return [_nothing("head and tail species (training annotations are needed)")]
        header = ["Architecture", "Regime", "Head minus tail, smallest budget", "Largest"]
        return [*lines, "", *table(header, rows, left=2)]

    # -- finding against naming ------------------------------------------------------------

    def finding(self, split: str, where: str) -> list[str]:
        """Which loses more specimens at the best condition: not finding, or wrong names."""
        prefix = SPLIT_PREFIX[split]
        found, named, both, lost, missed = (
            f"{prefix}_{key}"
            for key in (
                "detection_recall",
                "classification_given_detection_acc",
                "species_recall",
                "classification_loss",
                "localisation_loss",
            )
        )
        best = defined_at_best(self.best, found, lost)
        if not best:
            return [_nothing(f"scored specimens {where}")]
        told = questions.bottleneck(best, split)
        example = _largest(best, lambda row: row.metrics[both])
        m = best[example].metrics
        header = ["Architecture", "Found", "Found, any name"]
        header += ["Named right, of found", "Both", "Lost to names"]
        columns = (
            *(found, f"{prefix}_detection_recall_open_vocabulary"),
            *(named, both, lost, missed),
        )
        return [
            f"- {where[0].upper()}{where[1:]} the bottleneck, where more specimens are lost, "
            f"{self.differences(told, 'is naming', 'is finding')}. {self._for(example)}"
            f"{estimate(m[found])} of the specimens are found and {estimate(m[named])} of those "
            f"named right, {estimate(m[both])} together; lost to names minus not found is "
            f"{estimate(told[example].value)}.",
            "- Boxes named as a species that this split does not list are left out, as the "
            "benchmark's evaluator does: a beetle found under such a name counts as not found. "
            "'Found, any name' keeps them; where it is well above 'Found', names are to blame for "
            "part of what seems not found.",
            "",
            *table(
                [*header, "Not found", "Lost to names minus not found"],
                [
                    [
                        self.name(name),
                        *(estimate(row.metrics[key]) for key in columns),
                        estimate(told[name].value),
                    ]
                    for name, row in best.items()
                ],
            ),
        ]

    def cuts(self) -> list[str]:
        """The confidence cut with the highest mean F1 in distribution."""
        rows = []
        for name in self.best:
            chosen = best_threshold(self.data, name)
            if chosen is not None:
                m = chosen.metrics
                rows.append(
                    [
                        self.name(name),
                        f"{chosen.confidence:.2f}",
                        *(
                            estimate(m[key])
                            for key in ("F1", "precision", "recall", "species_recall")
                        ),
                        estimate(m["false_positives_per_image"]),
                    ]
                )
        if not rows:
            return []
        return [
            "The confidence cut with the highest mean F1 in distribution, and what it leaves "
            "(chosen on the same images, so a little too good):",
            "",
            *table(
                [
                    "Architecture",
                    "Cut",
                    "F1",
                    "Precision",
                    "Recall",
                    "Found and named right",
                    "False alarms per image",
                ],
                rows,
            ),
        ]

    # -- target species --------------------------------------------------------------------

    def targets(self) -> list[str]:
        """What the images of a target species buy, by its distance to the other species."""
        cells = {
            (row.architecture, row.band, row.k): row.AP_50
            for row in self.data.target_species_curves
            if row.split == "iid_test"
        }
        contrasts = questions.target_contrasts(self.data)
        budgets = [k for k in self.look.budgets.get(TARGETS, []) if any(k == c[2] for c in cells)]
        if len(budgets) < 2:
            return [_nothing(f"two budgets of {TARGETS} with target species")]
        firsts = {name: item.first for name, item in contrasts.items() if item.first}
        lasts = {name: item.last for name, item in contrasts.items() if item.last}
        lines = []
        for which, lead in ((firsts, "Relatives"), (lasts, "Own images")):
            for some in _alike(which, lambda item: [item[0]]):
                k = next(iter(some.values()))[0]
                here = {name: contrast.difference for name, (_, contrast) in some.items()}
                example = _largest(here, lambda item: item.value)
                shown = some[example][1]
                lines.append(
                    f"- {lead}, at k={k}: that near targets do better than far ones "
                    f"{self.differences(here, 'is clear', 'is wrong, far ones do')}. "
                    f"{self._for(example)}"
                    f"AP@.5 is {estimate(shown.left)} on near and {estimate(shown.right)} on far "
                    f"targets, a difference of {estimate(here[example].value)}."
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
        """Target minus other species where targets have the most images."""
        gaps = questions.target_gaps(self.data)
        lines = []
        for some in _alike(gaps, lambda gap: [gap[0].k]):
            told = {name: judged for name, (_, judged) in some.items()}
            example = _largest(told, lambda item: item.value)
            lines.append(
                f"- Against the other species, at k={some[example][0].k}: that targets are ahead "
                f"{self.differences(told, 'is clear', 'is wrong, they are behind')}. "
                f"{self._for(example)}target minus others is {estimate(told[example].value)}."
            )
        return lines

    # -- confidence ------------------------------------------------------------------------

    def confidence(self) -> list[str]:
        """Whether confidence can be trusted, and whether it tells unseen species."""
        auroc = "novelty_det_AUROC"
        lines = self._against(
            "confidence_drop_OOD",
            "That confidence is lower on unseen species",
            "is wrong, it is higher",
            "fall of the mean confidence",
        )
        lines += self._against(
            auroc,
            "That low confidence marks unseen species better than chance (0.5)",
            "is wrong, it does worse",
            "AUROC",
            0.5,
        )
        if not lines:
            return [_nothing("hits on unseen species")]
        keys = ("iid_ECE", "ood_ECE", "iid_mean_confidence", "ood_mean_confidence", auroc)
        rows = [
            [self.name(name), *(estimate(row.metrics[key]) for key in keys)]
            for name, row in self.best.items()
        ]
        header = [
            "Architecture",
            "Calibration error, in-distribution",
            "unseen species",
            "Mean confidence, in-distribution",
            "unseen species",
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


def _alike(items: Mapping[str, T], key: Callable[[T], Iterable[Hashable]]) -> list[dict[str, T]]:
    """The items in groups of equal key, in the order they come."""
    groups: dict[tuple[Hashable, ...], dict[str, T]] = {}
    for name, item in items.items():
        groups.setdefault(tuple(key(item)), {})[name] = item
    return list(groups.values())


def _largest(items: Mapping[str, T], value: Callable[[T], Estimate]) -> str:
    return largest({name: value(item) for name, item in items.items()})


def _nothing(what: str) -> str:
    return f"- Nothing to say: this sweep lacks {what}."
