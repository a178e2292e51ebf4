"""The commands in docs/convert.md run as written, on files as the frameworks write them."""

import json
import re
import shlex
from pathlib import Path

import pytest
from support.format_files import SPECIES, lay, lay_file, run, write_benchmark

PAGE = Path(__file__).parents[2] / "docs" / "convert.md"
BLOCKS = re.findall(r"(?:^    .*\n)+", PAGE.read_text().replace("\n\n    ", "\n    "), re.M)
COMMANDS = [
    shlex.split(found)[2:]
    for block in BLOCKS
    for found in re.findall(
        r"^benchmark-eval convert .*$", re.sub(r" \\\n\s*", " ", block).replace("    ", ""), re.M
    )
    if "SOURCE" not in found
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the commands name."""
    monkeypatch.chdir(tmp_path)
    coco = write_benchmark(tmp_path / "BENCHMARK") / "detection" / "annotations_coco"
    for other in ("inat_test", "semantic_ood", "train"):
        (coco / f"{other}.json").write_bytes((coco / "iid_test.json").read_bytes())
    lay_file(tmp_path / "subsets/gu_k5_s0/train.json", (coco / "train.json").read_text())
    for split in ("iid_test", "inat_test", "semantic_ood"):
        lay(tmp_path / "runs/m1" / split / "labels", {"007.txt": "2 0.5 0.5 0.1 0.1 0.9\n"})
    lay_file(tmp_path / "data.yaml", f"nc: 4\nnames: {list(SPECIES.values())}\n")
    box = {"bbox": [10.5, 20.0, 30.0, 40.0], "score": 0.5}
    lay_file(
        tmp_path / "predictions.json",
        [{"image_id": 7, "file_name": "007.jpg", "category_id": 3, **box}],
    )
    by_id = [{"image_id": 12, "category_id": 8, **box}]
    lay_file(tmp_path / "coco_instances_results.json", by_id)
    lay_file(tmp_path / "m1.bbox.json", by_id)
    return tmp_path


@pytest.mark.parametrize("args", COMMANDS, ids=lambda args: args[0])
def test_a_command_of_the_page_runs(files, args):
    result = run(*args)
    assert result.exception is None, result.exception
    written = files / "predictions/m1/iid_test_predictions.json"
    if "benchmark" in args:
        (record,) = json.loads(written.read_text())
        assert (record["image_id"], record["category_id"]) == (12, 8)
    assert "guessed" not in result.output or "subsets" in args[0]


def test_all_commands_of_the_page_were_found():
    assert len(COMMANDS) == PAGE.read_text().count("benchmark-eval convert ") - 1 >= 6
