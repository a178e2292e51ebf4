"""``python -m benchmark_eval``: the command line, with the Python that one means."""

from benchmark_eval.cli import main

main()
