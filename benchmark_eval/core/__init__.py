"""Helpers that know nothing of detection."""
