"""A small sweep with the same inputs everywhere (integers only), run by the command line.

    python tests/sweep/golden/sweep.py FOLDER [--reverse] [--plots]

writes inputs and results into FOLDER and prints the SHA-256 of every result. ``--renew`` writes the
expected results instead, after an intended change.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import io
import json
import sys
import tempfile
from pathlib import Path

import msgspec

EXPECTED = Path(__file__).parent / "expected"
SHOWN = (
    "alder_k1_s0_per_species.csv",
    "budget_curves.csv",
    "target_species_curves.csv",
    "target_vs_nontarget.csv",
)
"""Results that are stored in full, for a readable diff; for all others, only the digest."""
KNOWN, UNSEEN = range(1, 7), range(101, 104)
BANDS = ("near_genus", "mid_tribe", "far_tribe")
CONDITIONS = (
    ("global_uniform", "1", "k1"),
    ("global_uniform", "all", "kall"),
    ("incremental_natural", "0.1", "p10"),
    ("incremental_uniform_targets", "0", "t0"),
    ("incremental_uniform_targets", "5", "t5"),
)
PLOTS = ("learning_iid_AP_50_95", "budget_images")


class Dice:
    """Pseudo-random integers from a linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def species(number):
    return f"Genus{number % 4} species{number}"


def truth_of(split, n_images, listed, *, crowd=False):
    """The annotations of a split: 1 to 14 specimens per image."""
    dice = Dice(sum(map(ord, split)))
    annotations = []
    for image in range(1, n_images + 1):
        for place in range(1 + dice(14) * dice(2)):
            box = [100 * (place % 5) + dice(20), 100 * (place // 5) + dice(20)]
            box += [50 + dice(40), 50 + dice(40)]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": listed[dice(len(listed))],
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": int(crowd and place > 3),
                }
            )
    return annotations


def write_benchmark(folder, size):
    coco = folder / "detection/annotations_coco"
    coco.mkdir(parents=True)
    rows = ["scientificName,subfamily,tribe,genus,benchmark_role,target_band,"
            "distance_band_vs_trainable"]  # fmt: skip
    for n in (*KNOWN, *UNSEEN):
        role = "trainable" if n in KNOWN else "semantic_ood"
        target = BANDS[n % 3] if n in (1, 2, 3) else ""
        genus = species(n).split()[0]
        rows.append(f"{species(n)},Scolytinae,Tribe{n % 2},{genus},{role},{target},{BANDS[n % 3]}")
    (folder / "species_taxonomy.csv").write_text("\n".join(rows) + "\n")
    truth = {}
    for split, n_images, listed, crowd in (
        ("train", 4 * size, KNOWN, False),
        ("iid_test", 4 * size, KNOWN, True),
        ("inat_test", size, list(KNOWN)[:3], True),
        ("semantic_ood", 4 * size, UNSEEN, False),
    ):
        truth[split] = truth_of(split, n_images, list(listed), crowd=crowd)
        content = {
            "images": [{"id": i, "width": 600, "height": 600} for i in range(1, n_images + 1)],
            "annotations": truth[split],
            "categories": [{"id": n, "name": species(n)} for n in listed],
        }
        (coco / f"{split}.json").write_text(json.dumps(content))
    return truth


def write_predictions(folder, truth, seed):
    """About four detections per specimen, close to it or not, of its species or another."""
    folder.mkdir(parents=True)
    for split in ("iid_test", "inat_test", "semantic_ood"):
        dice = Dice(seed + len(split))
        records = []
        for annotation in truth[split]:
            for _ in range(1 + dice(7)):
                box = [side + dice(41) / 4 - 5 for side in annotation["bbox"]]
                right = dice(3) and annotation["category_id"] in KNOWN
                category = annotation["category_id"] if right else 1 + dice(6)
                score = (1 + dice(9999)) / 10000
                records.append(
                    {
                        "image_id": annotation["image_id"],
                        "category_id": category,
                        "bbox": box,
                        "score": score,
                    }
                )
        (folder / f"{split}_predictions.json").write_text(json.dumps(records))


