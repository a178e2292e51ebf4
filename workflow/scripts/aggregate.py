"""Job of the rule aggregate: compute the tables of the sweep."""

import argparse

from benchmark_eval.pipeline.jobs import aggregate

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
for name in ("eval-dir", "manifest", "index", "output-dir", "fingerprint", "record", "log"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--allow-missing", required=True, action=argparse.BooleanOptionalAction)
parser.add_argument("--custom-metrics", type=lambda path: path or None, help="empty for none")
for name in ("price-per-image", "price-per-specimen"):
    parser.add_argument(f"--{name}", type=lambda text: float(text) if text else None)
aggregate(**vars(parser.parse_args()))
