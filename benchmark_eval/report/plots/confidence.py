"""Whether confidence can be trusted: reliability, and known against unseen species."""

from __future__ import annotations

from collections import defaultdict

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.report import figures
from benchmark_eval.report.looks import BAND_LOOK, Look
from benchmark_eval.report.plots.text import interval, number
from benchmark_eval.report.plots.view import View, ends
from benchmark_eval.results.registry import SPLIT_LABEL
from benchmark_eval.sweep.table_rows import HistogramRow, NoveltyRow, ReliabilityRow

_FEWEST = 10
"""Fewest detections of a bin that is drawn."""
_EVENTS = {
    ("detected", "all"): "true positives,\nof all detections",
    ("detected", "operating"): "true positives, of\ndetections kept",
    ("identified", "all"): "correctly identified,\nof true positives",
}
"""What is observed, by event and threshold."""
_NO_EVIDENCE = "Not shown: no model has an evidence file (<model>_evidence.npz); evaluate again."
_NO_POSITIVES = "Not shown: no model has true positives."


def reliability(view: View, title: str) -> Figure:
    """Observed fraction by mean confidence, in bins of equally many detections."""
    rows: dict[tuple[tuple[str, str], str, str], list[ReliabilityRow]] = defaultdict(list)
    for row in view.table.reliability:
        if row.n >= _FEWEST:
            rows[(row.event, row.threshold), row.split, row.architecture].append(row)
    splits = [split for split in TEST_SPLITS if any(key[1] == split for key in rows)]
    events = [event for event in _EVENTS if any(key[0] == event for key in rows)]
    names = [name for name in view.shown if any(key[2] == name for key in rows)]
    if not names:
        why = _NO_EVIDENCE if view.table.without_evidence else "Not shown: no model has detections."
        return figures.blank(title, why)
    page = figures.Page(len(events), len(splits), height=1.45, left=0.66, gap=0.14)
    for line, event in zip(page.axes, events, strict=True):
        last = line is page.axes[-1]
        for panel, split in zip(line, splits, strict=True):
            panel.plot(
                [0, 1],
                [0, 1],
                color=figures.GREY,
                linewidth=0.7,
                linestyle=(0, (4, 3)),
                label="calibrated",
                zorder=1.5,
            )
            for name in names:
                _curve(panel, rows.get((event, split, name), []), view.looks[name], name)
            if not any(rows.get((event, split, name)) for name in names):
                fixed = event[0] == "identified" and split == "semantic_ood"
                text = (
                    "0 by construction:\nno correct name exists"
                    if fixed
                    else f"fewer than {_FEWEST} detections\nin every bin"
                )
                panel.text(
                    0.5,
                    0.5,
                    text,
                    ha="center",
                    va="center",
                    fontsize=figures.SMALL,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                )
            panel.set_xlim(-0.02, 1.02)
            panel.set_ylim(-0.02, 1.02)
            panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
            panel.tick_params(labelbottom=last)
            if last:
                panel.set_xlabel("mean confidence of the bin")
        line[0].set_ylabel(_EVENTS[event])
        figures.only_left_labels(line)
    for panel, split in zip(page.axes[0], splits, strict=True):
        panel.set_title(SPLIT_LABEL[split])
    first = next(iter(rows.values()))[0]
    sizes = [row.n for found in rows.values() for row in found]
    return page.headings(
        title,
        [view.looks[name] for name in names] if len(view.architectures) > 1 else [],
        "Best condition of each architecture. Bins hold about equally many detections of all "
        f"{first.n_seeds} seeds together ({min(sizes):,} to {max(sizes):,} per bin), so most of "
        f"them lie where most detections "
        f"are; bins of fewer than {_FEWEST} are not drawn. Kept: at or above the operating "
        f"threshold. Dashed: calibrated. Bar: 95 % interval over species and retraining."
        f"{view.others_note()}",
    )


