"""Every reader names what it found in place of its file: a pipe, a dead link, an LFS pointer."""

import ast
import gzip
import os
import signal
import zipfile
from pathlib import Path

import pytest
from support.layout import ANNOTATIONS, write_predictions, write_split, write_taxonomy

import benchmark_eval
from benchmark_eval import check_inputs
from benchmark_eval.cli.main import main
from benchmark_eval.core.errors import BenchmarkEvalError
from benchmark_eval.formats.classes import read_class_names
from benchmark_eval.formats.conversion import convert_annotations
from benchmark_eval.formats.images import read_images
from benchmark_eval.inputs.benchmark_index import read_index
from benchmark_eval.inputs.benchmark_reader import load_benchmark
from benchmark_eval.inputs.config import read_config
from benchmark_eval.inputs.manifest import read_manifest
from benchmark_eval.inputs.predictions import read_predictions
from benchmark_eval.results.schema import load_summary
from benchmark_eval.sweep.custom_metrics import load_custom_metrics
from benchmark_eval.sweep.tables import load_tables
from benchmark_eval.training.budgets import exact_budget
from benchmark_eval.voc.scoring import score_voc_folders

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
PAGE = b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n"


def small(folder):
    """A benchmark with a test and a training split."""
    write_split(folder, "iid_test", [[1, 1, [0, 0, 9, 9]], [1, 1, [20, 0, 9, 9], 1]])
    write_split(folder, "train", [[1, 1, [0, 0, 9, 9]]])
    write_taxonomy(folder, [1])
    return folder


def put(path, make):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    return path


def convert(format_name, file="x.json"):
    def read(folder, make):
        path = put(folder / "source" / file, make)
        source = path if format_name in ("coco", "coco-results", "huggingface") else path.parent
        convert_annotations(source, folder / "out", from_format=format_name, to_format="coco")

    return read


def of_benchmark(file):
    def read(folder, make):
        put(small(folder / "b") / file, make)
        load_benchmark(folder / "b")

    return read


def of_checked_table(file):
    def read(folder, make):
        put(small(folder / "b") / file, make)
        report = check_inputs(benchmark_dir=folder / "b", jobs=1)
        found = [f.problem for f in report.findings if f.problem.file == file]
        raise BenchmarkEvalError("\n".join(map(str, found)))

    return read


def of_map(folder, make):
    (folder / "det").mkdir()
    (folder / "det/a.txt").write_text("x 0.5 0 0 9 9\n")
    put(folder / "gt/a.txt", make)
    score_voc_folders(folder / "det", folder / "gt")


def simple(function, file):
    return lambda folder, make: function(put(folder / file, make))


READERS = {
    "predictions": lambda folder, make: read_predictions(
        put(folder / "iid_test_predictions.json", make), load_benchmark(small(folder)), "iid_test"
    ),
    "annotations": of_benchmark(f"{ANNOTATIONS}/iid_test.json"),
    "taxonomy": of_benchmark("species_taxonomy.csv"),
    "MANIFEST.csv": of_checked_table("MANIFEST.csv"),
    "licences": of_checked_table("image_licences.csv"),
    "manifest": simple(read_manifest, "manifest.csv"),
    "config": simple(read_config, "config.yaml"),
    "index": simple(read_index, "index.npz"),
    "summary": simple(load_summary, "m_summary.json"),
    "tables": simple(load_tables, "aggregated.json"),
    "names.txt": simple(read_class_names, "classes.txt"),
    "data.yaml": simple(read_class_names, "data.yaml"),
    "names.json": simple(read_class_names, "names.json"),
    "images": simple(read_images, "train.json"),
    "custom metrics": simple(load_custom_metrics, "metrics.py"),
    "training annotations": lambda folder, make: exact_budget(
        put(folder / "subset.json", make), load_benchmark(small(folder))
    ),
    "coco": convert("coco"),
    "coco-results": convert("coco-results"),
    "huggingface": convert("huggingface"),
    "yolo": convert("yolo", "a.txt"),
    "voc-xml": convert("voc-xml", "a.xml"),
    "darkflow": convert("darkflow", "a.json"),
    "xyxy-text": convert("xyxy-text", "a.txt"),
    "map": of_map,
}


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.json", "[]")


STATES = {
    "an LFS pointer": (lambda p: p.write_bytes(POINTER), "a Git LFS pointer", "git lfs pull"),
    "gzip": (lambda p: p.write_bytes(gzip.compress(b"[]")), "gzip data", "unpack it"),
    "zip": (zipped, "a zip archive", "unpack it"),
    "a login page": (lambda p: p.write_bytes(PAGE), "an HTML page", "download it again"),
    "a pipe": (os.mkfifo, "a named pipe, not a regular file", ""),
    "a device": (lambda p: p.symlink_to("/dev/zero"), "a device, not a regular file", ""),
    "a folder": (lambda p: p.mkdir(), "a folder, not a regular file", ""),
    "a dead link": (
        lambda p: p.symlink_to("../archive/x"),
        "a link to ../archive/x, which does not exist",
        "",
    ),
}


