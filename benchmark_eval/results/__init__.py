"""One model's result: its types, metrics and files."""
