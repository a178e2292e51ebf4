"""What the numbers say, question by question: a few sentences, then the table behind them.

Two means are called different only where their 95 % intervals share no value; otherwise the
sentence says that it cannot be told. Every number in a sentence carries its interval and n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from benchmark_eval.catalogue import BAND_LABEL, SPLIT_PREFIX
from benchmark_eval.manifest import REGIMES
from benchmark_eval.report.lookup import BY_NAME, Lookup
from benchmark_eval.report.markdown import (
    MISSING,
    count,
    escape,
    estimate,
    listing,
    number,
    table,
)
from benchmark_eval.report.reference import FULL_DATA
from benchmark_eval.sweep.aggregation import best_conditions
from benchmark_eval.sweep.statistics import UNDEFINED, Estimate, Verdict, compare, compare_to
from benchmark_eval.sweep.tables import Aggregated, BudgetRow, CurveRow, OperatingRow

UNIFORM, NATURAL, TARGETS = REGIMES
SAME_COST = 1.25
"""Two conditions cost about the same when neither has over this times the other's images."""
UNTOLD = "cannot be told (the intervals overlap)"
T = TypeVar("T")
HOLDS_0 = "cannot be told (the interval holds 0)"
ONE_SEED = "cannot be told (one seed)"


class Facts:
    """The tables of a sweep in words. Every method returns lines of Markdown."""

    def __init__(self, data: Aggregated) -> None:
        self.data = data
        self.look = Lookup(data)
        self.best = best_conditions(data.learning_curves)

    # -- helpers ---------------------------------------------------------------------------

    def name(self, architecture: str) -> str:
        """An architecture as text."""
        return escape(self.look.label(architecture))

    def tally(
        self, verdicts: Mapping[str, Verdict], above: str, below: str, overlap: str = UNTOLD
    ) -> str:
        """``grows for all 3 architectures``; ``grows for alder; cannot be told for birch``."""
        words = {
            "above": above,
            "below": below,
            "overlap": overlap,
            "no interval": ONE_SEED,
            "undefined": "is not defined",
        }
        groups: dict[str, list[str]] = {}
        for architecture, verdict in verdicts.items():
            groups.setdefault(words[verdict], []).append(self.name(architecture))
        if len(verdicts) == 1:
            return next(iter(groups))
        if len(groups) == 1:
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
            if not ends:
                continue
            grown = {
                name: compare(cells[-1].metrics[metric], cells[0].metrics[metric])
                for name, cells in ends.items()
            }
            step = {
                name: compare(cells[-1].metrics[metric], cells[-2].metrics[metric])
                for name, cells in ends.items()
            }
            example = _largest(ends, lambda cells: cells[-1].metrics[metric])
            first, last = ends[example][0], ends[example][-1]
            lines.append(
                f"- {regime}: {BY_NAME[metric].metric.label} "
                f"{self.tally(grown, 'grows with data', 'falls with data')}. "
                f"{self._for(example)}it goes from {estimate(first.metrics[metric])} at "
                f"{budget(first)} to {estimate(last.metrics[metric])} at {budget(last)}. "
                f"A gain in the last step, to {budget(last)}: "
                f"{self.tally(step, 'yes', 'no, a loss')}."
            )
            rows += [
                [
                    self.name(name),
                    regime,
                    f"{budget(cells[0])}: {estimate(cells[0].metrics[metric])}",
                    f"{budget(cells[-2])}: {estimate(cells[-2].metrics[metric])}",
                    f"{budget(cells[-1])}: {estimate(cells[-1].metrics[metric])}",
                ]
                for name, cells in ends.items()
            ]
        if not lines:
            return [_nothing("a regime with two budgets")]
        header = ["Architecture", "Regime", "Smallest budget", "Last but one", "Largest"]
        return [*lines, "", *table(header, rows, left=2)]

    def _against(
        self, metric: str, fixed: float, lead: str, words: tuple[str, str], what: str
    ) -> list[str]:
        """A metric at the best conditions against a fixed number: one bullet, or none.

        ``words`` say that it lies above, and below; ``what`` is what its largest mean is of.
        """
        best = self._at_best(metric)
        if not best:
            return []
        told = {name: compare_to(row.metrics[metric], fixed) for name, row in best.items()}
        example = _largest(best, lambda row: row.metrics[metric])
        top = f"Largest {what}, of {self.name(example)}" if len(best) > 1 else f"The {what}"
        within = f"cannot be told (the interval holds {fixed:g})"
        return [
            f"- {lead} {self.tally(told, *words, within)}. {top}: "
            f"{estimate(best[example].metrics[metric])}."
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
        groups: dict[str, list[str]] = {}
        for name, row in others:
            verdict = compare(first.metrics[metric], row.metrics[metric])
            words = {"above": "holds", "overlap": UNTOLD, "no interval": ONE_SEED}
            groups.setdefault(words.get(verdict, "is not defined"), []).append(self.name(name))
        leads = "; ".join(f"over {listing(names)} {text}" for text, names in groups.items())
        return [
            f"- Between architectures, each at its best condition: {self.name(top)} has the "
            f"highest mean, {estimate(first.metrics[metric])}. Its lead {leads}."
        ]

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
        told = {
            name: compare(uniform.headline[metric], natural.headline[metric])
            for name, (uniform, natural) in pairs.items()
        }
        uniform, natural = pairs[next(iter(pairs))]
        lines = [
            f"- Between regimes, at about the same number of distinct training images "
            f"({UNIFORM} k={uniform.k_or_p}: {_images(uniform)}, {NATURAL} "
            f"p={natural.k_or_p}: {_images(natural)}): "
            + self.tally(
                told,
                "equal shares of every species buy more",
                "the natural mix buys more",
                "which buys more cannot be told (the intervals overlap)",
            )
            + "."
        ]
        rows = [
            [
                self.name(name),
                f"k={uniform.k_or_p}, {_images(uniform)}: {estimate(uniform.headline[metric])}",
                f"p={natural.k_or_p}, {_images(natural)}: {estimate(natural.headline[metric])}",
            ]
            for name, (uniform, natural) in pairs.items()
        ]
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
            0,
            f"Field photographs: over the {count(round(shared), 'species', 'species')} that both "
            "splits hold, a loss of AP@.5 against curated photographs",
            ("shows", "is none, it gains"),
            "loss",
        ) or [_nothing("species scored both in distribution and on field photographs")]

    def unseen(self) -> list[str]:
        """What the best condition loses on unseen species, and by their distance."""
        lines = self._against(
            "species_generalization_gap_AR_100",
            0,
            "Unseen species: a loss of class-agnostic AR@100 against trained species",
            ("shows", "is none, it gains"),
            "loss",
        )
        near, far = "ood_near_genus_AR_100", "ood_far_tribe_AR_100"
        best = self._at_best(near, far)
        if best:
            told = {n: compare(r.metrics[near], r.metrics[far]) for n, r in best.items()}
            example = _largest(best, lambda row: row.metrics[near])
            row = best[example]
            lines.append(
                "- Distance: that near species are found better than far ones "
                f"{self.tally(told, 'holds', 'is wrong, far ones are')}. {self._for(example)}"
                f"class-agnostic AR@100 is {estimate(row.metrics[near])} on near and "
                f"{estimate(row.metrics[far])} on far species. The far band differs in density "
                "too, so distance need not be the reason: compare within one density."
            )
        return lines or [_nothing("unseen species")]

    def density(self) -> list[str]:
        """Finding on single specimens against crowded images."""
        cells = {
            (row.architecture, row.stratum): row.metrics["image_mean_recall"]
            for row in self.data.density_curves
            if (row.split, row.band) == ("semantic_ood", "")
            and row.architecture in self.best
            and (row.regime, row.k_or_p)
            == (self.best[row.architecture].regime, self.best[row.architecture].k_or_p)
            and row.metrics["image_mean_recall"].n
        }
        pairs = {
            name: (cells[name, "1"], cells[name, ">10"])
            for name in self.best
            if (name, "1") in cells and (name, ">10") in cells
        }
        if not pairs:
            return []
        told = {name: compare(one, many) for name, (one, many) in pairs.items()}
        example = _largest(pairs, lambda pair: pair[0])
        one, many = pairs[example]
        return [
            "- Density: that specimens alone on their image are found better than those among "
            f"more than ten {self.tally(told, 'holds', 'is wrong')}. {self._for(example)}"
            f"{estimate(one)} of single unseen specimens are found and {estimate(many)} of those "
            "on crowded images (means over images)."
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
            if not ends:
                continue
            worse = {n: compare_to(c[-1].metrics[metric], 0.0) for n, c in ends.items()}
            example = _largest(ends, lambda cells: cells[-1].metrics[metric])
            first, last = ends[example][0], ends[example][-1]
            text = (
                f"- {regime}, at {budget(last)}: that rare species are served worse than common "
                f"ones {self.tally(worse, 'holds', 'is wrong, they are served better', HOLDS_0)}. "
                f"{self._for(example)}head minus tail AP@.5 is {estimate(last.metrics[metric])}."
            )
            if len(ends[example]) > 1:
                moved = {
                    n: compare(c[-1].metrics[metric], c[0].metrics[metric]) for n, c in ends.items()
                }
                text += (
                    f" A change of this gap since {budget(first)}: "
                    f"{self.tally(moved, 'it widens', 'it narrows')}."
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
        found, named, both, lost = (
            f"{prefix}_{key}"
            for key in (
                "detection_recall",
                "classification_given_detection_acc",
                "species_recall",
                "classification_loss",
            )
        )
        best = self._at_best(found, lost)
        if not best:
            return [_nothing(f"scored specimens {where}")]
        told = {
            name: compare(row.metrics[lost], _complement(row.metrics[found]))
            for name, row in best.items()
        }
        example = _largest(best, lambda row: row.metrics[both])
        m = best[example].metrics
        header = ["Architecture", "Found", "Named right, of found", "Both", "Lost to names"]
        return [
            f"- {where[0].upper()}{where[1:]} the bottleneck "
            f"{self.tally(told, 'is naming', 'is finding')}. {self._for(example)}"
            f"{estimate(m[found])} of the specimens are found and {estimate(m[named])} of those "
            f"named right, {estimate(m[both])} together.",
            "",
            *table(
                [*header, "Missed"],
                [
                    [
                        self.name(name),
                        *(estimate(row.metrics[key]) for key in (found, named, both, lost)),
                        estimate(_complement(row.metrics[found])),
                    ]
                    for name, row in best.items()
                ],
            ),
        ]

    def cuts(self) -> list[str]:
        """The confidence cut with the highest mean F1 in distribution."""
        rows = []
        for name in self.best:
            chosen = _best_cut(
                row
                for row in self.data.operating_curves
                if (row.architecture, row.split) == (name, "iid_test")
            )
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
                        number(m["false_alarms_per_image"].mean),
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
        budgets = list(dict.fromkeys(key[2] for key in cells))
        names = list(dict.fromkeys(key[0] for key in cells))
        if len(budgets) < 2:
            return [_nothing(f"two budgets of {TARGETS} with target species")]
        last = budgets[-1]
        # with no image of its own a species' name was never shown: relatives show from k > 0 on
        first = next((k for k in budgets if k not in ("0", last)), budgets[0])
        shown = list(dict.fromkeys([budgets[0], first, last]))

        def told(k: str) -> dict[str, Verdict]:
            return {
                name: compare(
                    cells.get((name, "near_genus", k), UNDEFINED),
                    cells.get((name, "far_tribe", k), UNDEFINED),
                )
                for name in names
            }

        example = _largest(
            {name: name for name in names}, lambda n: cells.get((n, "near_genus", last), UNDEFINED)
        )
        near = estimate(cells.get((example, "near_genus", first), UNDEFINED))
        far = estimate(cells.get((example, "far_tribe", first), UNDEFINED))
        lines = [
            f"- Relatives: that at k={first} near targets do better than far ones "
            f"{self.tally(told(first), 'holds', 'is wrong, far ones do')}. {self._for(example)}"
            f"AP@.5 is {near} on near and {far} on far targets.",
            f"- Own images: at k={last} the same lead of near over far targets "
            f"{self.tally(told(last), 'holds', 'is none, far ones lead')}.",
        ]
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
        told = {name: compare_to(row.gap_AP_50, 0.0) for name, row in last.items()}
        example = _largest(last, lambda row: row.gap_AP_50)
        row = last[example]
        return [
            f"- Against the other species, at k={row.k}: that targets are ahead "
            f"{self.tally(told, 'holds', 'is wrong, they are behind', HOLDS_0)}. "
            f"{self._for(example)}target minus others is {estimate(row.gap_AP_50)}."
        ]

    # -- confidence ------------------------------------------------------------------------

    def confidence(self) -> list[str]:
        """Whether confidence can be trusted, and whether it tells unseen species."""
        auroc = "novelty_det_AUROC"
        lines = self._against(
            "confidence_drop_OOD",
            0,
            "Confidence that falls on unseen species:",
            ("yes", "no, it rises"),
            "fall of the mean confidence",
        )
        lines += self._against(
            auroc,
            0.5,
            "Low confidence as a sign of an unseen species, better than chance (0.5):",
            ("yes", "no, worse"),
            "AUROC",
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


def budget(row: CurveRow) -> str:
    """``k=5``, ``p=0.1``."""
    return f"{'p' if row.regime == NATURAL else 'k'}={row.k_or_p}"


def condition(row: CurveRow) -> str:
    """``global_uniform k=5``."""
    return f"{row.regime} {budget(row)}"


def _images(row: BudgetRow) -> str:
    about = "about " if row.source == "expected" else ""
    return MISSING if row.n_images is None else f"{about}{row.n_images:,.0f} images"


def _largest(items: Mapping[str, T], value: Callable[[T], Estimate]) -> str:
    """The key with the largest mean, the first on ties."""
    return max(items, key=lambda key: _or_low(value(items[key]).mean))


def _or_low(mean: float | None) -> float:
    return float("-inf") if mean is None else mean


def _complement(value: Estimate) -> Estimate:
    """The estimate of 1 minus a share."""
    if value.mean is None:
        return value
    low = None if value.ci95_high is None else 1 - value.ci95_high
    high = None if value.ci95_low is None else 1 - value.ci95_low
    return Estimate(1 - value.mean, value.std, value.n, low, high)


def _best_cut(rows: Iterable[OperatingRow]) -> OperatingRow | None:
    """The cut with the highest mean F1 over all seeds, the lowest on ties."""
    best: OperatingRow | None = None
    for row in rows:
        f1 = row.metrics["F1"]
        if f1.mean is None or f1.n < row.metrics["recall"].n:
            continue
        if best is None or f1.mean > _or_low(best.metrics["F1"].mean):
            best = row
    return best


def _nothing(what: str) -> str:
    return f"- Nothing to say: this sweep lacks {what}."
