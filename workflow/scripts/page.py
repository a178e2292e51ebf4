"""Job of the rule page: write the page of the sweep."""

import argparse

from benchmark_eval.pipeline.jobs import page

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
for name in ("aggregated", "eval-dir", "output", "fingerprint", "record", "log"):
    parser.add_argument(f"--{name}", required=True)
page(**vars(parser.parse_args()))
