"""What the page says about each species."""

from __future__ import annotations

from benchmark_eval.report.facts import Facts
from benchmark_eval.report.markdown import MISSING
from benchmark_eval.report.page.tables import Cell, Grid, Head, between, compact, shown
from benchmark_eval.results.registry import BAND_LABEL
from benchmark_eval.sweep.table_rows import SpeciesRow


def _count(value: int | None) -> str:
    return MISSING if value is None else f"{value:,}"


def _mark(row: SpeciesRow) -> str:
    if row.do_not_rely is None:
        return "not known"
    return "do not rely" if row.do_not_rely else "no"


def species_table(facts: Facts) -> Grid:
    """Every species: its place in the benchmark, its results, its confusion and its mark."""
    head = [
        Head("Species", ("species",)),
        Head("Genus", ("genus",)),
        Head("Role", ("role",), pick=True),
        Head("Do not rely on", ("do_not_rely",), pick=True),
        Head("Training images", ("n_train_images",), number=True),
        Head("Specimens, in-distribution", ("iid_n_specimens",), number=True),
        Head("Mostly on images with", ("stratum",)),
        Head("Best condition", ("best_architecture", "regime", "k_or_p")),
        Head(
            "AP@[.5:.95], in-distribution",
            ("iid_AP_50_95", "n_seeds", "ci95_retraining_low", "ci95_retraining_high"),
            number=True,
        ),
        Head("Species recall", ("iid_species_recall",), number=True),
        Head("Detection recall, unseen", ("ood_detection_recall",), number=True),
        Head("Most often confused with", ("confused_with",)),
    ]
    rows = [_cells(row) for row in facts.data.species]
    return Grid(
        "species-table",
        "All species",
        head,
        rows,
        [f"{row.species} {row.genus}" for row in facts.data.species],
        note="Results of the best architecture for the species, at its best condition: means over "
        "n seeds, with the interval over retraining (R). Shares without an interval are "
        "descriptive. From species.csv.",
        empty="No table of species: the benchmark has no scored species.",
    )


def _cells(row: SpeciesRow) -> list[Cell]:
    low, high = (row.iid_AP_50_95_ci95_retraining_low, row.iid_AP_50_95_ci95_retraining_high)
    ap = row.iid_AP_50_95
    lines = () if ap is None else (("n", f"n={row.n_seeds}"), ("r", f"R {between(low, high)}"))
    mark = _mark(row)
    best = " ".join(part for part in (row.best_architecture, row.regime, row.k_or_p) if part)
    n = f", n={row.n_seeds}"

    def share(value: float | None) -> Cell:
        return Cell(
            MISSING if value is None else shown(value) + n,
            value=compact(value),
            data=(compact(value),),
        )

    def count(value: int | None) -> Cell:
        return Cell(_count(value), value=value, data=(value,))

    confused: tuple[tuple[str, str], ...] = ()
    if row.confused_n is not None and row.confused_with:
        confused = (("n", f"{row.confused_n:.1f} specimens per seed, n={row.n_seeds}"),)
        if row.confused_reason:
            confused = (*confused, ("reason", row.confused_reason))
    return [
        Cell(row.species),
        Cell(row.genus),
        Cell(row.role),
        Cell(
            mark,
            (("reason", row.do_not_rely_reason),) if row.do_not_rely_reason else (),
            mark="lower" if mark == "do not rely" else "",
        ),
        count(row.n_train_images),
        count(row.iid_n_specimens),
        Cell(f"{row.stratum} specimens" if row.stratum else MISSING, data=(row.stratum,)),
        Cell(best or MISSING, data=(row.best_architecture, row.regime, row.k_or_p)),
        Cell(
            shown(ap),
            lines,
            compact(ap),
            (compact(ap), row.n_seeds, compact(low), compact(high)),
        ),
        share(row.iid_species_recall),
        share(row.ood_detection_recall),
        Cell(row.confused_with or MISSING, confused, data=(row.confused_with,)),
    ]


def species_facts(facts: Facts) -> dict[str, list[tuple[str, str]]]:
    """Terms and their values for the species explorer, by species."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in facts.data.species:
        mark = _mark(row)
        if row.do_not_rely_reason:
            mark += f" ({row.do_not_rely_reason})"
        density = ", ".join(
            f"{_count(n)} on images with {label}"
            for n, label in (
                (row.n_specimens_1, "1 specimen"),
                (row.n_specimens_2_to_10, "2 to 10"),
                (row.n_specimens_over_10, "more than 10"),
            )
            if n is not None
        )
        items = [
            ("Do not rely on:", mark),
            ("Genus:", row.genus),
            ("Role:", row.role),
            (
                "Distance band:",
                BAND_LABEL.get(row.distance_band, "") if row.role == "unseen" else "",
            ),
            ("Target species, band:", BAND_LABEL.get(row.target_band, row.target_band)),
            ("Tier:", row.tier),
            ("Training images:", _count(row.n_train_images)),
            ("Training specimens:", _count(row.n_train_specimens)),
            ("Specimens in distribution:", _count(row.iid_n_specimens)),
            ("Specimens on field photographs:", _count(row.inat_n_specimens)),
            ("Specimens among unseen species:", _count(row.ood_n_specimens)),
            ("Density:", density),
        ]
        found[row.species] = [(term, text) for term, text in items if text]
    return found
