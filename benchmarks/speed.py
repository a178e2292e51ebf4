"""Run time and memory of one evaluation, the benchmark's own evaluator and public COCO tools.

Run with ``make bench``. All commands are measured as whole single-threaded processes pinned to one
core. Compared commands run alternately, each run on a new copy of its prediction files, and the
values that they share must agree. Writes ``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from coco_suites import one_class
from measure import Cost, environment, median, run

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support.extremes import crowd_contest, many_categories, stacks  # noqa: E402
from support.layout import write_predictions, write_split, write_taxonomy  # noqa: E402

BIN = Path(sys.executable).parent
YARDSTICK = ROOT / ".yardstick" / "ibbi" / "evaluate" / "_reference_evaluator.py"
OTHERS = ROOT / ".bench"
SPLITS = ("iid_test", "inat_test", "semantic_ood")
SUITE_KEYS = (
    *("AP_50_95", "AP_50", "AP_75", "AP_small", "AP_medium", "AP_large"),
    *("AR_1", "AR_10", "AR_100", "AR_small", "AR_medium", "AR_large"),
)
TIERS = ("/head_", "/medium_", "/tail_")
"""Species with equal numbers of training images get other tiers; see docs/deviations.md."""
PIN = 0


class Bench:
    """A synthetic benchmark and a scratch folder for copies of its prediction files."""

    def __init__(self, scratch: Path, scale: float) -> None:
        self.scratch = scratch
        self.count = itertools.count()
        data = scratch / "data"
        subprocess.run(
            [BIN / "benchmark-eval", "synth", "--output-dir", data, "--scale", str(scale)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.benchmark = data / "benchmark"
        self.predictions = next((data / "predictions").iterdir())

    def fresh(self) -> Path:
        """A copy of the prediction files under a new name."""
        target = self.scratch / f"copy{next(self.count)}"
        shutil.copytree(self.predictions, target)
        return target

    def output(self) -> Path:
        """A new folder to write to."""
        return self.scratch / f"out{next(self.count)}"

    def n_detections(self) -> dict[str, int]:
        """Number of detections per split."""
        return {
            split: len(json.loads((self.predictions / f"{split}_predictions.json").read_bytes()))
            for split in SPLITS
        }


def evaluate_command(benchmark: Path, predictions: Path, output: Path, *more: str) -> list[str]:
    """Our evaluator on one model, without an index or cached results."""
    return [
        str(BIN / "benchmark-eval"),
        "evaluate",
        *("--benchmark-dir", str(benchmark)),
        *("--predictions-dir", str(predictions)),
        *("--output-dir", str(output)),
        *("--model-name", "model", "--quiet"),
        *more,
    ]


def yardstick_command(benchmark: Path, predictions: Path, output: Path) -> list[str]:
    """The benchmark's own evaluator on the same files."""
    return [
        sys.executable,
        str(YARDSTICK),
        *("--benchmark-dir", str(benchmark)),
        *("--predictions-dir", str(predictions)),
        *("--output-dir", str(output)),
        *("--model-name", "model", "--quiet"),
    ]


