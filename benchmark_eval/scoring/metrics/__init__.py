"""Metric families, one file each: pure functions from columns and matches to a typed result."""
