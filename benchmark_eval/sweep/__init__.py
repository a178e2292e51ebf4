"""Tables and statistics of a sweep, from the summaries of its models.

``aggregate`` computes and writes all tables (``tables.Aggregated``).
"""

from benchmark_eval.sweep.aggregation import aggregate
from benchmark_eval.sweep.tables import Aggregated, load_current_tables, load_tables

__all__ = ["Aggregated", "aggregate", "load_current_tables", "load_tables"]