@pytest.fixture(autouse=True)
def no_endless_wait():
    """Kill a test that waits for a pipe or reads an endless device."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("state", STATES)
def test_what_was_found_in_place_of_a_file_is_named(tmp_path, reader, state):
    if (reader, state) == ("index", "zip"):
        pytest.skip("an index is a zip archive")
    if reader in ("coco", "coco-results", "huggingface") and state in ("a folder", "a dead link"):
        pytest.skip("the source of a conversion is looked up first, see below")
    make, found, cause = STATES[state]
    with pytest.raises(BenchmarkEvalError) as error:
        READERS[reader](tmp_path, make)
    assert found in str(error.value)
    assert cause in str(error.value)


def test_a_dead_link_as_the_source_of_a_conversion_is_named(tmp_path, capsys):
    (tmp_path / "x.json").symlink_to("gone.json")
    for options in ([], ["--from", "coco"]):
        with pytest.raises(SystemExit) as stop:
            main(["convert", str(tmp_path / "x.json"), "out", "--to", "coco", *options])
        assert stop.value.code == 2
        assert "a link to gone.json, which does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "a named pipe"),
        (lambda p: p.symlink_to("/dev/zero"), "a device"),
        (lambda p: p.write_bytes(POINTER), "a Git LFS pointer"),
    ],
)
@pytest.mark.parametrize("command", ["plot", "report", "aggregate", "verify", "map", "convert"])
def test_commands_refuse_such_files(tmp_path, capsys, make, words, command):
    small(tmp_path / "b")
    file = tmp_path / "eval/m_summary.json"
    arguments = {
        "plot": ["--aggregated", file, "--output-dir", tmp_path / "out"],
        "report": ["--aggregated", file, "--output-dir", tmp_path / "out"],
        "verify": [tmp_path / "eval"],
        "aggregate": ["--eval-dir", tmp_path / "eval", "--manifest", tmp_path / "m.csv",
                      "--benchmark-dir", tmp_path / "b", "--output-dir", tmp_path / "out"],
        "map": ["-pd", tmp_path / "eval", "-gt", tmp_path / "gt"],
        "convert": [tmp_path / "x.json", tmp_path / "out.json", "--to", "coco",
                    "--names", file],
    }[command]  # fmt: skip
    if command == "map":
        file = tmp_path / "eval/a.txt"
        put(tmp_path / "gt/a.txt", lambda path: path.write_text("x 0 0 9 9\n"))
    (tmp_path / "x.json").write_text('{"images": [], "annotations": [], "categories": []}')
    (tmp_path / "m.csv").write_text("model_name,regime,k_or_p,seed\nm,global_uniform,1,0\n")
    put(file, make)
    with pytest.raises(SystemExit) as stop:
        main([command, *map(str, arguments)])
    captured = capsys.readouterr()
    assert stop.value.code == 1
    assert words in captured.err + captured.out
    assert "Traceback" not in captured.err


def test_an_image_that_is_a_pipe_is_refused(tmp_path, capsys):
    coco = write_split(tmp_path, "iid_test", [[1, 1, [0, 0, 9, 9]]])
    put(tmp_path / "images/1.jpg", os.mkfifo)
    with pytest.raises(SystemExit) as stop:
        main(["convert", str(coco), str(tmp_path / "out"), "--to", "yolo",
              "--images-dir", str(tmp_path / "images")])  # fmt: skip
    assert stop.value.code == 1
    assert "a named pipe, not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b'{"image_id": 1}\n{"image_id": 2}\n', "JSON Lines (one record per line)"),
        (b"<annotation/>", "XML instead of JSON"),
        (b"\0" * 500, "only zeros"),
        (b" \n", "an empty file"),
        (b'[{"image_id": 1, "categ', "truncated or damaged file"),
        ("[{]".encode("utf-16"), "UTF-16"),
        ("[{]".encode("utf-16-le"), "UTF-16"),
    ],
)
@pytest.mark.parametrize(
    "reader",
    ["predictions", "annotations", "summary", "tables", "images", "training annotations",
     "coco", "coco-results", "huggingface", "darkflow"],
)  # fmt: skip
def test_text_that_is_not_json_has_a_cause(tmp_path, reader, content, cause):
    with pytest.raises(BenchmarkEvalError) as error:
        READERS[reader](tmp_path, lambda path: path.write_bytes(content))
    assert cause in str(error.value)


@pytest.mark.parametrize(
    "reader", ["taxonomy", "manifest", "config", "names.txt", "data.yaml", "yolo", "xyxy-text"]
)
def test_text_in_utf_16_is_named(tmp_path, reader):
    with pytest.raises(BenchmarkEvalError, match="UTF-16") as error:
        READERS[reader](tmp_path, lambda path: path.write_bytes("a: b\n".encode("utf-16")))
    assert "line 1" in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (POINTER, "not gzip data; expected a readable file (a Git LFS pointer"),
        (b"[]", "not gzip data; expected a readable file (not compressed: remove .gz"),
        (gzip.compress(b"[" + b" " * 99, mtime=0)[:20], "truncated or damaged gzip file"),
    ],
)
def test_a_gz_file_that_is_not_gzip_has_a_cause(tmp_path, content, words):
    benchmark = load_benchmark(small(tmp_path))
    path = tmp_path / "iid_test_predictions.json.gz"
    path.write_bytes(content)
    with pytest.raises(BenchmarkEvalError) as error:
        read_predictions(path, benchmark, "iid_test")
    assert words in str(error.value)


def test_a_dead_link_above_the_file_is_named(tmp_path, capsys):
    small(tmp_path / "b")
    (tmp_path / "models").symlink_to("/archive/models")
    arguments = ["--benchmark-dir", str(tmp_path / "b"), "--predictions-dir"]
    with pytest.raises(SystemExit):
        main(["evaluate", *arguments, str(tmp_path / "models/m"), "--output-dir", "out",
              "--splits", "iid_test"])  # fmt: skip
    assert "models, a link to /archive/models, which does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["check", "--quiet", *arguments, str(tmp_path / "models")])
    out = " ".join(capsys.readouterr().out.split())  # long lines are wrapped
    assert "a link to /archive/models, which does not exist" in out


def test_a_prediction_file_that_is_a_dead_link_is_named_by_check(tmp_path):
    benchmark = small(tmp_path / "b")
    folder = tmp_path / "p/m"
    write_predictions(folder, "inat_test", [])
    (folder / "iid_test_predictions.json").symlink_to("gone.json")
    report = check_inputs(
        benchmark_dir=benchmark, predictions_dir=tmp_path / "p", splits=["iid_test"], jobs=1
    )
    (finding,) = [f.problem for f in report.findings if f.problem.kind == "missing-predictions"]
    assert finding.found == "a link to gone.json, which does not exist"


# --------------------------------------------------------------------------------------------
# One guarded reader
# --------------------------------------------------------------------------------------------

PACKAGE = Path(benchmark_eval.__file__).parent
OPENING = {
    *("read_text", "read_bytes", "open", "load", "loadtxt", "genfromtxt", "fromfile", "memmap"),
    *("reader", "DictReader", "read_csv", "parse", "ZipFile", "GzipFile", "safe_load"),
}
"""Names of functions that open a file or read from one."""
EXCEPTIONS = {
    "core/safe_read.py: open": "the guarded reader itself",
    "core/memory.py: read_text": "files of the kernel in /proc and /sys",
    "core/terminal.py: open": "the null device, and standard streams",
    "core/outputs.py: open": "locks the output folder",
    "core/code_digest.py: read_bytes": "the package's own source files",
    "core/csv_text.py: reader": "reads text; the only reader of CSV",
    "core/yaml_text.py: parse": "reads text; the only reader of YAML",
    "core/yaml_text.py: safe_load": "reads text; the only reader of YAML",
    "formats/json_files.py: parse": "a function of its own, of text",
    "formats/json_files.py: read_bytes": "a function of its own, which calls read_or_report",
    "core/npz.py: load": "reads a stream of open_input",
    "results/evidence.py: open": "a part of an archive from open_input",
    "inputs/config.py: read_text": "the schema, which is part of the package",
    "gallery/page.py: read_text": "the template, which is part of the package",
    "gallery/pictures.py: load": "decodes an image from open_image",
    "report/page/document.py: read_text": "the template, which is part of the package",
    "report/page/prose.py: parse": "reads text, as Markdown",
    "inputs/prediction_decoder.py: GzipFile": "unpacks a file from open_input piece by piece",
}


def calls_that_open(source):
    """Names of functions called in ``source`` that open a file for reading by themselves."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        texts = [a.value for a in [*node.args, *(k.value for k in node.keywords)]
                 if isinstance(a, ast.Constant) and isinstance(a.value, str)]  # fmt: skip
        writes = name == "open" and any(set(text) & set("wax") and len(text) < 4 for text in texts)
        from_stream = node.args and getattr(node.args[0], "id", "") == "stream"
        owner = getattr(getattr(node.func, "value", None), "id", "")
        own = owner == "json_files" or (name == "reader" and owner != "csv")
        if name in OPENING and not writes and not from_stream and not own:
            yield name


def test_only_the_guarded_reader_opens_files_for_reading():
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in calls_that_open(path.read_text())
    }
    assert found <= set(EXCEPTIONS), "use core.safe_read, or add the reason for an exception"


@pytest.mark.parametrize(
    "code",
    ["Path(x).read_text()", "open(x)", 'open(x, "rb")', "path.open()", "np.load(x)",
     "Image.open(path)", "csv.reader(x)", "json.load(f)", "ElementTree.parse(path)"],
)  # fmt: skip
def test_unguarded_calls_are_found(code):
    assert list(calls_that_open(code))


@pytest.mark.parametrize("code", ['open(x, "w")', 'path.open("a")', "np.load(stream)", "loads(x)"])
def test_guarded_calls_are_accepted(code):
    assert not list(calls_that_open(code))
