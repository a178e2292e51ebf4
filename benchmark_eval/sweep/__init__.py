"""Tables over the models of a sweep, from their summaries to curves, grids and budgets.

``aggregate`` makes them all; what it returns and writes is ``tables.Aggregated``.
"""
