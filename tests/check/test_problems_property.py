"""Any file is either read or rejected with all its problems."""

import copy
import json
import math
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.factories import evaluation
from support.layout import DuplicateKey, record, write_split, write_taxonomy

from benchmark_eval.core.errors import InputError
from benchmark_eval.inputs.benchmark_index import read_index, save_index
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.config import read_config
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.inputs.prediction_decoder import REASONS
from benchmark_eval.inputs.predictions import read_predictions
from benchmark_eval.results.schema import decode_summary

pytestmark = pytest.mark.slow  # property tests

TRIED = Counter()
quick = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    truth = [[i, 1 + i % 3, [10 * i, 10, 40, 40], i % 2] for i in range(1, 9)]
    write_split(folder, "iid_test", truth)
    write_split(folder, "semantic_ood", [[1, 101, [0, 0, 9, 9]]])
    write_taxonomy(folder, [1, 2, 3, 101])
    return folder


@pytest.fixture(scope="module")
def benchmark(place):
    return load_benchmark(place)


@pytest.fixture(autouse=True)
def record_counts(record_property):
    before = Counter(TRIED)
    yield
    for name, n in (TRIED - before).items():
        record_property(name, n)


# --------------------------------------------------------------------------------------------
# Arbitrary records with arbitrary problems
# --------------------------------------------------------------------------------------------

box_number = st.floats(0, 2000, allow_nan=False)
valid = st.builds(
    record,
    st.integers(1, 8) | st.integers(1, 8).map(float),
    st.sampled_from([1, 2, 3, 101]),
    st.tuples(box_number, box_number, box_number, box_number).map(list),
    st.floats(0, 1, allow_nan=False) | st.sampled_from([0, 1]),
)
not_numeric = st.one_of(
    st.none(), st.booleans(), st.text(max_size=5), st.lists(st.integers(), max_size=3)
)
not_finite = st.sampled_from([math.nan, math.inf, -math.inf])
overflowing = st.sampled_from([[1, 1e308, 1, 1e308], [0, 0, 1e200, 1e200], [1.7e308, 0, 1e308, 0]])
number = st.floats(allow_nan=False, allow_infinity=False)


def with_bad_number(bad):
    """Boxes of four numbers, one of them bad."""
    return st.tuples(
        st.lists(box_number, min_size=4, max_size=4), st.integers(0, 3), bad
    ).map(lambda b: [*b[0][: b[1]], b[2], *b[0][b[1] + 1 :]])  # fmt: skip


any_id = st.integers(-(2**63), 2**63 - 1)
negative = st.floats(-1e150, -1e-300)
PROBLEMS = {
    "record-shape": (None, st.one_of(not_numeric, number)),
    "duplicate-key": ("image_id category_id bbox score", st.none()),
    "id-type": (
        "image_id category_id",
        st.one_of(not_numeric, number.filter(lambda v: v != int(v)), not_finite),
    ),
    "bbox-type": (
        "bbox",
        st.one_of(
            not_numeric.filter(lambda v: not isinstance(v, list)),
            st.lists(number, max_size=6).filter(lambda v: len(v) != 4),
            with_bad_number(not_numeric),
        ),
    ),
    "score-type": ("score", not_numeric),
    "bbox-not-finite": ("bbox", with_bad_number(not_finite) | overflowing),
    "bbox-negative": (
        "bbox",
        st.tuples(box_number, box_number, negative, box_number | negative).map(list),
    ),
    "score-range": ("score", st.one_of(number.filter(lambda v: not 0 <= v <= 1), not_finite)),
    "image-id-unknown": ("image_id", any_id.filter(lambda v: not 1 <= v <= 8)),
    "category-id-unknown": ("category_id", any_id.filter(lambda v: v not in (1, 2, 3, 101))),
}  # fmt: skip
MISSING = object()


@st.composite
def invalid_files(draw):
    """Records, and the kind of problem planted in some of them (by row)."""
    records = draw(st.lists(valid, max_size=12))
    planted = {}
    if records:
        for row in draw(st.lists(st.integers(0, len(records) - 1), unique=True, max_size=5)):
            kind = draw(st.sampled_from(sorted(PROBLEMS)))
            names, values = PROBLEMS[kind]
            if names is None:
                records[row] = draw(values)
            else:
                name = draw(st.sampled_from(names.split()))
                records[row] = dict(records[row])
                if kind.endswith("-type") and draw(st.booleans()):
                    del records[row][name]
                elif kind == "duplicate-key":
                    records[row][DuplicateKey(name)] = records[row][name]
                else:
                    records[row][name] = copy.deepcopy(draw(values))
            planted[row] = kind
    return records, planted


def test_every_kind_of_record_problem_is_planted():
    assert set(PROBLEMS) == set(REASONS)


