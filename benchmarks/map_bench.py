"""Run time of the mAP tool on 5,000 images, 80 classes and 500,000 detections.

    make bench-map          (or: python benchmarks/map_bench.py [--images N] [--classes N] ...)

Writes the same text files each time, in a temporary folder, and times the parts of a run without
plots. The target is 10 s in total. The last line can be compared between machines: the time of the
run divided by the time of only reading the files and parsing their numbers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmark_eval.voc import run_map, score_boxes
from benchmark_eval.voc.text import read_boxes

TARGET_SECONDS = 10.0


def write_scene(root: Path, n_images: int, n_classes: int, n_detections: int) -> None:
    """Ground truth with about 6 objects per image, and detections scattered around them."""
    generator = np.random.default_rng(20260101)
    names = [f"Genus{c % 11} species{c}" for c in range(n_classes)]
    for folder in ("ground-truth", "detections"):
        (root / folder).mkdir()
    shares = np.bincount(generator.integers(0, n_images, n_detections), minlength=n_images)
    for image, n_found in enumerate(shares.tolist()):
        n = int(generator.integers(1, 12))
        labels = generator.integers(0, n_classes, n)
        corner = generator.integers(0, 800, (n, 2))
        boxes = np.hstack([corner, corner + generator.integers(20, 200, (n, 2))])
        source = generator.integers(0, n, n_found)
        moved = boxes[source] + generator.integers(-15, 16, (n_found, 4))
        moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2])
        named = np.where(
            generator.random(n_found) < 0.8,
            labels[source],
            generator.integers(0, n_classes, n_found),
        )
        confidence = generator.random(n_found).round(4)
        truth = [f"{names[c]} {' '.join(map(str, b))}" for c, b in zip(labels, boxes, strict=True)]
        found = [
            f"{names[c]} {s} {' '.join(map(str, b))}"
            for c, s, b in zip(named, confidence, moved, strict=True)
        ]
        file = f"image_{image:06}.txt"
        (root / "ground-truth" / file).write_text("\n".join(truth) + "\n")
        (root / "detections" / file).write_text("\n".join(found) + "\n")


def bare_reading(root: Path) -> int:
    """The minimum for any tool: read the files, split the lines, parse the numbers."""
    total = 0
    for path in (*root.glob("ground-truth/*"), *root.glob("detections/*")):
        for line in path.read_text().splitlines():
            total += len([float(word) for word in line.split()[2:]])
    return total


def timed(work: Callable[[], object], rounds: int) -> float:
    """Best time of several rounds (s)."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Write the files, time the parts, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--classes", type=int, default=80)
    parser.add_argument("--detections", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_scene(root, options.images, options.classes, options.detections)
        truth, _ = read_boxes(root / "ground-truth", "ground truth")
        found, _ = read_boxes(root / "detections", "detections")
        whole = timed(
            lambda: run_map(
                root / "detections", root / "ground-truth", output_dir=root / "out", plots=False
            ),
            options.rounds,
        )
        scoring = timed(lambda: score_boxes(truth, found), options.rounds)
        reading = timed(lambda: read_boxes(root / "detections", "detections"), options.rounds)
        bare = timed(lambda: bare_reading(root), options.rounds)
    print(
        f"{options.images:,} images, {options.classes} classes, {len(truth):,} objects, "
        f"{len(found):,} detections (best of {options.rounds})\n"
        f"  read detections   {reading:6.2f} s\n"
        f"  score             {scoring:6.2f} s\n"
        f"  whole run         {whole:6.2f} s, with output files, without plots "
        f"(target {TARGET_SECONDS:g} s: {'met' if whole <= TARGET_SECONDS else 'MISSED'})\n"
        f"  only reading      {bare:6.2f} s\n"
        f"  run / reading     {whole / bare:6.2f}"
    )


if __name__ == "__main__":
    main()