def alternate(
    bench: Bench, commands: dict[str, Callable[[Path, Path], list[str]]], runs: int
) -> tuple[dict[str, list[Cost]], dict[str, Path]]:
    """Run the commands A B C, A B C, ...; returns the costs and the last output of each."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    outputs: dict[str, Path] = {}
    for _ in range(runs):
        for name, command in commands.items():
            predictions, outputs[name] = bench.fresh(), bench.output()
            costs[name].append(run(command(predictions, outputs[name]), pin=PIN))
            shutil.rmtree(predictions)
    return costs, outputs


def shared_values(theirs: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Numbers with the same key path in both summaries."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key, value in theirs.items():
            if str(key) in ours:
                yield from shared_values(value, ours[str(key)], f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (a, b) in enumerate(zip(theirs, ours, strict=True)):
            yield from shared_values(a, b, f"{path}/{number}")
    elif isinstance(theirs, int | float) and not isinstance(theirs, bool):
        yield path, theirs, ours


def agreement(theirs: Path, ours: Path) -> tuple[int, int]:
    """Number of values shared by both summaries, and how many of them are undefined in ours.

    Raises if any other value differs by more than 1e-9.
    """
    a, b = (json.loads((f / "model_summary.json").read_bytes()) for f in (theirs, ours))
    n = undefined = 0
    for part in ("per_split", "summary"):
        for path, x, y in shared_values(a[part], b[part], part):
            if any(tier in path for tier in TIERS):
                continue
            n += 1
            if y is None:
                undefined += 1
                if x not in (-1.0, 0.0) and not math.isnan(x):
                    raise SystemExit(f"{path}: theirs {x}, ours undefined")
            elif abs(x - y) > 1e-9:
                raise SystemExit(f"{path}: theirs {x}, ours {y}")
    return n, undefined


def one_model(bench: Bench, runs: int) -> list[str]:
    """Our evaluator and the benchmark's evaluator on all three splits."""
    costs, outputs = alternate(
        bench,
        {
            "benchmark-eval": lambda p, o: evaluate_command(bench.benchmark, p, o),
            "benchmark's evaluator": lambda p, o: yardstick_command(bench.benchmark, p, o),
            "decoding": lambda p, _: [
                sys.executable,
                str(ROOT / "benchmarks" / "decode_only.py"),
                *(str(p / f"{split}_predictions.json") for split in SPLITS),
            ],
        },
        runs,
    )
    n, undefined = agreement(outputs["benchmark's evaluator"], outputs["benchmark-eval"])
    ours, theirs, decode = (median(costs[name]) for name in costs)
    counts = bench.n_detections()
    return [
        "## One model on one core",
        "",
        f"{sum(counts.values()):,} detections "
        f"({', '.join(f'{split} {n:,}' for split, n in counts.items())}); each run is a "
        f"whole process, median of {runs} alternating runs.",
        "",
        "| | CPU (s) | wall (s) | peak memory (MB) |",
        "|---|---|---|---|",
        *(
            f"| {name} | {c.cpu:.2f} | {c.wall:.2f} | {c.memory / 1e6:.0f} |"
            for name, c in (
                ("`benchmark-eval evaluate`", ours),
                ("the benchmark's evaluator", theirs),
                ("only decoding the files (msgspec)", decode),
            )
        ),
        "",
        f"**{theirs.cpu / ours.cpu:.0f} times faster than the benchmark's evaluator** in CPU time "
        f"({theirs.wall / ours.wall:.0f} times in wall time), with "
        f"{ours.memory / theirs.memory:.2f} times its memory and {ours.cpu / decode.cpu:.1f} times "
        f"the CPU time of decoding alone. All {n:,} shared values agree to 1e-9, except "
        f"for {undefined} that are -1 or 0 there and undefined here.",
        "",
    ]


