"""Class names: read lists, map class numbers to names and names to the benchmark's ids."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark_eval.core.arrays import Ints
from benchmark_eval.core.duplicate_keys import duplicates
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.first_bytes import json_cause
from benchmark_eval.core.json_values import as_id, plain_json, show
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import decoded, read_input, unreadable
from benchmark_eval.core.text import counted
from benchmark_eval.core.yaml_text import parse_yaml
from benchmark_eval.formats.options import ClassNames, Options
from benchmark_eval.formats.table import UNKNOWN, Classes
from benchmark_eval.inputs.benchmark import Categories

UNWRITABLE = re.compile("[\0\ud800-\udfff]")
"""NUL and half of a surrogate pair, which no file or file name can hold."""
_EXPECTED = (
    "class names: a text file with one name per line, a data.yaml with names, or JSON (a list of "
    "names, id2label, or a COCO file)"
)


def read_class_names(path: str | Path) -> ClassNames:
    """Read the class names of a model, in the model's order.

    Reads text with one name per line (classes.txt, obj.names), Ultralytics' data.yaml (``names``
    as a list or a mapping from numbers), JSON (a list, a mapping from numbers, a Hugging Face
    config with ``id2label``) and the categories of a COCO file by ascending id. Raises InputError
    with every problem.
    """
    path = Path(path)

    def invalid(kind: str, found: str, cause: str = "") -> InputError:
        return InputError([Problem(kind, str(path), found, _EXPECTED, cause=cause)])

    problems = Problems(str(path))
    try:
        data = read_input(path)
    except OSError as error:
        raise InputError([unreadable(path, error, _EXPECTED)]) from None
    text = decoded(data, problems, _EXPECTED)
    if text is None:
        raise InputError(problems.all())
    suffix = path.suffix.lower()
    tree: Any
    if suffix in (".yaml", ".yml", ".json"):
        try:
            tree = _parsed(text, suffix)
        except (ValueError, RecursionError) as error:
            cause = json_cause(data) if suffix == ".json" else ""
            raise invalid("not-readable", " ".join(str(error).split())[:200], cause) from None
        _check_keys(tree, problems)
        if isinstance(tree, dict):
            tree = next((tree[k] for k in ("names", "id2label", "categories") if k in tree), tree)
        _check_keys(tree, problems)
    else:
        tree = text.rstrip().splitlines()
    names = _ordered(tree, problems)
    if problems:
        raise InputError(problems.all())
    if names is None:
        raise invalid("class-names", show(tree))
    return ClassNames(_checked(names, str(path)), str(path))


def _parsed(text: str, suffix: str) -> Any:
    return plain_json(text) if suffix == ".json" else parse_yaml(text)


def _check_keys(tree: Any, problems: Problems) -> None:
    """Report keys of a JSON object that occur more than once; YAML is checked by its parser."""
    for key, values in duplicates(tree, list(tree)) if isinstance(tree, dict) else ():
        found = f"the key {key!r} {len(values)} times"
        problems.add("duplicate-key", found, "each key once")


def _ordered(tree: Any, problems: Problems) -> list[Any] | None:
    """Names in order from a list, a mapping from numbers, or COCO categories."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(tree, list) and all(isinstance(entry, dict) for entry in tree):
        pairs = [(entry.get("id"), entry.get("name")) for entry in tree]
    elif isinstance(tree, dict):
        pairs = list(tree.items())
    if pairs:
        numbered = [(_number(key), value) for key, value in pairs]
        numbers = [number for number, _ in numbered if number is not None]
        if len(numbers) < len(pairs):
            return None
        for number, times in Counter(numbers).items():
            if times > 1:
                found = f"class {number} {times} times"
                problems.add("duplicate-key", found, "each class number once")
        return [value for _, value in sorted(numbered, key=lambda pair: pair[0] or 0)]
    return tree if isinstance(tree, list) and tree else None


