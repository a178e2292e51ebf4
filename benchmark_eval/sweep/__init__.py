"""Tables over the models of a sweep, from their summaries to curves, grids and budgets.

``aggregate`` makes them all; what it returns and writes is ``tables.Aggregated``.
"""

from benchmark_eval.sweep.aggregation import aggregate
from benchmark_eval.sweep.tables import Aggregated, load_tables

__all__ = ["Aggregated", "aggregate", "load_tables"]
