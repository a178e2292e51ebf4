"""Sentences made from the numbers: every one carries n and interval, none says more than they do.

Two means are called different only where their 95 % intervals share no value; otherwise the
sentence says that it cannot be told.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmark_eval.catalogue import BAND_LABEL
from benchmark_eval.manifest import REGIMES
from benchmark_eval.report.lookup import Lookup
from benchmark_eval.report.markdown import escape, estimate, number, signed
from benchmark_eval.report.reference import FULL_DATA
from benchmark_eval.sweep.aggregation import best_conditions
from benchmark_eval.sweep.statistics import UNDEFINED, Estimate, Verdict, compare, compare_to
from benchmark_eval.sweep.tables import Aggregated, BudgetRow, CurveRow

UNIFORM, NATURAL, TARGETS = REGIMES
SAME_COST = 1.25
"""Two conditions cost about the same when neither has over this times the other's images."""


class Facts:
    """The tables of a sweep as sentences, a list of bullets a question."""

    def __init__(self, table: Aggregated) -> None:
        self.table = table
        self.look = Lookup(table)
        self.best = best_conditions(table.learning_curves)

    def who(self, architecture: str) -> str:
        """The architecture in bold, as a bullet begins."""
        return f"**{escape(self.look.label(architecture))}**"

    def ends(self, architecture: str, regime: str, metric: str) -> list[CurveRow]:
        """The conditions of a regime where the metric is defined, by rising budget."""
        rows = self.look.rows(architecture, regime)
        return [row for row in rows if row.metrics[metric].n]

    # -- how quality grows with data ------------------------------------------------------

    def growth(self, metric: str) -> list[str]:
        """From the smallest to the largest budget of each regime, and whether it still rises."""
        lines = []
        for name in self.look.architectures:
            for regime in (UNIFORM, NATURAL):
                rows = self.ends(name, regime, metric)
                if len(rows) < 2:
                    continue
                first, before, last = rows[0], rows[-2], rows[-1]
                low, high = first.metrics[metric], last.metrics[metric]
                text = (
                    f"- {self.who(name)}, {regime}: {estimate(low)} at {budget(first)}, "
                    f"{estimate(high)} at {budget(last)}"
                )
                text += {
                    "above": "; it grows with data.",
                    "below": "; it falls with data.",
                    "overlap": "; the intervals overlap, so growth cannot be told.",
                }.get(compare(high, low), "; with one seed the size of a change cannot be told.")
                if len(rows) > 2:
                    text += " " + _last_step(before, last, metric)
                lines.append(text)
        return lines or [_nothing("a regime with two budgets")]

    def regimes_at_equal_cost(self, metric: str) -> list[str]:
        """global_uniform against incremental_natural where both cost about as many images."""
        lines = []
        for name in self.look.architectures:
            pair = self._equal_cost(name, metric)
            if pair is None:
                lines.append(
                    f"- {self.who(name)}: no two conditions of {UNIFORM} and {NATURAL} short of "
                    f"all data cost about as many images (within {SAME_COST - 1:.0%})."
                )
                continue
            uniform, natural = pair
            left, right = uniform.headline[metric], natural.headline[metric]
            lines.append(
                f"- {self.who(name)}: {UNIFORM} k={uniform.k_or_p} "
                f"({_images(uniform)}) reaches {estimate(left)}, {NATURAL} p={natural.k_or_p} "
                f"({_images(natural)}) {estimate(right)}. "
                + _verdict(
                    compare(left, right),
                    "For this budget equal shares of every species buy more.",
                    "For this budget the natural mix buys more.",
                    "Which of the two buys more cannot be told: the intervals overlap.",
                )
            )
        return lines

    def _equal_cost(self, architecture: str, metric: str) -> tuple[BudgetRow, BudgetRow] | None:
        """The dearest pair that costs about the same, short of all data; the closest on ties."""
        rows = [
            row
            for row in self.table.budget_curves
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

    def architectures(self, metric: str) -> list[str]:
        """The architectures at their best conditions, against the first of them."""
        ranked = sorted(self.best.items(), key=lambda item: -(item[1].metrics[metric].mean or 0.0))
        if len(ranked) < 2:
            return []
        (top, first), *others = ranked
        lines = [
            f"- Highest mean: {self.who(top)} ({condition(first)}) with "
            f"{estimate(first.metrics[metric])}."
        ]
        for name, row in others:
            told = compare(first.metrics[metric], row.metrics[metric])
            lines.append(
                f"- {self.who(name)} ({condition(row)}): {estimate(row.metrics[metric])}. "
                + _verdict(
                    told,
                    f"Lower than {escape(self.look.label(top))}.",
                    f"Higher than {escape(self.look.label(top))}.",
                    f"Cannot be told from {escape(self.look.label(top))}: the intervals overlap.",
                )
            )
        return lines

    # -- field photographs and unseen species ---------------------------------------------

    def field(self) -> list[str]:
        """What the best condition loses on field photographs of species it was trained on."""
        metric = "photography_robustness_gap_AP_50_shared_species"
        lines = []
        for name, row in self.best.items():
            gap = row.metrics[metric]
            shared = row.metrics["n_shared_species_iid_inat"].mean
            over = f" over {shared:.0f} shared species" if shared else ""
            lines.append(
                f"- {self.who(name)} ({condition(row)}): AP@.5 falls by "
                f"{estimate(gap, sign=True)}{over} from curated to field photographs. "
                + _against_zero(gap, "The loss is real.", "The field photographs are easier.")
            )
        return lines

    def unseen(self) -> list[str]:
        """What the best condition loses on unseen species, and by their distance."""
        lines = []
        for name, row in self.best.items():
            gap = row.metrics["species_generalization_gap_AR_100"]
            near, far = (row.metrics[f"ood_{band}_AR_100"] for band in ("near_genus", "far_tribe"))
            text = (
                f"- {self.who(name)} ({condition(row)}): class-agnostic AR@100 differs by "
                f"{estimate(gap, sign=True)} between trained and unseen species. "
            )
            if near.n and far.n:
                text += (
                    f"It is {estimate(near)} on near species and {estimate(far)} on far ones. "
                    + _verdict(
                        compare(near, far),
                        "Near species are found better; the far band is also the most densely "
                        "photographed, so distance alone need not be the reason.",
                        "Far species are found better.",
                        "Whether distance matters cannot be told: the intervals overlap.",
                    )
                )
            lines.append(text)
        return lines

    # -- rare and common species ----------------------------------------------------------

    def rare(self) -> list[str]:
        """The gap between head and tail species at both ends of each regime."""
        metric = "iid_head_minus_tail_AP_50"
        lines = []
        for name in self.look.architectures:
            for regime in (UNIFORM, NATURAL):
                rows = self.ends(name, regime, metric)
                if not rows:
                    continue
                first, last = rows[0], rows[-1]
                text = (
                    f"- {self.who(name)}, {regime}: head minus tail is "
                    f"{estimate(last.metrics[metric], sign=True)} at {budget(last)}. "
                    + _against_zero(
                        last.metrics[metric],
                        "Rare species are served worse.",
                        "Rare species are served better.",
                    )
                )
                if len(rows) > 1:
                    text += (
                        f" At {budget(first)} it was "
                        f"{estimate(first.metrics[metric], sign=True)}; "
                        + _verdict(
                            compare(last.metrics[metric], first.metrics[metric]),
                            "it widens with data.",
                            "it narrows with data.",
                            "whether data change it cannot be told.",
                        )
                    )
                lines.append(text)
        return lines or [_nothing("head and tail species (training annotations are needed)")]

    # -- finding against naming -----------------------------------------------------------

    def finding(self, prefix: str) -> list[str]:
        """Which loses more specimens at the best condition: not finding, or wrong names."""
        lines = []
        for name, row in self.best.items():
            found = row.metrics[f"{prefix}_detection_recall"]
            named = row.metrics[f"{prefix}_classification_given_detection_acc"]
            both = row.metrics[f"{prefix}_species_recall"]
            lost = row.metrics[f"{prefix}_classification_loss"]
            if found.mean is None:
                continue
            missed = Estimate(
                1 - found.mean, found.std, found.n, _flip(found.ci95_high), _flip(found.ci95_low)
            )
            lines.append(
                f"- {self.who(name)} ({condition(row)}): finds {estimate(found)} of the "
                f"specimens and names {estimate(named)} of those rightly; both together "
                f"{estimate(both)}. Wrong names cost {number(lost.mean)} of all specimens, "
                f"missed ones {number(missed.mean)}. "
                + _verdict(
                    compare(lost, missed),
                    "Naming is the bottleneck.",
                    "Finding is the bottleneck.",
                    "Which of the two costs more cannot be told: the intervals overlap.",
                )
            )
        return lines or [_nothing("the split")]

    # -- target species -------------------------------------------------------------------

    def targets(self) -> list[str]:
        """What the first and the last images of a target species buy, by band."""
        rows = [row for row in self.table.target_species_curves if row.split == "iid_test"]
        lines = []
        for name in dict.fromkeys(row.architecture for row in rows):
            bits = []
            for band, label in BAND_LABEL.items():
                cells = [r for r in rows if (r.architecture, r.band) == (name, band) and r.AP_50.n]
                if len(cells) < 2:
                    continue
                low, high = cells[0].AP_50, cells[-1].AP_50
                bits.append(
                    f"{label}: {estimate(low)} at k={cells[0].k}, {estimate(high)} at "
                    f"k={cells[-1].k}"
                    + _verdict(
                        compare(high, low), "", " (lower)", " (cannot be told apart)", one=""
                    )
                )
            if bits:
                lines.append(f"- {self.who(name)}: AP@.5 of target species, {'; '.join(bits)}.")
        return lines or [_nothing(f"two budgets of {TARGETS} with target species")]

    def target_gap(self) -> list[str]:
        """Target minus other species where targets have the most images."""
        lines = []
        rows = [
            row
            for row in self.table.target_vs_nontarget
            if row.split == "iid_test" and row.gap_AP_50.n
        ]
        for name in dict.fromkeys(row.architecture for row in rows):
            last = [row for row in rows if row.architecture == name][-1]
            lines.append(
                f"- {self.who(name)}: with k={last.k} images the targets stand "
                f"{estimate(last.gap_AP_50, sign=True)} AP@.5 from the other species. "
                + _against_zero(
                    last.gap_AP_50,
                    "They have overtaken the others.",
                    "They are still behind.",
                )
            )
        return lines

    # -- confidence -----------------------------------------------------------------------

    def confidence(self) -> list[str]:
        """Whether confidence can be trusted, and whether it tells unseen species."""
        lines = []
        for name, row in self.best.items():
            m = row.metrics
            auroc = m["novelty_det_AUROC"]
            text = (
                f"- {self.who(name)} ({condition(row)}): calibration error "
                f"{estimate(m['iid_ECE'])} in distribution, {estimate(m['ood_ECE'])} on unseen "
                f"species; mean confidence changes by {signed(_negative(m['confidence_drop_OOD']))}"
                " from the first to the second. "
            )
            if auroc.n:
                text += f"Novelty AUROC is {estimate(auroc)}. " + _verdict(
                    compare_to(auroc, 0.5),
                    "Low confidence points to unseen species better than chance.",
                    "Low confidence points away from unseen species.",
                    "That cannot be told from chance (0.5).",
                )
            lines.append(text)
        return lines


def budget(row: CurveRow) -> str:
    """``k=5``, ``p=0.1``."""
    return f"{'p' if row.regime == NATURAL else 'k'}={row.k_or_p}"


def condition(row: CurveRow) -> str:
    """``global_uniform k=5``."""
    return f"{row.regime} {budget(row)}"


def _images(row: BudgetRow) -> str:
    about = "about " if row.source == "expected" else ""
    return f"{about}{row.n_images:,.0f} images"


def _last_step(before: CurveRow, last: CurveRow, metric: str) -> str:
    step = f"The last step, from {budget(before)},"
    return {
        "above": f"{step} still brings a gain.",
        "below": f"{step} brings a loss.",
        "overlap": f"{step} brings no change that can be told.",
    }.get(compare(last.metrics[metric], before.metrics[metric]), "")


def _verdict(
    verdict: Verdict,
    above: str,
    below: str,
    overlap: str,
    one: str = "With one seed on a side this cannot be told.",
) -> str:
    return {"above": above, "below": below, "overlap": overlap, "no interval": one}.get(
        verdict, "Not defined on a side."
    )


def _against_zero(value: Estimate, above: str, below: str) -> str:
    return _verdict(
        compare_to(value, 0.0), above, below, "The interval holds 0, so this cannot be told."
    )


def _flip(value: float | None) -> float | None:
    return None if value is None else 1 - value


def _negative(value: Estimate) -> float | None:
    return None if value.mean is None else -value.mean


def _nothing(what: str) -> str:
    return f"- Nothing to say: this sweep lacks {what}."


def metric_at(rows: Sequence[CurveRow], regime: str, k_or_p: str, metric: str) -> Estimate:
    """One estimate of the learning curves, undefined where there is no such condition."""
    for row in rows:
        if (row.regime, row.k_or_p) == (regime, k_or_p):
            return row.metrics[metric]
    return UNDEFINED
