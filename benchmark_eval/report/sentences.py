"""What the numbers say, question by question: a few sentences, then the table behind them.

Two means are called different only where their 95 % intervals share no value ("holds"); a
difference within each model only where its own interval leaves out 0 ("is clear"). Otherwise the
sentence says that it cannot be told. Every number in a sentence carries its interval and n.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from benchmark_eval.core.intervals import UNDEFINED, Estimate
from benchmark_eval.core.intervals import estimate as over_seeds
from benchmark_eval.core.text import counted
from benchmark_eval.inputs.manifest import Condition, budget_text
from benchmark_eval.protocol import REGIMES
from benchmark_eval.report.lookup import BY_NAME, Lookup
from benchmark_eval.report.markdown import MISSING, escape, estimate, listing, table
from benchmark_eval.report.reference import FULL_DATA
from benchmark_eval.results.registry import BAND_LABEL, SPLIT_PREFIX
from benchmark_eval.sweep.aggregation import best_conditions
from benchmark_eval.sweep.comparisons import Verdict, compare, compare_to
from benchmark_eval.sweep.differences import (
    CLASSIFICATION_MINUS_LOCALISATION,
    NEAR_TARGETS,
    RECALL_1_MINUS_OVER_10,
)
from benchmark_eval.sweep.tables import Aggregated, BudgetRow, CurveRow, OperatingRow

UNIFORM, NATURAL, TARGETS = REGIMES
SAME_COST = 1.25
"""Two conditions cost about the same when neither has over this times the other's images."""
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
        self, values: Mapping[str, Estimate], above: str, below: str, fixed: float = 0.0
    ) -> str:
        """What a difference within each model says, or another number against a fixed one."""
        told = {name: compare_to(value, fixed) for name, value in values.items()}
        unclear = f"cannot be told (the interval includes {fixed:g})"
        return self._tally("differences", told, above, below, unclear)

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

    def _defined(self, architecture: str, regime: str, metric: str) -> list[CurveRow]:
        """The conditions of a regime where the metric is defined, by rising budget."""
        rows = self.look.rows(architecture, regime)
        return [row for row in rows if row.metrics[metric].n]

    def _at_best(self, *metrics: str) -> dict[str, CurveRow]:
        """The best condition of each architecture where all of these are defined."""
        return {
            name: row
            for name, row in self.best.items()
            if all(row.metrics[metric].n for metric in metrics)
        }

    # -- how quality grows with data -------------------------------------------------------

    def growth(self, metric: str) -> list[str]:
        """From the smallest to the largest budget of each regime, and whether it still rises."""
        lines, rows = [], []
        for regime in (UNIFORM, NATURAL):
            ends = {
                name: cells
                for name in self.look.architectures
                if len(cells := self._defined(name, regime, metric)) > 1
            }
            # an incomplete sweep: each architecture is told at its own budgets
            for some in _alike(ends, lambda cells: [budget(cells[at]) for at in (0, -2, -1)]):
                first, before, last = (next(iter(some.values()))[at] for at in (0, -2, -1))
                metric_label = BY_NAME[metric].metric.label
                grown, step = (
                    {
                        name: compare(cells[-1].metrics[metric], cells[at].metrics[metric])
                        for name, cells in some.items()
                    }
                    for at in (0, -2)
                )
                example = _largest(some, lambda cells: cells[-1].metrics[metric])
                start, end = (some[example][at].metrics[metric] for at in (0, -1))
                text = (
                    f"- {regime}, from {budget(first)} to {budget(last)}: that {metric_label} "
                    f"grows with data {self.means(grown, 'holds', 'is wrong, it falls')}. "
                    f"{self._for(example)}it goes from {estimate(start)} to {estimate(end)}."
                )
                if first is not before:
                    text += (
                        f" That the last step, from {budget(before)}, is a gain "
                        f"{self.means(step, 'holds', 'is wrong, it is a loss')}."
                    )
                lines.append(text + self._step_pooled(metric, some))
            rows += [
                [
                    self.name(name),
                    regime,
                    f"{budget(cells[0])}: {estimate(cells[0].metrics[metric])}",
                    f"{budget(cells[-2])}: {estimate(cells[-2].metrics[metric])}"
                    if len(cells) > 2
                    else MISSING,
                    f"{budget(cells[-1])}: {estimate(cells[-1].metrics[metric])}",
                ]
                for name, cells in ends.items()
            ]
        if not lines:
            return [_nothing("a regime with two budgets")]
        header = ["Architecture", "Regime", "Smallest budget", "Last but one", "Largest"]
        if all(row[3] == MISSING for row in rows):
            header, *rows = ([*cells[:3], *cells[4:]] for cells in (header, *rows))
        return [*lines, "", *table(header, rows, left=2)]

    def pooled(self, architecture: str, metric: str) -> Estimate | None:
        """All seeds on all training images, whatever the regime calls that budget.

        None unless both regimes have such seeds. Without an interval where seeds are copies.
        """
        rows = [row for row in self.look.table.learning_curves
                if row.architecture == architecture and on_all_data(row)]  # fmt: skip
        conditions = {row.condition for row in rows}
        costs = {
            (row.n_images, row.n_specimens)
            for row in self.data.budget_curves
            if row.condition in conditions
        }
        # budgets that were counted and differ are not of one training set
        if len(rows) < 2 or len(costs) > 1 or not all(row.metrics[metric].n for row in rows):
            return None
        models = [model for model in self.data.models if model.condition in conditions]
        value = over_seeds(model.values[metric] for model in models)
        names, split = {model.model for model in models}, BY_NAME[metric].split
        copies = any(
            len(names.intersection(item.models)) > 1
            for item in self.data.identical
            if split is None or split in item.splits
        )
        return replace(value, ci95_low=None, ci95_high=None) if copies else value

    def _step_pooled(self, metric: str, some: Mapping[str, list[CurveRow]]) -> str:
        """The last step judged on all seeds of its end, where that is all data."""
        last = next(iter(some.values()))[-1]
        both = {
            name: value
            for name in some
            if on_all_data(last) and (value := self.pooled(name, metric)) is not None
        }
        if not both:
            return ""
        other = NATURAL if last.regime == UNIFORM else UNIFORM
        told = {
            name: compare(value, some[name][-2].metrics[metric]) for name, value in both.items()
        }
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
            if (values := [self.pooled(name, metric) for metric in metrics])[0] is not None
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
        best = {name: row.metrics[metric] for name, row in self._at_best(metric).items()}
        if not best:
            return []
        example = _largest(best, lambda value: value)
        top = f"Largest {what}, of {self.name(example)}" if len(best) > 1 else f"The {what}"
        return [
            f"- {lead} {self.differences(best, 'is clear', below, fixed)}. {top}: "
            f"{estimate(best[example])}."
        ]

    def _for(self, architecture: str) -> str:
        """``For alder `` where there are several architectures."""
        return f"For {self.name(architecture)} " if len(self.look.architectures) > 1 else "Here "

    def architectures(self, metric: str) -> list[str]:
        """The architectures at their best conditions, against the highest."""
        ranked = sorted(self.best.items(), key=lambda item: -(item[1].metrics[metric].mean or 0.0))
        if len(ranked) < 2:
            return []
        (top, first), *others = ranked
        told = {name: compare(first.metrics[metric], row.metrics[metric]) for name, row in others}
        return [
            f"- Between architectures, each at its best condition: {self.name(top)} has the "
            f"highest mean, {estimate(first.metrics[metric])}. That the others lie below it "
            f"{self.means(told, 'holds', 'is wrong')}.{self._pooled_ranks(metric)}"
        ]

    def _pooled_ranks(self, metric: str) -> str:
        """The same comparison on all seeds of all data, where all have these as their best."""
        both = {
            name: value
            for name, row in self.best.items()
            if on_all_data(row) and (value := self.pooled(name, metric)) is not None
        }
        if len(both) < len(self.best):
            return ""
        top = _largest(both, lambda value: value)
        told = {name: compare(both[top], value) for name, value in both.items() if name != top}
        return (
            f" On all seeds of all images, of both regimes, {self.name(top)} has the highest, "
            f"{estimate(both[top])}; that the others lie below it "
            f"{self.means(told, 'holds', 'is wrong')}."
        )

    def regimes_at_equal_cost(self, metric: str) -> list[str]:
        """global_uniform against incremental_natural where both cost about as many images."""
        pairs = {
            name: pair
            for name in self.look.architectures
            if (pair := self._equal_cost(name, metric)) is not None
        }
        if not pairs:
            return [
                f"- No two conditions of {UNIFORM} and {NATURAL} short of all data cost about as "
                f"many images (within {SAME_COST - 1:.0%}), so the regimes cannot be compared "
                "at equal cost."
            ]
        lines = []
        for some in _alike(
            pairs, lambda pair: [(row.k_or_p, row.n_images, row.source) for row in pair]
        ):
            told = {
                name: compare(uniform.headline[metric], natural.headline[metric])
                for name, (uniform, natural) in some.items()
            }
            uniform, natural = next(iter(some.values()))
            lines.append(
                f"- Between regimes, at about the same number of distinct training images "
                f"({_cost(uniform)}; {_cost(natural)}): "
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
                  for row in pair),
            ]
            for name, pair in pairs.items()
        ]  # fmt: skip
        return [*lines, "", *table(["Architecture", UNIFORM, NATURAL], rows)]

    def _equal_cost(self, architecture: str, metric: str) -> tuple[BudgetRow, BudgetRow] | None:
        """The dearest pair that costs about the same, short of all data; the closest on ties."""
        rows = [
            row
            for row in self.data.budget_curves
            if row.architecture == architecture
            and row.n_images
            and row.headline[metric].n
            and row.k_or_p != FULL_DATA.get(row.regime)
        ]
        pairs = [
            (-b.n_images, max(a.n_images, b.n_images) / min(a.n_images, b.n_images), a, b)
            for a in rows
            if a.regime == UNIFORM and a.n_images
            for b in rows
            if b.regime == NATURAL and b.n_images
        ]
        close = [pair for pair in pairs if pair[1] <= SAME_COST]
        if not close:
            return None
        _, _, uniform, natural = min(close, key=lambda pair: pair[:2])
        return uniform, natural

    # -- field photographs and unseen species ----------------------------------------------

    def field(self) -> list[str]:
        """What the best condition loses on field photographs of species it was trained on."""
        shared = max(
            (row.metrics["n_shared_species_iid_inat"].mean or 0 for row in self.best.values()),
            default=0,
        )
        return self._against(
            "photography_robustness_gap_AP_50_shared_species",
            f"Field photographs: over the {counted(round(shared), 'species', 'species')} that both "
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
        near, far, gap = "ood_near_genus_AR_100", "ood_far_tribe_AR_100", "ood_band_gap_AR_100"
        best = self._at_best(near, far, gap)
        if best:
            told = {name: row.metrics[gap] for name, row in best.items()}
            example = _largest(told, lambda value: value)
            m = best[example].metrics
            lines.append(
                "- Distance: that near species are found better than far ones "
                f"{self.differences(told, 'is clear', 'is wrong, far ones are')}. "
                f"{self._for(example)}class-agnostic AR@100 is {estimate(m[near])} on near and "
                f"{estimate(m[far])} on far species, a difference of {estimate(m[gap])}. The far "
                "band differs in density too, so distance need not be the reason: compare within "
                "one density."
            )
        return lines or [_nothing("unseen species")]

    def density(self) -> list[str]:
        """Finding on single specimens against crowded images."""
        best = {row.condition for row in self.best.values()}
        cells = {
            (row.architecture, row.stratum): row.metrics["image_mean_recall"]
            for row in self.data.density_curves
            if (row.split, row.band) == ("semantic_ood", "")
            and row.condition in best
            and row.metrics["image_mean_recall"].n
        }
        pairs = {
            name: (cells[name, "1"], cells[name, ">10"])
            for name in self.best
            if (name, "1") in cells and (name, ">10") in cells
        }
        if not pairs:
            return []
        gaps = {name: self.best[name].differences[RECALL_1_MINUS_OVER_10] for name in pairs}
        example = _largest(gaps, lambda value: value)
        one, many = pairs[example]
        return [
            "- Density: that specimens alone on their image are found better than those among "
            f"more than ten {self.differences(gaps, 'is clear', 'is wrong')}. "
            f"{self._for(example)}{estimate(one)} of single unseen specimens are found and "
            f"{estimate(many)} of those on crowded images (means over images), a difference of "
            f"{estimate(gaps[example])}."
        ]

    # -- rare and common species -----------------------------------------------------------

    def rare(self) -> list[str]:
        """The gap between head and tail species at both ends of each regime."""
        metric = "iid_head_minus_tail_AP_50"
        lines, rows = [], []
        for regime in (UNIFORM, NATURAL):
            ends = {
                name: cells
                for name in self.look.architectures
                if (cells := self._defined(name, regime, metric))
            }
            for some in _alike(ends, lambda cells: [budget(cells[at]) for at in (0, -1)]):
                first, last = (next(iter(some.values()))[at] for at in (0, -1))
                gaps = {name: cells[-1].metrics[metric] for name, cells in some.items()}
                example = _largest(gaps, lambda value: value)
                text = (
                    f"- {regime}, at {budget(last)}: that rare species are served worse than "
                    "common ones "
                    f"{self.differences(gaps, 'is clear', 'is wrong, they are served better')}. "
                    f"{self._for(example)}head minus tail AP@.5 is {estimate(gaps[example])}."
                )
                if first is not last:
                    moved = {
                        name: compare(gaps[name], cells[0].metrics[metric])
                        for name, cells in some.items()
                    }
                    text += (
                        f" That this gap is wider than at {budget(first)} "
                        f"{self.means(moved, 'holds', 'is wrong, it is narrower')}."
                    )
                lines.append(text)
            rows += [
                [
                    self.name(name),
                    regime,
                    f"{budget(cells[0])}: {estimate(cells[0].metrics[metric])}",
                    f"{budget(cells[-1])}: {estimate(cells[-1].metrics[metric])}",
                ]
                for name, cells in ends.items()
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
        best = self._at_best(found, lost)
        if not best:
            return [_nothing(f"scored specimens {where}")]
        told = {
            name: row.differences[CLASSIFICATION_MINUS_LOCALISATION[split]]
            for name, row in best.items()
        }
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
            f"{estimate(told[example])}.",
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
                        estimate(told[name]),
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
        names = list(dict.fromkeys(key[0] for key in cells))
        budgets = [k for k in self.look.budgets.get(TARGETS, []) if any(k == c[2] for c in cells)]
        if len(budgets) < 2:
            return [_nothing(f"two budgets of {TARGETS} with target species")]
        gaps = {
            name: {
                row.k_or_p: row.differences[NEAR_TARGETS]
                for row in self.look.rows(name, TARGETS)
                if row.differences[NEAR_TARGETS].n
            }
            for name in names
        }
        # with no image of its own a species' name was never shown: relatives show from k > 0 on
        first = {n: next((k for k in own if k != "0"), "") for n, own in gaps.items()}
        last = {n: list(own)[-1] for n, own in gaps.items() if own}
        lines = []
        for which, lead, far_ahead in (
            (first, "Relatives", "is wrong, far ones do"),
            (last, "Own images", "is wrong, far ones do"),
        ):
            told = {n: k for n, k in which.items() if k and (which is first or k != first[n])}
            for some in _alike(told, lambda k: [k]):
                k = next(iter(some.values()))
                here = {name: gaps[name][k] for name in some}
                example = _largest(here, lambda value: value)
                near, far = (cells[example, band, k] for band in ("near_genus", "far_tribe"))
                lines.append(
                    f"- {lead}, at k={k}: that near targets do better than far ones "
                    f"{self.differences(here, 'is clear', far_ahead)}. {self._for(example)}"
                    f"AP@.5 is {estimate(near)} on near and {estimate(far)} on far targets, a "
                    f"difference of {estimate(here[example])}."
                )
        ends = [*first.values(), *last.values(), budgets[0], budgets[-1]]
        shown = [k for k in budgets if k in ends]
        rows = [
            [self.name(name), BAND_LABEL[band], *(
                estimate(cells.get((name, band, k), UNDEFINED)) for k in shown
            )]
            for name in names
            for band in BAND_LABEL
        ]  # fmt: skip
        header = ["Architecture", "Target species", *(f"AP@.5 at k={k}" for k in shown)]
        return [*lines, *self._target_gap(), "", *table(header, rows, left=2)]

    def _target_gap(self) -> list[str]:
        """Target minus other species where targets have the most images."""
        last = {
            row.architecture: row
            for row in self.data.target_vs_nontarget
            if row.split == "iid_test" and row.gap_AP_50.n
        }
        if not last:
            return []
        lines = []
        for some in _alike(last, lambda row: [row.k]):
            told = {name: row.gap_AP_50 for name, row in some.items()}
            example = _largest(told, lambda value: value)
            lines.append(
                f"- Against the other species, at k={some[example].k}: that targets are ahead "
                f"{self.differences(told, 'is clear', 'is wrong, they are behind')}. "
                f"{self._for(example)}target minus others is {estimate(told[example])}."
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


def on_all_data(row: CurveRow) -> bool:
    """Whether a condition trains on all images."""
    return FULL_DATA.get(row.regime) == row.k_or_p


def _cost(row: BudgetRow) -> str:
    return f"{row.regime} {budget(row)}: {images(row)} images"


def _alike(items: Mapping[str, T], key: Callable[[T], Iterable[Hashable]]) -> list[dict[str, T]]:
    """The items in groups of equal key, in the order they come."""
    groups: dict[tuple[Hashable, ...], dict[str, T]] = {}
    for name, item in items.items():
        groups.setdefault(tuple(key(item)), {})[name] = item
    return list(groups.values())


def _largest(items: Mapping[str, T], value: Callable[[T], Estimate]) -> str:
    """The key with the largest mean, the first on ties."""
    return max(items, key=lambda key: _or_low(value(items[key]).mean))


def _or_low(mean: float | None) -> float:
    return float("-inf") if mean is None else mean


def best_threshold(data: Aggregated, architecture: str) -> OperatingRow | None:
    """The cut with the highest mean F1 over all seeds in distribution, the lowest on ties."""
    best: OperatingRow | None = None
    for row in data.operating_curves:
        if (row.architecture, row.split) != (architecture, "iid_test"):
            continue
        f1 = row.metrics["F1"]
        if f1.mean is None or f1.n < row.metrics["recall"].n:
            continue
        if best is None or f1.mean > _or_low(best.metrics["F1"].mean):
            best = row
    return best


def _nothing(what: str) -> str:
    return f"- Nothing to say: this sweep lacks {what}."