def suites(bench: Bench, runs: int) -> list[str]:
    """Public COCO tools on semantic_ood, on the suites they support."""
    annotations = bench.benchmark / "detection" / "annotations_coco" / "semantic_ood.json"
    # relabelled in advance, so that no measurement includes it
    truths = {"class-aware": annotations, "class-agnostic": bench.scratch / "one_class.json"}
    one_class(annotations, truths["class-agnostic"])
    found = {"class-aware": "semantic_ood_predictions.json", "class-agnostic": "one_class.json"}
    one_class(bench.predictions / found["class-aware"], bench.predictions / "one_class.json")

    def tool(name: str, suite: str) -> Callable[[Path, Path], list[str]]:
        return lambda p, _: [
            sys.executable,
            str(ROOT / "benchmarks" / "coco_suites.py"),
            *(name, str(truths[suite]), str(p / found[suite])),
        ]

    commands: dict[str, Callable[[Path, Path], list[str]]] = {
        "`benchmark-eval evaluate --splits semantic_ood`, all metrics": lambda p, o: (
            evaluate_command(bench.benchmark, p, o, "--splits", "semantic_ood")
        )
    }
    names = ("pycocotools", "faster-coco-eval", "hotcoco")
    for name, suite in itertools.product(names, ("class-aware", "class-agnostic")):
        commands[f"{name}, {suite} suite"] = tool(name, suite)
    os.environ["PYTHONPATH"] = str(OTHERS)
    costs, outputs = alternate(bench, commands, runs)
    ours = json.loads((outputs[next(iter(commands))] / "model_summary.json").read_bytes())
    ours = ours["per_split"]["semantic_ood"]
    lines = []
    first = median(costs[next(iter(commands))])
    for label, command in commands.items():
        c = median(costs[label])
        difference = ""
        if "suite" in label:
            again = command(bench.predictions, bench.scratch)
            out = subprocess.run(again, capture_output=True, check=True, text=True)
            block = ours["coco" if "class-aware" in label else "class_agnostic"]
            theirs = json.loads(out.stdout.strip().splitlines()[-1])
            pairs = [(a, block[k]) for a, k in zip(theirs, SUITE_KEYS, strict=True)]
            worst = max((abs(a - b) for a, b in pairs if b is not None), default=0.0)
            difference = f"{worst:.0e}"
        ratio = "" if c is first else f"{c.cpu / first.cpu:.1f}"
        lines.append(
            f"| {label} | {c.cpu:.2f} | {c.wall:.2f} | {c.memory / 1e6:.0f} | {ratio} "
            f"| {difference} |"
        )
    del os.environ["PYTHONPATH"]
    return [
        "## Public COCO tools on semantic_ood",
        "",
        "Each run is a process that loads and scores. Each tool scores one suite, the "
        "class-agnostic suite",
        "on files with a single category; `benchmark-eval` computes all metrics. Median of "
        f"{runs} alternating runs.",
        "",
        "| | CPU (s) | wall (s) | peak memory (MB) | CPU relative to ours | largest difference |",
        "|---|---|---|---|---|---|",
        *lines,
        "",
    ]


