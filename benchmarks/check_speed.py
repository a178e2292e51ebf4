"""Cost of ``benchmark-eval check`` compared with only decoding the same files with msgspec.

    python benchmarks/check_speed.py [--scale 0.1] [--times 3]

Makes a synthetic sweep of 153 models and measures whole processes, alternating: a typed msgspec
decode of every prediction and annotation file (``decode_only.py``) and a check with one process,
both pinned to the same core, and a check on all cores.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import median, run

BIN = Path(sys.executable).parent
HERE = Path(__file__).parent


def main() -> None:
    """Measure, and print one line per command with its ratio to decoding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="size of the benchmark")
    parser.add_argument("--times", type=int, default=3, help="runs of each command")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = Path(name)
        synth = [BIN / "benchmark-eval", "synth", "--output-dir", data, "--sweep"]
        subprocess.run(
            [*synth, "--scale", str(options.scale)], check=True, stdout=subprocess.DEVNULL
        )
        predictions = sorted(map(str, data.glob("predictions/*/*.json")))
        annotations = sorted(map(str, data.glob("benchmark/detection/annotations_coco/*.json")))
        size = sum(Path(path).stat().st_size for path in (*predictions, *annotations))
        decode = [sys.executable, str(HERE / "decode_only.py"), *predictions]
        decode += ["--annotations", *annotations]
        check = [str(BIN / "benchmark-eval"), "check", "--benchmark-dir", str(data / "benchmark")]
        check += ["--manifest", str(data / "manifest.csv")]
        check += ["--predictions-dir", str(data / "predictions"), "--quiet"]
        decoding, one, all_cores = [], [], []
        for _ in range(options.times):
            decoding.append(run(decode, pin=0))
            one.append(run([*check, "--jobs", "1"], pin=0))
            all_cores.append(run(check))
    floor, single, many = median(decoding), median(one), median(all_cores)
    print(f"{len(predictions):,} prediction files, {size / 1e6:,.0f} MB in total")
    for what, cost in (("msgspec decode", floor), ("check --jobs 1", single), ("check", many)):
        print(
            f"{what:<16} {cost.wall:7.2f} s wall {cost.cpu:7.2f} s CPU "
            f"{cost.memory / 1e6:6.0f} MB   {cost.wall / floor.wall:5.2f} x decoding"
        )


if __name__ == "__main__":
    main()
