"""From columns to one model's numbers."""