def stages(bench: Bench) -> list[str]:
    """CPU time of the stages of one evaluation (one process)."""
    out = subprocess.run(
        [
            *("taskset", "--cpu-list", str(PIN)),
            sys.executable,
            str(ROOT / "benchmarks" / "stages.py"),
            *(str(bench.benchmark), str(bench.predictions), str(bench.output())),
        ],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    rows = json.loads(out.stdout)
    return [
        "## Stages of an evaluation",
        "",
        "CPU time of the stages of one evaluation; one run.",
        "",
        "| stage | CPU (s) |",
        "|---|---|",
        *(f"| {name} | {seconds:.3f} |" for name, seconds in rows),
        "",
    ]


def tiled(bench: Bench, copies: float, into: Path) -> tuple[Path, Path, int]:
    """semantic_ood and its predictions, repeated ``copies`` times at the same density."""
    annotations = Path("detection") / "annotations_coco"
    (into / annotations).mkdir(parents=True)
    shutil.copy(bench.benchmark / "species_taxonomy.csv", into)
    truth = json.loads((bench.benchmark / annotations / "semantic_ood.json").read_bytes())
    found = json.loads((bench.predictions / "semantic_ood_predictions.json").read_bytes())
    for split in ("train", "iid_test"):  # predictions refer to their categories
        other = json.loads((bench.benchmark / annotations / f"{split}.json").read_bytes())
        other["images"], other["annotations"] = [], []
        (into / annotations / f"{split}.json").write_text(json.dumps(other))
    images, boxes, predictions = [], [], []
    span = max(i["id"] for i in truth["images"]) + 1
    whole = math.ceil(copies)
    for copy in range(whole):
        part = copies - copy if copy == whole - 1 else 1.0
        kept = [i for n, i in enumerate(truth["images"]) if n * 7919 % 1000 < part * 1000]
        ids = {i["id"] for i in kept}
        shift = copy * span
        images += [{**i, "id": i["id"] + shift} for i in kept]
        boxes += [
            {**a, "id": len(boxes) + n + 1, "image_id": a["image_id"] + shift}
            for n, a in enumerate(a for a in truth["annotations"] if a["image_id"] in ids)
        ]
        predictions += [
            {**p, "image_id": p["image_id"] + shift} for p in found if p["image_id"] in ids
        ]
    truth["images"], truth["annotations"] = images, boxes
    (into / annotations / "semantic_ood.json").write_text(json.dumps(truth))
    folder = into / "predictions"
    folder.mkdir()
    (folder / "semantic_ood_predictions.json").write_text(json.dumps(predictions))
    return into, folder, len(predictions)


def growth(bench: Bench, runs: int) -> list[str]:
    """Time and memory per detection above start-up, from 50,000 to 2,000,000 detections."""
    empty, folder, _ = tiled(bench, 0.0, bench.scratch / "tile0")
    base_costs = [
        run(evaluate_command(empty, folder, bench.output(), "--splits", "semantic_ood"), pin=PIN)
        for _ in range(runs + 2)
    ]
    base = median(base_costs)
    n_original = bench.n_detections()["semantic_ood"]
    rows = []
    for target in (50_000, 200_000, 500_000, 1_000_000, 2_000_000):
        place = bench.scratch / f"tile{target}"
        benchmark, folder, n = tiled(bench, target / n_original, place)
        c = median(
            [
                run(
                    evaluate_command(benchmark, folder, bench.output(), "--splits", "semantic_ood"),
                    pin=PIN,
                )
                for _ in range(runs)
            ]
        )
        rows.append((n, c, (c.cpu - base.cpu) / n * 1e6, (c.memory - base.memory) / n))
        shutil.rmtree(place)
    times, memory = [r[2] for r in rows], [r[3] for r in rows]
    return [
        "## Cost by number of detections",
        "",
        f"Only semantic_ood, at the density of the real benchmark; median of {runs} runs. Start-up "
        f"(an empty split, {runs + 2} runs) takes {base.cpu:.2f} s and "
        f"{base.memory / 1e6:.0f} MB.",
        "",
        "| detections | CPU (s) | peak memory (MB) | µs per detection above start-up "
        "| bytes per detection above start-up |",
        "|---|---|---|---|---|",
        *(
            f"| {n:,} | {c.cpu:.2f} | {c.memory / 1e6:.0f} | {t:.2f} | {m:.0f} |"
            for n, c, t, m in rows
        ),
        "",
        "Ratio of the largest to the smallest cost per detection: time "
        f"{max(times) / min(times):.2f}, memory {max(memory) / min(memory):.2f}.",
        "",
    ]


def one_image(bench: Bench, n_detections: int, n_specimens: int, jitter: float) -> Cost:
    """One image with many specimens on a grid and many jittered detections of them."""
    import numpy as np

    place = bench.scratch / f"image{n_detections}"
    annotations = place / "detection" / "annotations_coco"
    annotations.mkdir(parents=True)
    shutil.copy(bench.benchmark / "species_taxonomy.csv", place)
    source = bench.benchmark / "detection" / "annotations_coco" / "semantic_ood.json"
    truth = json.loads(source.read_bytes())
    rng = np.random.default_rng(0)
    side = math.ceil(math.sqrt(n_specimens))
    number = np.arange(n_specimens)
    corner = np.stack([number % side, number // side], axis=1) * 110.0
    category = truth["categories"][0]["id"]
    truth["images"] = [{**truth["images"][0], "id": 1, "width": side * 110, "height": side * 110}]
    truth["annotations"] = [
        {
            "id": i + 1,
            "image_id": 1,
            "category_id": category,
            "bbox": [*corner[i].tolist(), 150.0, 150.0],
            "area": 22500.0,
            "iscrowd": 0,
        }
        for i in range(n_specimens)
    ]
    (annotations / "semantic_ood.json").write_text(json.dumps(truth))
    near = corner[rng.integers(n_specimens, size=n_detections)]
    xy = np.round(near + rng.normal(0, jitter, (n_detections, 2)), 2)
    score = np.round(rng.random(n_detections), 5)
    folder = place / "predictions"
    folder.mkdir()
    records = [
        {"image_id": 1, "category_id": category, "bbox": [x, y, 150.0, 150.0], "score": s}
        for (x, y), s in zip(xy.tolist(), score.tolist(), strict=True)
    ]
    (folder / "semantic_ood_predictions.json").write_text(json.dumps(records))
    return run(evaluate_command(place, folder, bench.output(), "--splits", "semantic_ood"), pin=PIN)


def dense(bench: Bench) -> list[str]:
    """One image with overlapping specimens: the worst case of the matching."""
    empty = one_image(bench, 1, 300, 30.0)
    rows = [(n, one_image(bench, n, 300, 30.0)) for n in (3_000, 30_000, 1_000_000)]
    return [
        "## All detections on one image",
        "",
        "One image with 300 overlapping specimens. Start-up is a run with one detection "
        f"({empty.cpu:.2f} s); one run each.",
        "",
        "| detections | CPU above start-up (s) | wall (s) | peak memory (MB) |",
        "|---|---|---|---|",
        *(
            f"| {n:,} | {c.cpu - empty.cpu:.2f} | {c.wall:.2f} | {c.memory / 1e6:.0f} |"
            for n, c in rows
        ),
        "",
    ]


EXTREMES: dict[str, Callable[[], tuple[list[Any], list[Any]]]] = {
    "8,000 categories, one of them with 80,000 specimens": lambda: many_categories(8_000, 80_000),
    "100,000 detections on one image with 1,000 crowd regions": lambda: crowd_contest(
        100_000, 1_000
    ),
    "200,000 detections on 20 stacks of 1,000 specimens with the same box": lambda: stacks(
        200_000, 20, 1_000
    ),
}


def extremes(bench: Bench) -> list[str]:
    """Splits on which a table of categories, regions or specimens would not fit in memory."""
    lines = []
    for number, (name, make) in enumerate(EXTREMES.items()):
        place = bench.scratch / f"extreme{number}"
        truth, rows = make()
        write_split(place, "semantic_ood", truth, size=(4000, 4000))
        write_taxonomy(place, sorted({row[1] for row in truth}))
        write_predictions(place, "semantic_ood", rows)
        command = evaluate_command(place, place, bench.output(), "--splits", "semantic_ood")
        c = run(command, pin=PIN)
        lines.append(f"| {name} | {len(rows):,} | {c.cpu:.2f} | {c.memory / 1e6:.0f} |")
        shutil.rmtree(place)
    return [
        "## Many categories, crowd regions or identical specimens",
        "",
        "Synthetic splits on which a table of categories by specimens, or of all overlapping "
        "pairs, would take gigabytes; one run each.",
        "",
        "| | detections | CPU (s) | peak memory (MB) |",
        "|---|---|---|---|",
        *lines,
        "",
    ]


def machine() -> list[str]:
    """Machine and package versions."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "")
    names = ("numpy", "msgspec", "pycocotools")
    versions = [f"{n} {importlib.metadata.version(n)}" for n in names]
    if OTHERS.exists():
        found = importlib.metadata.distributions(path=[str(OTHERS)])
        versions += sorted(f"{d.name} {d.version}" for d in found)
    pins = (ROOT / "requirements-yardstick.txt").read_text().split()
    yardstick = next(pin for pin in pins if pin.startswith("ibbi=="))
    return [
        f"Machine: {model or platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, {', '.join(versions)}; the benchmark's evaluator from "
        f"{yardstick}.",
        "",
    ]


PARTS: dict[str, Callable[[Bench, int], list[str]]] = {
    "model": one_model,
    "suites": suites,
    "stages": lambda bench, _: stages(bench),
    "growth": growth,
    "dense": lambda bench, _: dense(bench),
    "extremes": lambda bench, _: extremes(bench),
}


def main() -> None:
    """Measure the requested parts and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each command")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the synthetic benchmark")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "performance.md")
    args = parser.parse_args()
    if args.parts != list(PARTS) and args.output == parser.get_default("output"):
        parser.error("--parts would overwrite the page with some of its parts: also set --output")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), args.scale)
        page = [
            "# Performance",
            "",
            f"Written by `make bench` (`python benchmarks/speed.py --runs {args.runs} "
            f"--scale {args.scale:g}`). Compare the ratios; absolute times depend on the machine.",
            "",
            *machine(),
        ]
        for name in args.parts:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            lines = PARTS[name](bench, args.runs)
            print("\n".join(lines), flush=True)
            page += lines
    args.output.write_text("\n".join(page).rstrip() + "\n")
    print(f"wrote {args.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
