"""Several processes of one command in one folder: one writes everything, the others say so."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.factories import evaluation, manifest_text, write_benchmark, write_evaluation
from support.layout import write_predictions, write_split, write_taxonomy
from support.voc_files import write_folder

from benchmark_eval.core.outputs import RECORD
from benchmark_eval.inputs.benchmark_reader import load_benchmark

pytestmark = pytest.mark.slow  # starts many processes

ROUNDS = 3
# imports first, so that the processes start to work at the same moment
STARTER = """
import sys
from benchmark_eval.cli.main import cli, main
for name in ("evaluate", "aggregate", "map"):
    cli.get_command(None, name)
import benchmark_eval.report.document, benchmark_eval.scoring.evaluate, benchmark_eval.voc.run
print("ready", flush=True)
sys.stdin.readline()
main(sys.argv[1:])
"""


def evaluate(folder):
    truth = [[i, 1 + i % 3, [10, 10, 40, 40]] for i in range(1, 301)]
    write_split(folder / "b", "iid_test", truth)
    write_taxonomy(folder / "b", [1, 2, 3])
    rows = [[1 + i % 300, 1 + i % 3, [10 + i % 7, 10, 40, 40], 0.3 + i / 1e5] for i in range(9000)]
    write_predictions(folder / "p", "iid_test", rows)
    words = "evaluate --quiet --benchmark-dir b --predictions-dir p --splits iid_test"
    return f"{words} --model-name m --output-dir out"


def aggregate(folder):
    digests = load_benchmark(write_benchmark(folder / "b")).digests
    rows = [[f"m{seed}", "a", "global_uniform", "1", str(seed)] for seed in range(3)]
    for name, *_, seed in rows:
        write_evaluation(folder / "e", evaluation(name, 0.3 + int(seed) / 9, benchmark=digests))
    (folder / "models.csv").write_text(manifest_text(rows))
    return "aggregate --eval-dir e --manifest models.csv --benchmark-dir b --output-dir out"


def map_(folder):
    lines = [f"{name} 0 0 {size} 9" for name in "abc" for size in range(9, 400)]
    write_folder(folder / "gt", {"1": lines})
    found = [line.replace(" ", f" 0.{number:04} ", 1) for number, line in enumerate(lines)]
    write_folder(folder / "det", {"1": found})
    return "map --quiet --no-plot -pd det -gt gt -od out"


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != RECORD}


@pytest.mark.parametrize("make", [evaluate, aggregate, map_])
def test_one_of_several_processes_writes_and_the_others_say_so(tmp_path, make):
    words = make(tmp_path).split()
    done = subprocess.run(
        [sys.executable, "-m", "benchmark_eval", *words], cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = files(tmp_path / "out")
    for _ in range(ROUNDS):
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", STARTER, *words], cwd=tmp_path, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            for _ in range(3)
        ]  # fmt: skip
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        ends = [(process.communicate()[1], process.returncode) for process in processes]
        assert 0 in [code for _, code in ends], ends
        for text, code in ends:
            assert (code, "another process is writing" in text) in [(0, False), (2, True)], text
        assert files(tmp_path / "out") == expected
    assert {path.name for path in Path(tmp_path, "out").iterdir()} == {*expected, RECORD}
