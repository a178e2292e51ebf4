"""``python -m benchmark_eval``: the command line, run by the interpreter that is named."""

from benchmark_eval.cli.main import main

main()
