"""Metric families, one file each: pure functions from a split's data to a typed result."""
