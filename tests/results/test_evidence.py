"""``<model>_evidence.npz``: its counts add up, its bytes repeat, other files are refused."""

import dataclasses
import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from support import adversarial
from support.layout import write_predictions, write_split, write_taxonomy

from benchmark_eval import evaluate_to_files
from benchmark_eval.core.errors import InputError
from benchmark_eval.results.evidence import (
    COLUMNS,
    N_SCORE_BINS,
    UNDEFINED,
    SplitEvidence,
    encode,
    evidence_problems,
    read_evidence,
    score_bins,
    score_edges,
)
from benchmark_eval.results.schema import ERROR_TYPES
from benchmark_eval.results.writers import write_evaluation

BOX = [0, 0, 50, 50]


@pytest.fixture
def place(tmp_path):
    truth = [[1, 1, BOX], [1, 1, [100, 0, 50, 50]], [2, 2, BOX], [3, 1, [0, 0, 9, 9], 1]]
    write_split(tmp_path / "b", "iid_test", truth, images=[1, 2, 3, 4])
    write_split(tmp_path / "b", "inat_test", truth[:2], listed=[1])
    write_split(tmp_path / "b", "semantic_ood", [[1, 101, BOX]])
    write_taxonomy(tmp_path / "b", [1, 2, 4, 101])
    rows = [
        [1, 1, BOX, 0.9],
        [1, 2, [100, 0, 50, 50], 0.3],
        [2, 1, BOX, 0.8],
        [2, 1, [300, 0, 9, 9], 0.25],
        [4, 2, BOX, 0.00001],
    ]
    write_predictions(tmp_path / "p", "iid_test", rows)
    # the species with the higher confidence is out of vocabulary
    rows = [[1, 2, BOX, 0.9], [1, 1, BOX, 0.5], [1, 1, [100, 0, 50, 50], 0.85]]
    write_predictions(tmp_path / "p", "inat_test", rows)
    write_predictions(tmp_path / "p", "semantic_ood", [[1, 1, BOX, 0.7]])
    return tmp_path


def evaluate(place, output="o", model="m", **options):
    return evaluate_to_files(
        benchmark=place / "b",
        predictions_dir=place / "p",
        output_dir=place / output,
        model_name=model,
        **options,
    )


def test_a_small_split_by_hand(place):
    evaluation = evaluate(place)
    evidence = read_evidence(place / "o/m_evidence.npz")
    assert evidence.category_ids.tolist() == [1, 2, 101]
    header = evidence.header
    assert (header.model, header.operating_confidence) == ("m", 0.3)
    assert header.inputs == evaluation.provenance.inputs
    iid = evidence.splits["iid_test"]
    assert iid.n_images.tolist() == [1, 1, 0, 2]
    assert iid.n_scored.tolist() == [2, 1, 0]
    assert iid.n_found.tolist() == [[2, 1, 0], [2, 1, 0]]
    assert iid.n_right.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert iid.n_genus.tolist() == [[2, 1, 0], [2, 1, 0]]
    assert iid.n_given.tolist() == [[2, 1, 0], [2, 1, 0]]
    pairs = zip(iid.confusion_true, iid.confusion_predicted, *iid.confusion_n, strict=True)
    assert list(pairs) == [(0, 0, 1, 1), (0, 1, 1, 1), (1, 0, 1, 1)]
    assert iid.hit_score.tolist() == [0.9, 0.3, 0.8]
    assert iid.hit_stratum.tolist() == [1, 1, 0]
    # false positives: one on the image of species 2, one on an image without specimens
    assert iid.fp_species.tolist() == [1, 3]
    assert iid.fp_n.tolist() == [[1, 1], [0, 0]]
    for at, score in enumerate((0.25, 0.00001)):
        edges = evidence.score_edges[iid.fp_bin[at] : iid.fp_bin[at] + 2]
        assert edges[0] <= score < edges[1]
    names = dict(zip(ERROR_TYPES, iid.errors[0].sum(axis=0).tolist(), strict=True))
    found = {"correct": 1, "wrong_name_congener": 2, "background": 2}
    assert {name: n for name, n in names.items() if n} == found
    assert iid.errors[0, :, ERROR_TYPES.index("background")].tolist() == [0, 1, 0, 1]


