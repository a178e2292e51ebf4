"""Job of the rule plot_sweep: draw the plots of the sweep."""

import argparse

from benchmark_eval.pipeline.jobs import plot_sweep

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
for name in ("aggregated", "output-dir", "fingerprint", "record", "log"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--jobs", required=True, type=int)
parser.add_argument("--formats", required=True, nargs="+")
plot_sweep(**vars(parser.parse_args()))
