"""``benchmark-eval`` and ``python -m benchmark_eval``: the command line.

Imports little, so that Ctrl-C is handled from the start.
"""

try:
    from benchmark_eval.core.interrupts import EXIT_INTERRUPTED, exit_at_once

    exit_at_once()
except KeyboardInterrupt:
    raise SystemExit(130) from None


def main() -> None:
    """Run the command line."""
    try:
        from benchmark_eval.cli.main import main as run
    except KeyboardInterrupt:  # a signal that arrived before it was handled
        raise SystemExit(EXIT_INTERRUPTED) from None
    run()


if __name__ == "__main__":
    main()