@quick
@given(invalid_files())
def test_exactly_the_planted_problems_are_reported_and_the_rest_is_kept(place, benchmark, file):
    records, planted = file
    TRIED.update(faults=len(planted), inputs=1)
    path = place / "iid_test_predictions.json"
    path.write_text(json.dumps(records))
    if planted:
        with pytest.raises(InputError) as error:
            read_predictions(path, benchmark, "iid_test")
        reported = [(int(p.record.split()[1]), p.kind) for p in error.value.problems]
        assert reported == sorted(planted.items())
    dropped = read_predictions(path, benchmark, "iid_test", "drop")
    assert dropped.dropped == Counter(REASONS[kind] for kind in planted.values())
    kept = [r for row, r in enumerate(records) if row not in planted]
    assert len(dropped) + dropped.n_out_of_vocabulary == len(kept)
    assert dropped.score.tolist() == [r["score"] for r in kept if r["category_id"] != 101]


# --------------------------------------------------------------------------------------------
# Arbitrary bytes
# --------------------------------------------------------------------------------------------

edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 30), st.binary(max_size=8) | st.sampled_from(
        [b"NaN", b"1e999", b"-0", b'"', b"}", b"{", b"[", b"]", b",", b"null", b"\\", b"\xff"]
    )),
    min_size=1,
    max_size=4,
)  # fmt: skip


def edited(data, changes):
    """The bytes after some edits, each of which replaces bytes at a relative position."""
    for where, n_removed, inserted in changes:
        start = int(where * len(data))
        data = data[:start] + inserted + data[start + n_removed :]
    return data


def read_or_refused(read):
    """Whether ``read`` succeeds; the only error allowed is an InputError with its problems."""
    TRIED.update(inputs=1)
    try:
        read()
    except InputError as error:
        assert error.problems
        assert all(p.kind and p.file and p.found and p.expected for p in error.problems)
        return False
    return True


RECORDS = json.dumps([record(1 + i % 8, 1 + i % 3, [i, 2, 3, 4.5], i / 9) for i in range(9)])


@quick
@given(st.binary(max_size=60) | st.builds(edited, st.just(RECORDS.encode()), edits))
def test_any_prediction_file(place, benchmark, data):
    path = place / "semantic_ood_predictions.json"
    path.write_bytes(data)
    read_or_refused(lambda: read_predictions(path, benchmark, "iid_test"))
    read_or_refused(lambda: read_predictions(path, benchmark, "iid_test", "drop"))


@quick
@given(edits)
def test_any_gzip_file(place, benchmark, changes):
    import gzip

    path = place / "inat_test_predictions.json.gz"
    path.write_bytes(edited(gzip.compress(RECORDS.encode(), mtime=0), changes))
    read_or_refused(lambda: read_predictions(path, benchmark, "iid_test"))


@quick
@given(st.sampled_from(["iid_test.json", "taxonomy"]), edits)
def test_any_benchmark_file(place, tmp_path_factory, which, changes):
    folder = tmp_path_factory.mktemp("benchmark")
    coco = folder / "detection/annotations_coco"
    coco.mkdir(parents=True)
    for name in ("iid_test.json", "semantic_ood.json"):
        (coco / name).write_bytes((place / "detection/annotations_coco" / name).read_bytes())
    taxonomy = folder / "species_taxonomy.csv"
    taxonomy.write_bytes((place / "species_taxonomy.csv").read_bytes())
    path = taxonomy if which == "taxonomy" else coco / which
    path.write_bytes(edited(path.read_bytes(), changes))
    read_or_refused(lambda: load_benchmark(folder))


@quick
@given(edits)
def test_any_manifest(place, changes):
    text = b"model_name,regime,k_or_p,seed\n" + b"".join(
        b"m%d,global_uniform,5,%d\n" % (i, i) for i in range(5)
    )
    (place / "manifest.csv").write_bytes(edited(text, changes))
    read_or_refused(lambda: read_manifest(place / "manifest.csv"))


@quick
@given(edits)
def test_any_config(place, changes):
    text = b"benchmark_dir: data\nsplits: [iid_test, inat_test]\niou: 0.5\nallow_missing: false\n"
    (place / "config.yaml").write_bytes(edited(text, changes))
    read_or_refused(lambda: read_config(place / "config.yaml"))


@quick
@given(edits)
def test_any_index(place, benchmark, changes):
    save_index(benchmark, place / "index.npz")
    whole = (place / "index.npz").read_bytes()
    (place / "index.npz").write_bytes(edited(whole, changes))
    read_or_refused(lambda: read_index(place / "index.npz"))


@quick
@given(edits)
def test_any_summary(changes):
    import msgspec

    whole = msgspec.json.encode(evaluation("m"))
    read_or_refused(lambda: decode_summary(edited(whole, changes), "m_summary.json"))
