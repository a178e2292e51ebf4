"""Job of the rule index_benchmark: read the benchmark and write its index."""

import argparse

from benchmark_eval.pipeline.jobs import index_benchmark

parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
for name in ("benchmark-dir", "index", "fingerprint", "record", "log"):
    parser.add_argument(f"--{name}", required=True)
index_benchmark(**vars(parser.parse_args()))
