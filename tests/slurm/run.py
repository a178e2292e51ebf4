"""Run a sweep on a real Slurm and compare it byte for byte with a local run: make test-slurm.

A sweep without Slurm and on Slurm; a smaller one without Slurm, and on Slurm while a job is
cancelled, another exceeds its memory and the controller is restarted. Then common mistakes: a
partition that does not exist, a queue that is too short for array jobs, and a node without the
package.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cluster import OneHostSlurm, SlurmError, missing_programs, one_host_slurm, wait_for

ROOT = Path(__file__).resolve().parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
RUN_SECONDS = 600
"""Longest run time of a single snakemake call; a hang is a failure."""
POLL_SECONDS = 3
ALL, FEW = "all.csv", "few.csv"
"""The manifests of the two sweeps."""
MODELS = 26
"""Models of the sweep: more than one array job holds."""
FEW_MODELS = 10
"""Models of the run with failing jobs."""
HUNGRY = "alder_gu_kall_s0"
"""The model whose evaluation needs more memory than its first attempt requests."""
HUNGRY_TIMES = 160
MEMORY_MB = 320
"""Requested memory: enough for two Snakemake processes and a tiny model, but not for HUNGRY."""
NAMES = {"alder_gu_k1_s0": "NA", "alder_gu_k1_s1": "007", "alder_gu_k5_s0": "a model; it's 1e5"}
"""Model names that a table, a queue or a shell could misinterpret."""
INDEX = "results/benchmark/index.npz"
"""The target of a short run."""
NOT_COMPARED = ("logs/", "benchmarks/", ".state/digests.json")
"""Files with times and process ids, which differ between runs."""


class TestFailure(Exception):  # noqa: N818
    """A check failed."""


def check(true: object, what: str) -> None:
    """Raise TestFailure with the message ``what`` unless ``true``."""
    if not true:
        raise TestFailure(what)


class Sweep:
    """Data of a sweep, and the snakemake commands that run it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.benchmark = folder / "data/benchmark"
        self.predictions = folder / "data/predictions"

    def make(self) -> None:
        """Write the data and the manifests of both sweeps."""
        subprocess.run(
            [
                Path(sys.executable).with_name("benchmark-eval"),
                *("synth", "--output-dir", self.folder / "data", "--scale", "0.01", "--sweep"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=RUN_SECONDS,
        )
        with (self.folder / "data/manifest.csv").open(newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["architecture"] == "alder"][
                :MODELS
            ]
        for row in rows:
            name = NAMES.get(row["model_name"])
            if name:
                (self.predictions / row["model_name"]).rename(self.predictions / name)
                row["model_name"] = name
        self._write_manifest(ALL, rows)
        at = next(i for i, row in enumerate(rows) if row["model_name"] == HUNGRY)
        self._write_manifest(FEW, rows[at + 1 - FEW_MODELS : at + 1])
        grown = self.predictions / HUNGRY / "semantic_ood_predictions.json"
        grown.write_text(json.dumps(json.loads(grown.read_text()) * HUNGRY_TIMES))

    def _write_manifest(self, name: str, rows: Sequence[dict[str, str]]) -> None:
        with (self.folder / "data" / name).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)

    def command(self, place: str, manifest: str, *options: str) -> list[str]:
        """The snakemake command that runs the sweep of a manifest in the folder ``place``."""
        (self.folder / place).mkdir(exist_ok=True)
        return [
            str(SNAKEMAKE),
            *("--snakefile", str(ROOT / "Snakefile"), "--directory", str(self.folder / place)),
            *options,
            "--config",
            f"benchmark_dir={self.benchmark}",
            f"predictions_dir={self.predictions}",
            f"manifest={self.folder / 'data' / manifest}",
        ]

    def results(self, place: str) -> dict[str, bytes]:
        """All result files of a run that must be equal in every run."""
        root = self.folder / place / "results"
        names = (p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
        return {
            name: (root / name).read_bytes()
            for name in sorted(names)
            if not name.startswith(NOT_COMPARED)
        }

    def require_equal(self, local: str, place: str, models: int) -> None:
        """Raise TestFailure unless the runs in both folders have the same bytes."""
        expected, found = self.results(local), self.results(place)
        summaries = [name for name in expected if name.endswith("_summary.json")]
        check(len(summaries) == models, f"{len(summaries)} of {models} models scored locally")
        names = sorted(expected.keys() | found.keys())
        other = [name for name in names if expected.get(name) != found.get(name)]
        check(not other, f"{place}: {len(other)} of {len(names)} files differ: {other[:5]}")
        say(f"{len(names)} files of {models} models are equal, byte for byte")


class Call:
    """A running snakemake with its output in a file; stopped at the end of the block."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self.log = log
        self.since = time.monotonic()
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # it then waits for its jobs, even after a second signal
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        left = RUN_SECONDS - (time.monotonic() - self.since)
        try:
            return self.process.wait(max(left, 1))
        except subprocess.TimeoutExpired:
            raise TestFailure(f"snakemake still runs after {RUN_SECONDS} s") from None


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


class Tests:
    """The runs, in order; the output of each is written to a log in the folder of the sweep."""

    def __init__(self, sweep: Sweep, slurm: OneHostSlurm) -> None:
        self.sweep = sweep
        self.slurm = slurm
        self.profile = (
            "--profile",
            str(ROOT / "profiles/slurm"),
            *("--slurm-status-command", "squeue"),
            *("--slurm-init-seconds-before-status-checks", str(POLL_SECONDS)),
        )

    def call(
        self,
        place: str,
        *options: str,
        log: str,
        manifest: str = ALL,
        profile: bool = True,
        **env: str,
    ) -> Call:
        options = (*(self.profile if profile else ()), *options)
        return Call(
            self.sweep.command(place, manifest, *options),
            self.sweep.folder / f"{log}.log",
            {**self.slurm.environment, **env},
        )

    def local(self, place: str, manifest: str) -> None:
        """A sweep without Slurm."""
        cores = ("--cores", "2")
        with self.call(place, *cores, log=place, manifest=manifest, profile=False) as call:
            check(call.end() == 0, f"the local run failed: {call.log}")

    def clean(self) -> None:
        """The whole sweep on Slurm, in a folder with a space in its path."""
        with self.call("on slurm", log="clean") as call:
            check(call.end() == 0, f"the run on Slurm failed: {call.log}")
            arrays = call.text.count("Submitted array job")
            check(arrays == -(-MODELS // 25), f"{arrays} array jobs for {MODELS} models")
        self.sweep.require_equal("local", "on slurm", MODELS)

    def failing_jobs(self) -> None:
        """A cancelled job, a job out of memory and a controller restart, all in one run."""
        self.local("few", FEW)
        memory = ("--set-resources", f"evaluate_model:mem_mb={MEMORY_MB} * attempt")
        earlier = set(self.slurm.ask("squeue", "-h", "--states=all", "-o", "%F").split())
        with self.call("failing", *memory, log="failing", manifest=FEW) as call:
            cancelled = self._cancel_one(call, earlier)
            say(f"cancelled job {cancelled}; restarting the controller")
            self.slurm.stop_controller()
            time.sleep(2 * POLL_SECONDS)
            self.slurm.start_controller()
            code = call.end()
            text = call.text
        check(f"'{cancelled}' failed, SLURM status is: 'CANCELLED'" in text, "no job was cancelled")
        killed = (self.slurm.folder / "slurmd.log").read_text(errors="replace")
        check("exceeded memory limit" in killed, "no job exceeded its memory")
        if code != 0:
            check("Exiting because a job execution failed" in text, f"no message: {call.log}")
            say("the run ended with a message; calling it again")
            with self.call("failing", *memory, log="failing-again", manifest=FEW) as call:
                check(call.end() == 0, f"the second call failed: {call.log}")
        self.sweep.require_equal("few", "failing", FEW_MODELS)

    def _cancel_one(self, call: Call, earlier: set[str]) -> str:
        """Cancel a running evaluation once two have completed; returns its job id.

        ``earlier`` are the array jobs of previous runs. HUNGRY is never cancelled: its second
        attempt would have enough memory, and no job would exceed its limit.
        """

        def evaluations(*states: str) -> list[str]:
            command = ("squeue", "-h", "-r", "--states=all", "-o", "%F %i %T")
            rows = (line.split() for line in self.slurm.ask(*command).splitlines())
            return [
                number
                for array, number, state in rows
                if "_" in number and array not in earlier and state in states
            ]

        def modest() -> list[str]:
            logs = self.sweep.folder / "failing/results/logs/slurm/rule_evaluate_model"
            known = {}
            for number in evaluations("RUNNING"):
                with contextlib.suppress(FileNotFoundError):  # not begun, or ended and removed
                    known[number] = (logs / f"{number}.log").read_text(errors="replace")
            return [
                number
                for number, text in known.items()
                if "wildcards: model=" in text and f"wildcards: model={HUNGRY}\n" not in text
            ]

        def enough() -> bool:
            check(call.process.poll() is None, f"snakemake ended too early: {call.log}")
            return len(evaluations("COMPLETED")) >= 2 and bool(modest())

        over = ("CANCELLED", "COMPLETED", "FAILED")
        for _ in range(20):
            wait_for("running evaluations", enough, RUN_SECONDS, every=0.1)
            number = next(iter(modest()), None)
            if number is None:  # it has ended meanwhile
                continue
            self.slurm.ask("scancel", number)
            wait_for(f"the end of job {number}", lambda n=number: n in evaluations(*over), 60)
            if number in evaluations("CANCELLED"):
                return number
        raise TestFailure("every job ended before it could be cancelled")

    def unknown_partition(self) -> None:
        """An unknown partition is an error with Slurm's message."""
        options = (INDEX, "--default-resources", "slurm_partition=nosuch", "--retries", "0")
        with self.call("partition", *options, log="partition") as call:
            check(call.end() == 1, "an unknown partition is not an error")
            check("invalid partition specified: nosuch" in call.text, f"no message: {call.log}")

    def short_queue(self) -> None:
        """Array jobs that would wait forever are refused."""
        with self.call("short", "--jobs", "10", log="short") as call:
            check(call.end() == 1, "a queue that is too short is not an error")
            check("--slurm-array-jobs ''" in call.text, f"no message: {call.log}")

    def bare_node(self) -> None:
        """A node without the package is reported in the log that the error names."""
        bare = self.sweep.folder / "bare"
        (bare / "bin").mkdir(parents=True)
        (bare / "benchmark_eval.py").write_text(
            'raise ModuleNotFoundError("No module named benchmark_eval", name="benchmark_eval")\n'
        )
        sbatch = bare / "bin/sbatch"
        sbatch.write_text(f'#!/bin/sh\nPYTHONPATH={bare} exec {shutil.which("sbatch")} "$@"\n')
        sbatch.chmod(0o755)
        path = f"{sbatch.parent}:{self.slurm.environment['PATH']}"
        with self.call("node", INDEX, "--retries", "0", log="node", PATH=path) as call:
            check(call.end() == 1, "a node without the package is not an error")
            logs = list((self.sweep.folder / "node/results/logs/slurm").rglob("*.log"))
            check(len(logs) == 1 and str(logs[0]) in call.text, f"no log named: {call.log}")
            check("-m pip install " in logs[0].read_text(), f"no message: {logs[0]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the folder of the test")
    parser.add_argument("--only", default="", help="run only steps whose name contains this")
    options = parser.parse_args()
    missing = missing_programs()
    if missing or os.geteuid() != 0:
        why = f"{', '.join(missing)} missing" if missing else "not root"
        print(f"cannot start Slurm ({why}); run: make test-slurm", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="benchmark-eval-slurm-"))
    folder.chmod(0o755)
    say(f"in {folder}")
    try:
        run_all(folder, options.only)
    except (TestFailure, SlurmError) as error:
        print(f"FAILED: {error}\n(all logs are in {folder})", file=sys.stderr)
        return 1
    if options.keep:
        say(f"kept: {folder}")
    else:
        shutil.rmtree(folder)
    return 0


def run_all(folder: Path, only: str) -> None:
    sweep = Sweep(folder)
    sweep.make()
    with one_host_slurm(folder / "slurm", cpus=os.cpu_count() or 2, memory_mb=16_000) as slurm:
        tests = Tests(sweep, slurm)
        for name, test in steps(tests):
            if only not in name:
                continue
            since = time.monotonic()
            say(f"{name} ...")
            test()
            say(f"{name}: {time.monotonic() - since:.0f} s")


def steps(tests: Tests) -> Iterator[tuple[str, Callable[[], None]]]:
    yield f"{MODELS} models without Slurm", lambda: tests.local("local", ALL)
    yield f"{MODELS} models on Slurm", tests.clean
    yield f"{FEW_MODELS} models with failing jobs", tests.failing_jobs
    yield "an unknown partition", tests.unknown_partition
    yield "a queue that is too short", tests.short_queue
    yield "a node without the package", tests.bare_node


if __name__ == "__main__":
    sys.exit(main())
