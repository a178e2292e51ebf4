"""Fonts of names in scripts that DejaVu Sans lacks, with the installed fonts given."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmark_eval.core import fonts
from benchmark_eval.core.fonts import fallback_for, lacking_note, plot_font

STIX = plot_font().with_name("STIXGeneral.ttf")
ONLY_STIX = "\u1d81"
"""A letter that STIX has and DejaVu Sans lacks."""


@pytest.fixture
def installed(monkeypatch):
    """Set the installed fonts."""

    def install(*paths):
        monkeypatch.setattr(fonts, "_installed", lambda: paths)
        fonts._fallback.cache_clear()

    yield install
    fonts._fallback.cache_clear()


@pytest.mark.parametrize(
    "text", ["Ips typographus", "Großer Käfer", "короед", "κάνθαρος", "e\u0301", "≥ –"]
)
def test_latin_greek_and_cyrillic_need_no_other_font(installed, text):
    installed()
    assert fallback_for([text]) == fonts.Fallback((), (), "")


def test_an_installed_font_with_the_characters_is_used(installed):
    installed(STIX)
    assert fallback_for(["a", f"b{ONLY_STIX}"]) == fonts.Fallback(("STIXGeneral",), (STIX,), "")


def test_characters_that_no_font_has(installed):
    installed(STIX)
    assert fallback_for([f"虫{ONLY_STIX}", "小蠹虫 a\u200d"]) == fonts.Fallback(
        ("STIXGeneral",), (STIX,), "小虫蠹"
    )


def test_damaged_fonts_are_skipped(installed, tmp_path):
    (tmp_path / "a.ttf").write_bytes(b"no font")
    installed(tmp_path / "a.ttf", tmp_path / "missing.ttf", STIX)
    assert fallback_for([ONLY_STIX]).families == ("STIXGeneral",)


@pytest.mark.parametrize(
    ("characters", "package"),
    [("虫", "fonts-noto-cjk"), ("한", "fonts-noto-cjk"), ("\u0915", "fonts-noto-core")],
)
def test_the_warning_says_what_to_install(characters, package):
    note = lacking_note(characters)
    assert f"no installed font has the characters {characters}; images show boxes" in note
    assert note.endswith(f"on Debian and Ubuntu: {package})")


def test_upright_noto_fonts_come_first(monkeypatch):
    names = [
        "/b/Arial.ttf",
        "/b/NotoSansThai-Bold.ttf",
        "/b/NotoSansThai-Regular.ttf",
        "/a/NotoSerif.ttf",
    ]
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: names)
    ordered = [path.name for path in fonts._installed.__wrapped__()]
    assert ordered == [
        "NotoSansThai-Regular.ttf",
        "NotoSansThai-Bold.ttf",
        "Arial.ttf",
        "NotoSerif.ttf",
    ]


def test_ascii_names_do_not_load_matplotlib():
    code = (
        "import sys\n"
        "from benchmark_eval.core.fonts import fallback_for\n"
        "fallback_for(['Ips typographus'])\n"
        "print('matplotlib' in sys.modules)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert done.stdout == "False\n"
