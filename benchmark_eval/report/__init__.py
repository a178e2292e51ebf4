"""Plots and the written report of a sweep, from the tables of ``benchmark_eval.sweep``."""

from benchmark_eval.report.document import write_report
from benchmark_eval.report.draw import write_plots

__all__ = ["write_plots", "write_report"]
