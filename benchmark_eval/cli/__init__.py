"""Command line: one module per command, which unpacks options and calls a library function."""