def test_naming_with_nothing_left_out(place):
    """Species 2 is out of vocabulary on inat_test and takes one of the two specimens."""
    block = evaluate(place).per_split["inat_test"].decomposition
    assert block.classification_given_detection_acc == 1.0
    assert block.classification_given_detection_acc_open_vocabulary == 0.5
    assert block.species_recall_open_vocabulary == 0.5
    assert block.detection_recall_open_vocabulary == 1.0
    inat = read_evidence(place / "o/m_evidence.npz").splits["inat_test"]
    assert (inat.n_found_open[0].tolist(), inat.n_right_open[0].tolist()) == ([2, 0, 0], [1, 0, 0])
    assert inat.n_right[0].tolist() == [2, 0, 0]


def test_without_iid_test_counts_at_the_operating_threshold_are_undefined(place):
    evaluate(place, splits=["inat_test"])
    evidence = read_evidence(place / "o/m_evidence.npz")
    inat = evidence.splits["inat_test"]
    assert evidence.header.operating_confidence is None
    with_threshold = [c.name for c in COLUMNS if "threshold" in c.shape]
    for name in with_threshold:
        table = getattr(inat, name)
        assert (table[1] == UNDEFINED).all(), name
        assert (table[0] >= 0).all(), name


@pytest.mark.parametrize("seed", range(12))
def test_counts_add_up(seed, tmp_path):
    """Random benchmarks with crowd, ties, blank ranks, unlisted species and empty splits."""
    case = adversarial.draw(seed, tmp_path)
    evaluation = evaluate_to_files(
        benchmark=case.benchmark,
        predictions_dir=case.predictions,
        output_dir=tmp_path / "o",
        model_name="m",
        splits=case.splits,
        iou=case.iou,
        on_invalid=case.on_invalid,
        detections="all",
    )
    evidence = read_evidence(tmp_path / "o/m_evidence.npz")
    lines = (tmp_path / "o/m_detections.csv").read_text().splitlines()[1:]
    missed = ERROR_TYPES.index("missed")
    n_rows = 0
    for split, block in evaluation.per_split.items():
        table, errors = evidence.splits[split], block.errors
        n_gt, n_tp = block.decomposition.n_gt, block.decomposition.n_matched_tp
        of_type = table.errors[0].sum(axis=0)
        n_typed = int(of_type.sum() - of_type[missed])
        # one type for each detection outside crowd regions
        assert n_typed == block.calibration.n_predictions
        assert n_typed + errors.on_crowd == block.n_predictions
        assert int(of_type[missed]) + n_tp == n_gt == int(table.n_scored.sum())
        assert errors.missed.n == n_gt - n_tp
        hits = [errors.correct.n]
        if split != "semantic_ood":
            hits.append(errors.wrong_name.n)
            right = block.decomposition.species_recall
            assert errors.correct.n == (round(right * n_gt) if n_gt else 0)
        assert sum(hits) == n_tp == len(table.hit_true) == int(table.confusion_n[0].sum())
        assert table.n_found[0].sum() == table.n_given[0].sum() == n_tp
        assert int(table.fp_n[0].sum()) == n_typed - n_tp
        assert int(table.n_images.sum()) == block.prediction_density.n_images
        n_rows += n_typed + errors.missed.n
        confidence = evidence.header.operating_confidence
        if confidence is None:
            continue
        kept = table.hit_score >= confidence
        assert table.n_found[1].sum() == kept.sum() == table.confusion_n[1].sum()
        assert (table.errors[1] >= 0).all()
        assert table.errors[1].sum() - table.errors[1, :, missed].sum() == (
            kept.sum() + table.fp_n[1].sum()
        )
    assert len(lines) == n_rows