def _number(key: Any) -> int | None:
    if isinstance(key, str):
        return int(key) if key.isascii() and key.isdigit() and len(key) < 19 else None
    return as_id(key)


def _checked(names: Sequence[Any], file: str) -> tuple[str, ...]:
    """The names if all are valid and unique; otherwise InputError."""
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for at, name in enumerate(names, start=1):
        where = f"class {at} of {len(names)}"
        if not isinstance(name, str) or not name.strip() or UNWRITABLE.search(name):
            problems.append(Problem("class-name", file, show(name), "a non-empty name", where))
        elif name.strip() in seen:
            found = f"{name.strip()!r}, a duplicate of class {seen[name.strip()]}"
            problems.append(Problem("class-name", file, found, "unique names", where))
        else:
            seen[name.strip()] = at
    if problems:
        raise InputError(problems)
    return tuple(seen)


def resolve_classes(
    keys: Sequence[str | int],
    counts: Sequence[int],
    first_at: Sequence[str],
    options: Options,
    problems: Problems,
    *,
    adjacent_names: ClassNames | None = None,
    first_class: int | None = None,
    ids: Mapping[str, int] | None = None,
) -> tuple[Classes, Ints]:
    """Classes of a source, and the class row of each of its ``keys`` (-1: a problem was added).

    ``keys`` are names or numbers; ``counts`` is the number of boxes of each and ``first_at`` the
    location of its first box. ``adjacent_names`` are names found next to the source,
    ``first_class`` is the first class number that the format defines, and ``ids`` maps names to
    the category ids of a COCO file.
    """
    names = options.names or adjacent_names
    name_of: dict[str | int, str] = {}
    order: tuple[str, ...] = ()
    numbers = [key for key in keys if isinstance(key, int)]
    if not numbers:
        name_of = {key: str(key) for key in keys}
        order = (*(names.names if names else ()), *(ids or ()), *sorted(name_of.values()))
    elif len(numbers) < len(keys):
        odd = next(key for key in keys if not isinstance(key, int))
        problems.add("class-numbers", f"{odd!r} among class numbers", "names only or numbers only")
    elif options.numbers_are_ids and options.names is None:
        name_of = _by_id(numbers, options.categories, problems)
        order = tuple(name_of[number] for number in sorted(name_of, key=int))
    elif names is not None:
        name_of = _numbered(numbers, names, options, first_class, problems)
        order = names.names
    else:
        problems.add(
            "class-numbers",
            f"class numbers ({_span(numbers)}) without names",
            "the model's class names (--names), or the benchmark's category ids (--class-ids)",
            field="class",
        )
    for name in options.rename:
        if name_of and name not in order:
            problems.add("rename", f"no class {name!r}", f"one of {', '.join(order)[:200]}")
    renamed = {name: options.rename.get(name, name) for name in order}
    listed = tuple(dict.fromkeys(renamed.values()))
    row_of = {name: at for at, name in enumerate(listed)}
    rows = np.array(
        [row_of[renamed[name_of[key]]] if key in name_of else -1 for key in keys], np.int64
    ).reshape(len(keys))
    if options.categories is None:
        own = {renamed[name]: number for name, number in (ids or {}).items()}
        return Classes(listed, np.array([own.get(n, UNKNOWN) for n in listed], np.int64)), rows
    used: dict[int, str] = {}
    for row, count, place in zip(rows.tolist(), counts, first_at, strict=True):
        used.setdefault(row, f"{counted(count, 'box', 'boxes')}, first in {place}")
    return Classes(listed, _category_ids(listed, used, options.categories, problems)), rows


