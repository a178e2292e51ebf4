"""A tiny sweep on disk, and functions that run snakemake on it as a user would."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmark_eval.protocol import REGIMES
from support.factories import write_benchmark

ROOT = Path(__file__).parents[2]
SPLITS = ("iid_test", "inat_test", "semantic_ood")
# names that CSV or YAML readers or a shell could change
MODELS = {
    "NA": ("global_uniform", "1", 0),
    "007": ("global_uniform", "1", 1),
    "1e5": ("global_uniform", "all", 0),
    "it's 5% $HOME;": ("incremental_natural", "0.1", 0),
    "None": ("incremental_uniform_targets", "0", 0),
}


def write_predictions(folder, benchmark, offset):
    """Write the prediction files of one model; ``offset`` shifts its boxes and scores."""
    folder.mkdir(parents=True)
    for split in SPLITS:
        truth = json.loads((benchmark / f"detection/annotations_coco/{split}.json").read_text())
        found = [
            {
                "image_id": a["image_id"],
                "category_id": a["category_id"] if at % 3 else 1,
                "bbox": [a["bbox"][0] + 0.01 * offset, *a["bbox"][1:]],
                "score": round(0.5 + 0.01 * offset + 0.001 * at, 4),
            }
            for at, a in enumerate(truth["annotations"])
        ]
        (folder / f"{split}_predictions.json").write_text(json.dumps(found))


def edit_unseen(path):
    """Change a file's content without changing its size or modification time."""
    before = path.stat()
    data = path.read_bytes()
    at = data.rindex(b'"score": 0.') + 11
    path.write_bytes(data[:at] + (b"1" if data[at : at + 1] != b"1" else b"2") + data[at + 1 :])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


class Sweep:
    """A working directory with data and config/config.yaml."""

    def __init__(self, folder, snakefile=ROOT / "Snakefile"):
        self.folder = folder
        self.snakefile = snakefile
        self.env = {}
        self.python = sys.executable

    @classmethod
    def make(cls, folder):
        write_benchmark(folder / "data/benchmark")
        for offset, model in enumerate(MODELS):
            write_predictions(
                folder / "data/predictions" / model, folder / "data/benchmark", offset
            )
        sweep = cls(folder)
        sweep.write_manifest(MODELS)
        (folder / "config").mkdir()
        sweep.configure()
        return sweep

    def copy(self, folder):
        """Copy the sweep, including modification times."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Sweep(folder, self.snakefile)

    def write_manifest(self, models):
        with (self.folder / "data/manifest.csv").open("w", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(["model_name", "regime", "k_or_p", "seed"])
            rows.writerows([name, *cells] for name, cells in models.items())

    def configure(self, **keys):
        content = {
            "benchmark_dir": "data/benchmark",
            "predictions_dir": "data/predictions",
            "manifest": "data/manifest.csv",
            "plot_formats": ["svg"],
            "page": False,  # takes seconds; tests of the page set it
            **keys,
        }
        # JSON is YAML
        (self.folder / "config/config.yaml").write_text(json.dumps(content, indent=1))

    def predictions(self, model, split="iid_test"):
        return self.folder / f"data/predictions/{model}/{split}_predictions.json"

    def summary(self, model):
        return self.folder / f"results/models/{model}/{model}_summary.json"

    def command(self, *args):
        return [
            *(self.python, "-m", "snakemake", "--snakefile", str(self.snakefile)),
            *("--cores", "2", *args),
        ]

    def environment(self):
        return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **self.env}

    def run(self, *args, ok=True, cwd=None):
        """Run snakemake; returns its output including standard error."""
        done = subprocess.run(
            self.command(*args),
            cwd=cwd or self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) is ok, done.stdout
        return done.stdout

    def planned(self, *args, cwd=None):
        """The planned jobs: models to evaluate, and the names of other rules without targets."""
        output = self.run("--dry-run", *args, cwd=cwd)
        assert "Nothing to be done" in output or "Job stats:" in output, output
        rules = set(re.findall(r"^(?:local)?rule (\w+):$", output, re.MULTILINE))
        models = re.findall(r"^    wildcards: model=(.*)$", output, re.MULTILINE)
        return set(models), rules - {"evaluate_model", "sweep", "all", "tables", *REGIMES}

    def listing(self):
        """The size and modification time of every file in the results, by path."""
        found = {path: path.stat() for path in (self.folder / "results").rglob("*")}
        return {path: (status.st_size, status.st_mtime_ns) for path, status in found.items()}

    def compared(self):
        """The bytes of every file that must be reproducible."""
        root = self.folder / "results"
        return {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.suffix in {".csv", ".json", ".md", ".txt", ".npz", ".svg", ".made"}
            and path.name != "digests.json"
        }

    def tables(self):
        """The same without the slowest outputs, the plots and the report, and their records."""
        without = ("plots/", "aggregated/report", ".state/plots", ".state/report")
        found = self.compared().items()
        return {name: data for name, data in found if not name.startswith(without)}


def two_modules(base, folder, hooks="", **keys):
    """A workflow that uses this one twice, with two IoU thresholds; ``keys`` are of the config."""
    shutil.copytree(base.folder / "data", folder / "data")
    (folder / "Snakefile").write_text(f"""
CONFIG = {{
    "benchmark_dir": "data/benchmark",
    "predictions_dir": "data/predictions",
    "manifest": "data/manifest.csv",
    **{keys!r},
}}


module strict:
    snakefile: {str(ROOT / "workflow/Snakefile")!r}
    config: {{**CONFIG, "iou": 0.75}}
    prefix: "strict"


use rule * from strict as strict_*


module plain:
    snakefile: {str(ROOT / "workflow/Snakefile")!r}
    config: CONFIG


use rule * from plain as plain_*


rule both:
    input: rules.strict_all.input, rules.plain_all.input
    default_target: True

{hooks}""")
    return Sweep(folder, snakefile=folder / "Snakefile")
