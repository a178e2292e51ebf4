"""What is printed: control characters are escaped, names of all scripts stay readable."""

import errno
import io
import sys

import pytest

from benchmark_eval.core import terminal
from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem, render_problems
from benchmark_eval.core.terminal import say, say_text
from benchmark_eval.core.text import visible

HOSTILE = {
    "ESC": ("\x1b[2J", r"\x1b[2J"),
    "OSC": ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
    "C1 CSI": ("\x9b31m", r"\x9b31m"),
    "bidi override": ("a\u202eb", r"a\u202eb"),
    "bidi isolate": ("\u2066a\u2069", r"\u2066a\u2069"),
    "Arabic letter mark": ("\u061c", r"\u061c"),
    "line feed": ("a\nerror: b", r"a\nerror: b"),
    "carriage return": ("a\rb", r"a\rb"),
    "next line": ("a\x85b", r"a\x85b"),
    "line separator": ("a\u2028b", r"a\u2028b"),
    "tab": ("a\tb", r"a\tb"),
    "backspace": ("a\bb", r"a\x08b"),
    "NUL": ("\0", r"\x00"),
    "DEL": ("\x7f", r"\x7f"),
    "zero width space": ("a\u200bb", r"a\u200bb"),
    "byte order mark": ("\ufeffa", r"\ufeffa"),
    "tag": ("\U000e0041", r"\U000e0041"),
    "byte that is not UTF-8": ("\udc80", r"\udc80"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_control_characters_become_visible(name):
    text, expected = HOSTILE[name]
    assert visible(text) == expected
    assert visible(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Ips typographus",
        "Großer Buchdrucker",
        "e\u0301te\u0301",  # combining accents
        "小蠹虫",
        "короед",
        "خنفساء",
        "می\u200cخواهم",  # Persian needs the non-joiner
        "क्\u200dष",  # Hindi the joiner
        "a\u00a0b",
        "🪲",
        "C:\\data\\new",
    ],
)
def test_names_of_all_scripts_stay_as_they_are(text):
    assert visible(text) == text


def test_a_line_is_printed_as_one_line(capsys):
    say("a\nb", "c\x1b[31m")
    say("d\re", err=True)
    assert capsys.readouterr() == ("a\\nb\nc\\x1b[31m\n", "d\\re\n")


def test_text_of_several_lines(capsys):
    say_text("a\nb\x1b\n")
    assert capsys.readouterr().out == "a\nb\\x1b\n"


def test_characters_that_the_stream_cannot_encode_are_escaped(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    say("Käfer 虫")
    assert raw.getvalue() == b"K\\xe4fer \\u866b\n"


class Full(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_lost_output_is_an_error_and_lost_errors_are_not(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Full())
    monkeypatch.setattr(sys, "stderr", Full())
    with pytest.raises(OSError, match="No space left on device") as caught:
        say("a")
    assert caught.value.filename == terminal.STANDARD_OUTPUT
    say("a", err=True)


def test_closed_streams_of_a_program_that_imports_the_package(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    say("a")
    say("a", err=True)


@pytest.mark.parametrize("field", ["file", "found", "expected", "record", "field", "cause"])
def test_a_problem_cannot_forge_a_line(field):
    fields = {"kind": "k", "file": "f", "found": "x", "expected": "y"} | {field: "a\nforged\x1b[2J"}
    problem = Problem(**fields)
    escaped = r"a\nforged\x1b[2J"
    assert escaped in str(problem)
    for text in (str(InputError([problem])), render_problems([problem] * 5)):
        assert escaped in text
        assert all(line.startswith(("  ", "1 problem", "5 problem")) for line in text.split("\n"))
        assert text.replace("\n", "").isprintable()


def test_listed_files_cannot_forge_a_line():
    problems = [
        Problem("missing-predictions", f"a\n{n}/x\x1b", "no such file", "a file", f"model {n}\r")
        for n in range(30)
    ]
    text = render_problems(problems)
    assert text.replace("\n", "").isprintable()
    assert all(line.startswith(("  ", "30 problems")) for line in text.split("\n"))


def test_an_error_of_usage_is_one_line():
    assert str(UsageError("a\nb\x1b")) == r"a\nb\x1b"
