"""Job of the rule report: write the report of the sweep."""

import argparse

from benchmark_eval.pipeline.jobs import report

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
for name in ("aggregated", "output-dir", "plot-format", "fingerprint", "record", "log"):
    parser.add_argument(f"--{name}", required=True)
report(**vars(parser.parse_args()))
