"""Scoring: from the detections of a model to its metrics."""