def _curve(panel: Axes, found: list[ReliabilityRow], look: Look, name: str) -> None:
    if not found:
        return
    key = f"{found[0].event}|{found[0].threshold}|{found[0].split}|{name}"
    spans = [
        (row.mean_confidence, *limits)
        for row in found
        if (limits := ends(row.ci95_low, row.ci95_high)) is not None
    ]
    figures.bars(panel, spans, f"species|{key}", look.color, linewidth=0.7)
    panel.plot(
        [row.mean_confidence for row in found],
        [row.observed for row in found],
        color=look.color,
        marker=look.marker,
        markersize=2.8,
        markeredgecolor="white",
        markeredgewidth=0.3,
        linewidth=0.9,
        zorder=4,
        label=f"mean|{key}",
    )


_GROUPS = {
    "known, correct": Look("trained species, correctly identified", "#111111", "", "-"),
    "known, wrong": Look("trained species, misidentified", "#8A8A8A", "", "--"),
    **{
        band: Look(f"unseen, {look.label}", look.color, "", look.dash)
        for band, look in BAND_LOOK.items()
    },
}


def histograms(view: View, title: str) -> Figure:
    """True positives by confidence: trained species, and unseen ones by band."""
    rows: dict[tuple[str, str], list[HistogramRow]] = defaultdict(list)
    for row in view.table.novelty_histograms:
        rows[row.architecture, row.group].append(row)
    names = [name for name in view.shown if any(key[0] == name for key in rows)]
    if not names:
        why = _NO_EVIDENCE if view.table.without_evidence else _NO_POSITIVES
        return figures.blank(title, why)
    whole: dict[str, NoveltyRow] = {
        row.architecture: row
        for row in reversed(view.table.novelty)
        if not row.band and not row.stratum
    }
    columns = min(3, len(names))
    page = figures.Page(-(-len(names) // columns), columns, height=1.8, left=0.58, above=0.5)
    top = 0.0
    for panel, name in zip(page.flat, names, strict=False):
        for group, look in _GROUPS.items():
            found = sorted(rows.get((name, group), []), key=lambda row: row.lower)
            if not found:
                continue
            panel.stairs(
                [row.share for row in found],
                [*(row.lower for row in found), found[-1].upper],
                color=look.color,
                linestyle=look.dash,
                linewidth=1.3 if look.dash == "-" else 1.0,
                label=f"share|{name}|{group}",
                baseline=None,
            )
            top = max(top, *(row.share for row in found))
        heading = [view.look.short(name)] if view.look.several else []
        panel.set_title("\n".join([*heading, *_signal(whole.get(name))]))
        panel.set_xlim(0, 1)
        panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        panel.set_xlabel("confidence of the true positive")
    for panel in page.flat[: len(names)]:
        panel.set_ylim(0, 1.06 * top)
    for panel in page.flat[len(names) :]:
        panel.set_visible(False)
    for line in page.axes:
        line[0].set_ylabel("share of the group")
        figures.only_left_labels(line)
    first = next(iter(rows.values()))[0]
    return page.headings(
        title,
        list(_GROUPS.values()),
        f"Best condition of each architecture, n = {first.n_seeds} seeds together; each group "
        f"adds up to 1. FPR: "
        "true positives on trained species flagged as unseen by the confidence threshold that "
        "flags 95 % of those on unseen species (0.95 by chance; AUROC 0.5). Brackets: 95 % "
        f"interval over species.{view.others_note('Panels: ')}",
    )


def _signal(row: NoveltyRow | None) -> list[str]:
    """AUROC and FPR at 95 % TPR with their intervals."""
    if row is None or row.AUROC is None:
        return ["novelty: undefined"]
    lines = [
        f"AUROC {number(row.AUROC)}"
        f"{interval(row.AUROC_ci95_species_low, row.AUROC_ci95_species_high)}"
    ]
    if row.FPR_95TPR is not None:
        lines.append(
            f"FPR at 95 % TPR {number(row.FPR_95TPR)}"
            f"{interval(row.FPR_95TPR_ci95_species_low, row.FPR_95TPR_ci95_species_high)}"
        )
    return lines