def run(folder, *, size=3, reverse=False, plots=False):
    """Write the inputs, evaluate every model and aggregate; returns the results folder."""
    from benchmark_eval.cli.main import main

    truth = write_benchmark(folder / "benchmark", size)
    models = [
        (f"alder_{name}_s{seed}", regime, budget, seed)
        for regime, budget, name in CONDITIONS
        for seed in (0, 1)
    ]
    rows = [f"{name},{regime},{budget},{seed}" for name, regime, budget, seed in models]
    rows = rows[::-1] if reverse else rows
    header = "model_name,regime,k_or_p,seed"
    (folder / "manifest.csv").write_text("\n".join([header, *rows]) + "\n")
    out = folder / "results"
    for number, (name, *_) in enumerate(models, 1):
        write_predictions(folder / "predictions" / name, truth, 1000 * number)
        main(
            [
                *["evaluate", "--quiet", "--model-name", name],
                *["--benchmark-dir", str(folder / "benchmark")],
                *["--predictions-dir", str(folder / "predictions" / name)],
                *["--output-dir", str(out / "models" / name)],
            ]
        )
    main(
        [
            *["aggregate", "--eval-dir", str(out / "models")],
            *["--manifest", str(folder / "manifest.csv")],
            *[
                "--benchmark-dir",
                str(folder / "benchmark"),
                "--output-dir",
                str(out / "aggregated"),
            ],
        ]
    )
    if plots:
        given = ["--aggregated", str(out / "aggregated/aggregated.json")]
        only = [word for name in PLOTS for word in ("--only", name)]
        main(["plot", *given, *only, "--format", "svg", "--output-dir", str(out / "plots")])
    return out


def results(out):
    """Every result by name, without the digests and version of the code."""
    from benchmark_eval import __version__
    from benchmark_eval.core.code_digest import ROOMS, code_digest
    from benchmark_eval.results.evidence import encode, read_evidence

    # without the records of the output folders, which have digests of these files
    files = [path for path in sorted(out.rglob("[!.]*")) if path.is_file()]
    # aggregated.json has the digests of summaries, and these that of the evidence; all of them
    # contain the digest of the code
    of_file = {
        hashlib.sha256(path.read_bytes()).hexdigest(): path.name
        for path in files
        if path.name.endswith(("_summary.json", "_evidence.npz"))
    }
    contents = {}
    for path in files:
        data = path.read_bytes()
        if path.suffix == ".npz":
            evidence = read_evidence(path)
            header = msgspec.structs.replace(evidence.header, scoring_code="scoring")
            contents[path.name] = encode(dataclasses.replace(evidence, header=header))
            continue
        for digest, name in of_file.items():
            data = data.replace(digest.encode(), name.encode())
        for part in ROOMS:
            data = data.replace(code_digest(part).encode(), part.encode())
        for version in ('"package_version": "{}"', "| benchmark-eval | {} |"):
            data = data.replace(version.format(__version__).encode(), version.encode())
        contents[path.name] = data
    return contents


def digests(contents):
    """One line per result: SHA-256 and name."""
    return "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(contents.items())
    )


def renew():
    """Write the expected results."""
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        contents = results(run(Path(name)))
    EXPECTED.mkdir(exist_ok=True)
    (EXPECTED / "SHA256SUMS").write_text(digests(contents))
    for shown in SHOWN:
        (EXPECTED / shown).write_bytes(contents[shown])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--reverse", action="store_true", help="reverse the manifest")
    parser.add_argument("--plots", action="store_true", help="also draw some plots as SVG")
    parser.add_argument("--renew", action="store_true", help="write the expected results")
    options = parser.parse_args()
    if options.renew:
        renew()
    else:
        with contextlib.redirect_stdout(sys.stderr):
            made = run(
                options.folder, size=options.size, reverse=options.reverse, plots=options.plots
            )
        sys.stdout.write(digests(results(made)))
