"""Budgets and training subsets of the three regimes."""
