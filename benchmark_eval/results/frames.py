"""Results as pandas DataFrames, for notebooks. The evaluation itself does not import pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchmark_eval.results.schema import load_summary
from benchmark_eval.results.writers import SUMMARY_COLUMNS, summary_rows

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["text", "count", "number"]


def data_frame(
    columns: Sequence[str], rows: Iterable[Sequence[object]], kind: Callable[[str], Kind]
) -> pd.DataFrame:
    """Rows as a DataFrame; ``kind`` gives the type of each column by its name."""
    import pandas as pd

    table = list(rows)
    made: dict[str, Any] = {}
    for at, name in enumerate(columns):
        cells = [row[at] for row in table]
        match kind(name):
            case "text":
                made[name] = pd.Series([str(cell) for cell in cells], dtype="str")
            case "count":
                made[name] = pd.Series(cells, dtype="Int64")
            case "number":
                made[name] = pd.Series(cells, dtype="float64")
    return pd.DataFrame(made, columns=list(columns))


def read_summary(path: str | Path) -> pd.DataFrame:
    """Read the metrics of one model as a long table.

    Parameters
    ----------
    path : str or Path
        A ``<model>_summary.json``, as `evaluate_to_files` and the workflow write it.

    Returns
    -------
    pandas.DataFrame
        The rows of ``<model>_summary.csv``, one per metric. ``model``, ``split``, ``category``
        and ``metric`` are text; ``value`` is float64. The split of metrics across splits is
        ``ALL``, and their category ``summary``.

    Raises
    ------
    InputError
        The file cannot be read, is not a summary, or was written with another schema version.

    Notes
    -----
    An undefined value is NaN, never zero. ``True`` and ``False`` are 1.0 and 0.0. Counts are
    float64 too, because all metrics share one column. Names of models such as ``007`` and ``NA``
    are text. The page "Metrics" of the documentation defines every metric.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import evaluate_to_files, make_synthetic, read_summary
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> _ = evaluate_to_files(
    ...     benchmark=made.benchmark_dir,
    ...     predictions_dir=made.predictions_dir / "alder_gu_kall_s0",
    ...     output_dir=folder.name,
    ...     model_name="alder_gu_kall_s0",
    ... )
    >>> metrics = read_summary(f"{folder.name}/alder_gu_kall_s0_summary.json")
    >>> list(metrics.columns)
    ['model', 'split', 'category', 'metric', 'value']
    >>> coco = metrics.query("category == 'coco' and metric == 'AP_50'")
    >>> coco["split"].tolist()
    ['iid_test', 'inat_test', 'semantic_ood']
    >>> folder.cleanup()
    """
    rows = summary_rows(load_summary(path))
    return data_frame(SUMMARY_COLUMNS, rows, lambda name: "number" if name == "value" else "text")