def _by_id(
    numbers: list[int], categories: Categories | None, problems: Problems
) -> dict[str | int, str]:
    """Names of the benchmark's categories by id."""
    ordered = sorted(set(numbers))
    if categories is None:
        problems.add(
            "class-numbers",
            f"category ids ({_span(numbers)}) without a benchmark",
            "the benchmark with these ids (--benchmark-dir), or class names (--names)",
            field="class",
        )
        return {}
    rows = categories.rows_of(np.array(ordered, np.int64)).tolist()
    for number, row in zip(ordered, rows, strict=True):
        if row < 0:
            problems.add(
                "unknown-class",
                f"category id {number}",
                f"a category id of the benchmark ({categories.ids[0]} to {categories.ids[-1]})",
                field="category_id",
                cause="class numbers of the model instead of category ids; use --names",
            )
    return {
        number: categories.names[row] for number, row in zip(ordered, rows, strict=True) if row >= 0
    }


def _numbered(
    numbers: list[int], names: ClassNames, options: Options, defined: int | None, problems: Problems
) -> dict[str | int, str]:
    """Name of each class number, if the first number is known or confirmed."""
    n, low, high = len(names.names), min(numbers), max(numbers)
    fits = [first for first in (0, 1) if first <= low and high < first + n]
    given = options.first_class if options.first_class is not None else defined
    expected = f"class numbers of the {n} names in {names.source}"
    if given is not None:
        if given in fits:
            return {number: names.names[number - given] for number in numbers}
        cause = _too_few(n, high)
        if fits:
            cause = f"numbers that start at {fits[0]}; use --first-class {fits[0]}"
        found = f"class numbers {_span(numbers)}"
        expected += f", {given} to {given + n - 1}"
        problems.add("class-numbers", found, expected, cause=cause)
        return {}
    if len(fits) == 1:
        first = fits[0]
        inferred = (
            f"class numbers {_span(numbers)} for {n} names, so the first class is number {first} "
            f"({names.names[0]!r})"
        )
        if options.confirm is not None and options.confirm(inferred):
            return {number: names.names[number - first] for number in numbers}
        problems.add("class-numbers", inferred, f"confirmation: --first-class {first} or --yes")
    elif fits:
        problems.add(
            "class-numbers",
            f"class numbers {_span(numbers)} for {n} names, which may start at 0 or at 1",
            "the number of the first class: --first-class 0 or --first-class 1",
        )
    else:
        problems.add("class-numbers", f"class numbers {_span(numbers)}", expected,
                     cause=_too_few(n, high))  # fmt: skip
    return {}


def _too_few(n: int, high: int) -> str:
    return f"only {n} names, perhaps those of another model" if high >= n else ""


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _plain(name: str) -> str:
    """A name without differences in case, underscores and whitespace."""
    text = unicodedata.normalize("NFC", name).replace("_", " ").casefold()
    return " ".join(text.split())


def similar_names(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Known names similar to ``name``, the most similar first."""
    by_plain = {_plain(k): k for k in known}
    close = difflib.get_close_matches(_plain(name), by_plain, n=n, cutoff=0.6)
    return [by_plain[plain] for plain in close]


def _category_ids(
    names: Sequence[str], used: Mapping[int, str], categories: Categories, problems: Problems
) -> Ints:
    """The benchmark's category id of each name; a problem for each used name without one."""
    ids: dict[str, list[int]] = {}
    for name, number in zip(categories.names, categories.ids.tolist(), strict=True):
        ids.setdefault(name, []).append(number)
    found = np.full(len(names), UNKNOWN, np.int64)
    for row, name in enumerate(names):
        if len(ids.get(name, ())) == 1:
            found[row] = ids[name][0]
        elif row in used and name in ids:
            problems.add(
                "class-name",
                f"class {name!r}, the name of categories {', '.join(map(str, ids[name]))}",
                "a unique category name in the benchmark",
            )
        elif row in used:
            similar = similar_names(name, ids)
            cause = "no similar name in the benchmark"
            if similar:
                cause = f"did you mean {' or '.join(map(repr, similar))}?"
                cause += f" (--rename {name!r} {similar[0]!r})"
            problems.add(
                "unknown-class",
                f"class {name!r} ({used[row]})",
                "a species of the benchmark",
                field="class",
                cause=cause,
            )
    return found
