"""The tables of a sweep as pandas DataFrames, for notebooks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_eval.results.frames import Kind, data_frame
from benchmark_eval.sweep.table_rows import SpeciesRow
from benchmark_eval.sweep.tables import (
    AGGREGATED,
    CSV_FILES,
    FLAT,
    column_kinds,
    load_current_tables,
)

if TYPE_CHECKING:
    import pandas as pd

_TEXT = {
    *("model", "architecture", "regime", "k_or_p", "k", "seed", "split", "band", "stratum"),
    *("source", "difference", "missing_models", "identical_predictions"),
    "by_construction",
}
_COUNTS = {
    "learning_curves": {"n_seeds"},
    "target_species_curves": {"n_species"},
    "density_curves": {"n_images", "n_gt"},
}
"""Counts beside the ``<metric>_n`` of every table of means (budgets may be expected values)."""


_FLAT: dict[str, dict[str, Kind]] = {
    "species": column_kinds(SpeciesRow),
    **{name: column_kinds(kind) for name, kind in FLAT.items()},
}


def _kind(table: str, column: str) -> Kind:
    if table in _FLAT:
        # the columns of budgets are named after regimes
        unnamed: Kind = "text" if column.endswith("k_or_p") else "number"
        return _FLAT[table].get(column, unnamed)
    if column in _TEXT:
        return "text"
    is_n = column == "n" or column.endswith("_n")
    if column in _COUNTS.get(table, ()) or (is_n and table != "models"):
        return "count"
    return "number"


def read_aggregated(path: str | Path) -> dict[str, pd.DataFrame]:
    """Read the tables of a sweep.

    Parameters
    ----------
    path : str or Path
        An ``aggregated.json``, or the folder that holds it (``results/aggregated`` of the
        workflow, ``output_dir`` of `aggregate`).

    Returns
    -------
    dict of str to pandas.DataFrame
        The CSV files by name: ``learning_curves``, ``differences``, ``target_species_curves``,
        ``target_vs_nontarget``, ``budget_curves``, ``density_curves``, ``operating_curves``,
        ``comparisons``, ``budget_planning``, ``species``, ``species_curves``, ``tiers``,
        ``target_gains``, ``retention``, ``pooled_shares``, ``band_gaps``, ``error_types``,
        ``confusions``, ``genus_confusions``, ``labels``, ``confusion_by_chance``,
        ``reliability``, ``risk_coverage``, ``novelty``, ``novelty_histograms`` and
        ``models``, with the same rows and columns.

        ``model``, ``architecture``, ``regime``, ``k_or_p``, ``k``, ``seed`` and all other
        labels are text. Counts, such as ``n_seeds`` and ``<metric>_n``, and flags are Int64. All
        other columns are float64. In ``budget_curves``, ``n_images`` and ``n_specimens`` are
        float64, because they can be expected values.

    Raises
    ------
    InputError
        The file cannot be read, is not an ``aggregated.json``, was written with another schema
        version, is from an earlier run of the workflow, or was edited since it was written.

    Notes
    -----
    An undefined value is NaN, never zero. The page "Tables of a sweep" of the documentation
    describes every column and says what each interval covers.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import aggregate, evaluate_to_files, make_synthetic, read_aggregated
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> _ = evaluate_to_files(
    ...     benchmark=made.benchmark_dir,
    ...     predictions_dir=made.predictions_dir / "alder_gu_kall_s0",
    ...     output_dir=folder.name,
    ...     model_name="alder_gu_kall_s0",
    ... )
    >>> _ = aggregate(
    ...     eval_dir=folder.name,
    ...     manifest=made.manifest,
    ...     benchmark=made.benchmark_dir,
    ...     output_dir=folder.name,
    ... )
    >>> tables = read_aggregated(folder.name)
    >>> curves = tables["learning_curves"]
    >>> curves["regime"].tolist(), curves["k_or_p"].tolist(), curves["n_seeds"].tolist()
    (['global_uniform'], ['all'], [1])
    >>> folder.cleanup()
    """
    path = Path(path)
    table = load_current_tables(path / AGGREGATED if path.is_dir() else path)
    frames = {}
    for file, layout in CSV_FILES.items():
        name = file.removesuffix(".csv")
        columns, rows = layout(table)
        frames[name] = data_frame(columns, rows, partial(_kind, name))
    return frames