def test_the_same_inputs_give_the_same_bytes(place):
    evaluate(place)
    first = (place / "o/m_evidence.npz").read_bytes()
    evaluate(place, "again")
    assert (place / "again/m_evidence.npz").read_bytes() == first
    code = (
        "from benchmark_eval import evaluate_to_files as e; import sys; p = sys.argv[1];"
        "e(benchmark=p + '/b', predictions_dir=p + '/p', output_dir=p + '/other', model_name='m')"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(place)],
        check=True,
        env={"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONPATH": ":".join(sys.path)},
    )
    assert (place / "other/m_evidence.npz").read_bytes() == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert {item.date_time for item in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert encode(read_evidence(place / "o/m_evidence.npz")) == first
    # numpy reads it without this package
    with np.load(place / "o/m_evidence.npz", allow_pickle=False) as store:
        assert store["iid_test/n_scored"].tolist() == [2, 1, 0]


def test_columns_and_fields_are_the_same():
    assert [c.name for c in COLUMNS] == [f.name for f in dataclasses.fields(SplitEvidence)]


def test_every_score_lies_in_its_bin():
    edges = score_edges()
    assert len(edges) == N_SCORE_BINS + 1
    assert (np.diff(edges) > 0).all()
    scores = np.r_[0.0, -0.0, 5e-324, edges, np.nextafter(edges[1:], 0), np.linspace(0, 1, 999)]
    bins = score_bins(scores)
    assert (edges[bins] <= scores).all()
    assert ((scores < edges[bins + 1]) | (scores == 1.0)).all()
    # fine enough: a bin is narrower than 0.4 % of its scores, above 2**-14
    assert (np.diff(edges[1:]) / edges[1:-1]).max() <= 1 / 256


def replaced(data, name, change):
    """The archive with one member changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            content = old.read(item)
            new.writestr(item, change(content) if item.filename == name else content)
    return out.getvalue()


def saved(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[:-200],
        lambda data: b"not a zip file",
        lambda data: replaced(data, "header.npy", lambda _: saved(np.zeros(3, np.uint8))),
        lambda data: replaced(data, "iid_test/n_given.npy", lambda _: saved(np.zeros((2, 9)))),
        lambda data: replaced(data, "iid_test/n_found.npy", lambda _: saved(np.zeros((2, 3)))),
        lambda data: replaced(data, "iid_test/hit_true.npy", lambda _: saved(np.zeros(1, "i4"))),
        lambda data: replaced(data, "iid_test/hit_true.npy", lambda _: saved(np.full(3, 3, "i4"))),
        lambda data: replaced(data, "iid_test/fp_bin.npy", lambda _: saved(np.full(2, -1, "i4"))),
        lambda data: replaced(data, "iid_test/n_scored.npy", lambda _: b"\x93NUMPY"),
        lambda data: replaced(data, "iid_test/n_scored.npy", lambda _: saved(np.array([None]))),
    ],
)
def test_a_damaged_file_is_an_error(place, change):
    evaluate(place)
    path = place / "o/m_evidence.npz"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError) as error:
        read_evidence(path)
    assert [p.kind for p in error.value.problems] == ["evidence-broken"]
    assert "evaluate the model again" in str(error.value)


def test_other_evidence_is_refused(place):
    evaluation = evaluate(place)
    path = place / "o/m_evidence.npz"
    assert evidence_problems(path, evaluation) == []
    assert evidence_problems(place / "o/none.npz", evaluation) == []
    evaluate(place, "o", "n")
    (problem,) = evidence_problems(place / "o/n_evidence.npz", evaluation)
    assert (problem.kind, problem.found, problem.expected) == ("other-model", "'n'", "'m'")
    evaluate(place, "strict", iou=0.9)
    (problem,) = evidence_problems(place / "strict/m_evidence.npz", evaluation)
    assert problem.kind == "other-evidence"
    data = path.read_bytes()
    old, new = (f'"schema_version":{n}'.encode() for n in (1, 7))
    path.write_bytes(replaced(data, "header.npy", lambda content: content.replace(old, new)))
    (problem,) = evidence_problems(path, evaluation)
    assert (problem.kind, problem.found) == ("schema-version", "schema_version 7")
    with pytest.raises(InputError, match="evaluate the model again"):
        read_evidence(path)
    os.mkfifo(place / "o/pipe.npz")
    (problem,) = evidence_problems(place / "o/pipe.npz", evaluation)
    assert problem.found == "a named pipe, not a regular file"
    with pytest.raises(InputError, match="a named pipe"):
        read_evidence(place / "o/pipe.npz")
    path.write_bytes(b"")
    assert [p.kind for p in evidence_problems(path, evaluation)] == ["evidence-broken"]
    with pytest.raises(InputError, match="No such file"):
        read_evidence(place / "o/none.npz")


def test_all_files_of_a_model_are_written_or_none(place, monkeypatch):
    evaluation = evaluate(place)
    before = {path.name: path.read_bytes() for path in (place / "o").iterdir()}
    assert write_evaluation.__module__ == "benchmark_eval.results.writers"

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("benchmark_eval.core.atomic_write.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        evaluate(place, iou=0.9)
    assert {path.name: path.read_bytes() for path in (place / "o").iterdir()} == before
    assert evaluation.model == "m"
