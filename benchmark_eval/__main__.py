"""``benchmark-eval`` and ``python -m benchmark_eval``: the command line.

Imports little, so that Ctrl-C is handled from the start.
"""

from benchmark_eval.core.interrupts import exit_at_once


def main() -> None:
    """Run the command line."""
    exit_at_once()
    from benchmark_eval.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
