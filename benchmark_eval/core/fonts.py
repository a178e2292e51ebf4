"""Fonts for names in scripts that the font of the plots lacks.

The font of the plots, DejaVu Sans, is part of matplotlib: Latin, Greek and Cyrillic names look the
same everywhere. Other scripts, such as Chinese, need a font that is installed on the system.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval.core.text import some_of

FAMILY = "DejaVu Sans"
"""The font of all plots."""
MOST_FONTS = 5
"""Maximum number of fonts used besides it."""
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
_STYLES = re.compile(
    r"bold|italic|oblique|light|thin|black|medium|condensed|mono|serif|emoji", re.I
)
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True)
class Fallback:
    """Installed fonts that have characters which DejaVu Sans lacks.

    ``families`` and ``files`` name them in the order of their use; ``lacking`` are the characters
    that no installed font has.
    """

    families: tuple[str, ...]
    files: tuple[Path, ...]
    lacking: str


def fallback_for(texts: Iterable[str]) -> Fallback:
    """The installed fonts that texts need besides DejaVu Sans; usually none."""
    characters = {c for text in texts if not text.isascii() for c in text}
    needed = {c for c in characters if unicodedata.category(c) not in _INVISIBLE}
    return _fallback("".join(sorted(needed - _charset(plot_font())))) if needed else _fallback("")


def plot_font() -> Path:
    """The file of DejaVu Sans in matplotlib."""
    import matplotlib as mpl

    return Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress matplotlib's warnings about fonts, in place of which ``lacking_note`` is printed."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            yield
    finally:
        logger.setLevel(level)


def lacking_note(characters: Iterable[str]) -> str:
    """The warning for characters that no installed font has."""
    lacking = sorted(set(characters))
    package = "fonts-noto-cjk" if _CJK.search("".join(lacking)) else "fonts-noto-core"
    return (
        f"no installed font has the characters {some_of(lacking, 10)}; images show boxes instead "
        f"(install a font that has them, such as Noto Sans; on Debian and Ubuntu: {package})"
    )


@functools.lru_cache(maxsize=64)
def _charset(path: Path) -> frozenset[str]:
    """The characters of a font; none if the file cannot be read."""
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(str(path)).get_charmap()))
    except Exception:  # bitmap fonts and damaged files raise exceptions of several types
        return frozenset()


@functools.lru_cache(maxsize=256)
def _fallback(characters: str) -> Fallback:
    lacking = set(characters)
    families: list[str] = []
    files: list[Path] = []
    for path in _installed() if lacking else ():
        found = lacking & _charset(path)
        if found and (family := _registered(path)):
            families.append(family)
            files.append(path)
            lacking -= found
        if not lacking or len(families) == MOST_FONTS:
            break
    return Fallback(tuple(families), tuple(files), "".join(sorted(lacking)))


@functools.cache
def _installed() -> Sequence[Path]:
    """The fonts of the system, those of the Noto family and upright ones first."""
    from matplotlib.font_manager import findSystemFonts

    def rank(path: Path) -> tuple[bool, bool, str, str]:
        styled = _STYLES.search(path.stem) is not None
        return not path.name.startswith("NotoSans"), styled, path.name, str(path)

    return sorted({Path(name) for name in findSystemFonts()}, key=rank)


@functools.cache
def _registered(path: Path) -> str:
    """The family of a font, which matplotlib can find from now on; blank if it cannot be used."""
    from matplotlib.font_manager import fontManager, get_font

    try:
        if not any(Path(entry.fname) == path for entry in fontManager.ttflist):
            fontManager.addfont(str(path))
        return str(get_font(str(path)).family_name)
    except Exception:  # as in ``_charset``
        return ""
