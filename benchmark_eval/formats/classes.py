"""Class names: read lists, map class numbers to names and names to the benchmark's ids."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmark_eval.core.arrays import Ints
from benchmark_eval.core.duplicate_keys import duplicates
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.first_bytes import json_cause
from benchmark_eval.core.json_values import as_id, plain_json, show
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import decoded, read_input, unreadable
from benchmark_eval.core.text import counted, nfc, some_of
from benchmark_eval.core.yaml_text import parse_yaml
from benchmark_eval.formats.options import ClassNames, NamesKind, Options
from benchmark_eval.formats.table import UNKNOWN, Classes
from benchmark_eval.inputs.benchmark import Categories

UNWRITABLE = re.compile("[\0\ud800-\udfff]")
"""NUL and half of a surrogate pair, which no file or file name can hold."""
_UNNAMED = re.compile("LABEL_([0-9]{1,9})")
_DIGITS = re.compile("([0-9]{1,9})")
_EXPECTED = (
    "class names: a text file with one name per line, a data.yaml with names, or JSON (a list of "
    "names, id2label, or a COCO file)"
)


def read_class_names(path: str | Path) -> ClassNames:
    """Read the class names of a model, with the class numbers that the file states.

    Reads text with one name per line (classes.txt, obj.names), Ultralytics' data.yaml (``names``
    as a list or a mapping from numbers), JSON (a list, a mapping from numbers, a Hugging Face
    config with ``id2label``) and the categories of a COCO file. Names with numbers are in the order
    of their numbers. Raises InputError with every problem.
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
    else:
        tree = text.rstrip().splitlines()
    whole = tree
    _check_keys(tree, problems)
    if isinstance(tree, dict):
        tree = next((tree[k] for k in ("names", "id2label", "categories") if k in tree), tree)
        _check_keys(tree, problems)
    kind, numbers, names = _numbers_and_names(tree, problems)
    if kind == "mapping" and isinstance(whole, dict) and tree is whole.get("id2label"):
        kind = "id2label"
    stated = whole.get("nc") if isinstance(whole, dict) and kind != "coco" else None
    if stated is not None and names and stated != len(names):
        found = f"nc: {show(stated)} and {counted(len(names), 'name')}"
        problems.add("class-count", found, "as many names as nc states", field="nc")
    if problems:
        raise InputError(problems.all())
    if not names:
        raise invalid("class-names", show(tree))
    return ClassNames(_checked(names, str(path)), str(path), numbers, kind)


def _parsed(text: str, suffix: str) -> Any:
    return plain_json(text) if suffix == ".json" else parse_yaml(text)


def _check_keys(tree: Any, problems: Problems) -> None:
    """Report keys of JSON objects that occur more than once; YAML is checked by its parser."""
    for at, entry in enumerate(tree if isinstance(tree, list) else [tree]):
        for key, values in duplicates(entry, list(entry)) if isinstance(entry, dict) else ():
            found = f"the key {key!r} {len(values)} times"
            where = f"record {at}" if isinstance(tree, list) else ""
            problems.add("duplicate-key", found, "each key once", record=where)


def _numbers_and_names(
    tree: Any, problems: Problems
) -> tuple[NamesKind, tuple[int, ...] | None, list[Any]]:
    """Kind, numbers (None: not stated) and names of a list, a mapping, or COCO categories.

    No names if the tree is none of these.
    """
    kind: NamesKind = "list"
    pairs: list[tuple[Any, Any]] = []
    if isinstance(tree, list) and tree and all(isinstance(entry, dict) for entry in tree):
        kind = "coco"
        pairs = [(entry.get("id"), entry.get("name")) for entry in _without_root(tree)]
    elif isinstance(tree, dict):
        kind = "mapping"
        pairs = list(tree.items())
    if not pairs:
        return kind, None, tree if isinstance(tree, list) else []
    numbered = [(_number(key), value) for key, value in pairs]
    numbers = [number for number, _ in numbered if number is not None]
    if len(numbers) < len(pairs):
        return kind, None, []
    for number, times in Counter(numbers).items():
        if times > 1:
            found = f"class {number} {times} times"
            problems.add("duplicate-key", found, "each class number once")
    numbered.sort(key=lambda pair: pair[0] or 0)
    return kind, tuple(sorted(numbers)), [value for _, value in numbered]


def _without_root(categories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """COCO categories without the parent of all others, which Roboflow lists as category 0."""
    for root in categories:
        others = [entry for entry in categories if entry is not root]
        if (
            as_id(root.get("id")) == 0
            and others
            and all(entry.get("supercategory") == root.get("name") for entry in others)
        ):
            return others
    return categories


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


@dataclass(frozen=True, slots=True)
class Convention:
    """What a format defines about its class numbers.

    ``first`` is the number of the first class. ``stated_by`` are the kinds of names files whose
    numbers are those of the format: a label of a Hugging Face model is a key of its ``id2label``.
    ``adjacent`` are names found next to the source, ``ids`` maps the names of a COCO file to its
    category ids.
    """

    first: int | None = None
    stated_by: tuple[NamesKind, ...] = ()
    adjacent: ClassNames | None = None
    ids: Mapping[str, int] | None = None


def resolve_classes(
    keys: Sequence[str | int],
    counts: Sequence[int],
    first_at: Sequence[str],
    options: Options,
    problems: Problems,
    convention: Convention,
) -> tuple[Classes, Ints, str]:
    """Classes of a source, the class row of each of its ``keys``, and what their numbers mean.

    ``keys`` are names or numbers; ``counts`` is the number of boxes of each and ``first_at`` the
    location of its first box. A row is -1 if a problem was added.
    """
    names = options.names or convention.adjacent
    ids = convention.ids
    keys, convention = _text_as_numbers(keys, names, convention)
    name_of: dict[str | int, str] = {}
    order: tuple[str, ...] = ()
    note = ""
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
        note = "class numbers are the benchmark's category ids"
    elif names is not None:
        reading = _reading(numbers, names, options, convention, problems)
        if reading is not None:
            name_of = {number: reading.names[number] for number in numbers}
            note = f"class numbers are {reading.words}"
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
        return (
            Classes(listed, np.array([own.get(n, UNKNOWN) for n in listed], np.int64)),
            rows,
            note,
        )
    used: dict[int, str] = {}
    for row, count, place in zip(rows.tolist(), counts, first_at, strict=True):
        used.setdefault(row, f"{counted(count, 'box', 'boxes')}, first in {place}")
    found = _category_ids(listed, used, options.categories, problems)
    return Classes(listed, found), rows, note


def _text_as_numbers(
    keys: Sequence[str | int], names: ClassNames | None, convention: Convention
) -> tuple[Sequence[str | int], Convention]:
    """Class numbers in place of texts such as ``7`` and ``LABEL_7``, if there are names for them.

    transformers names the classes of a model without class names LABEL_0, LABEL_1, ...
    """
    if names is None or not keys or not all(isinstance(key, str) for key in keys):
        return keys, convention
    texts = [str(key) for key in keys]
    if not set(texts).isdisjoint(names.names):
        return keys, convention
    for pattern, first in ((_UNNAMED, 0), (_DIGITS, convention.first)):
        found = [pattern.fullmatch(text) for text in texts]
        if all(found) and len({int(m[1]) for m in found if m}) == len(found):
            return [int(m[1]) for m in found if m], replace(convention, first=first)
    return keys, convention


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


@dataclass(frozen=True, slots=True)
class _Reading:
    """One meaning of the class numbers: the name of each, in words, and the option for it."""

    names: Mapping[int, str]
    words: str
    option: str

    def fits(self, numbers: Sequence[int]) -> bool:
        return all(number in self.names for number in numbers)


def _reading(
    numbers: list[int],
    names: ClassNames,
    options: Options,
    convention: Convention,
    problems: Problems,
) -> _Reading | None:
    """What the class numbers mean; None and a problem if that is not certain.

    They are the numbers that the names file states, or positions in its list of names. The first
    is certain if the format defines it, if the file numbers its names 1, 2, ..., or if no other
    reading fits.
    """
    if options.numbers_are_ids:
        return _stated_only(numbers, names, problems)
    certain = (
        "positions" if options.class_positions else _certain(numbers, names, options, convention)
    )
    if certain == "" and names.numbers is not None:
        readings = [
            _as_stated(names),
            *(_positions(names, first) for first in _firsts(options, convention)),
        ]
        fitting: dict[tuple[str, ...], _Reading] = {}
        for reading in readings:
            if reading.fits(numbers):
                fitting.setdefault(tuple(reading.names[number] for number in numbers), reading)
        if len(fitting) > 1:
            _report_readings(numbers, list(fitting.values()), problems)
            return None
        if readings[0] in fitting.values():
            certain = "stated"
    if certain == "stated":
        return _as_stated(names)
    return _positional(numbers, names, options, convention.first, problems)


def _certain(
    numbers: list[int], names: ClassNames, options: Options, convention: Convention
) -> Literal["stated", "positions", ""]:
    """The reading that formats, names file and options define; blank if they leave several."""
    stated, given = names.numbers, options.first_class
    if stated is None:
        return "positions"
    regular = stated[0] in (0, 1) and stated[-1] - stated[0] == len(stated) - 1
    if regular and given is not None:
        return "positions"
    counted_from_one = regular and stated[0] == 1 and convention.first is None
    defined = counted_from_one or names.kind in convention.stated_by
    if given is None and defined and _as_stated(names).fits(numbers):
        return "stated"
    # names that are numbered 0, 1, 2, ... say nothing about a format that may count from 1
    from_zero = regular and stated[0] == 0 and convention.first is None and given is None
    return "positions" if from_zero else ""


def _firsts(options: Options, convention: Convention) -> tuple[int, ...]:
    """The possible numbers of the first class."""
    first = options.first_class if options.first_class is not None else convention.first
    return (0, 1) if first is None else (first,)


def _as_stated(names: ClassNames) -> _Reading:
    assert names.numbers is not None
    of = dict(zip(names.numbers, names.names, strict=True))
    return _Reading(of, f"the numbers in {names.source}", "--class-ids")


def _positions(names: ClassNames, first: int) -> _Reading:
    option = f"--first-class {first}"
    if names.numbers is not None:
        option = f"--class-positions {option}"
    words = f"positions in {names.source}, from {first}"
    return _Reading(dict(enumerate(names.names, start=first)), words, option)


def _report_readings(numbers: list[int], readings: list[_Reading], problems: Problems) -> None:
    """Report class numbers with several meanings, with a number for which they differ."""
    example = next(n for n in numbers if len({reading.names[n] for reading in readings}) > 1)
    meanings = " or ".join(
        f"{reading.words} ({example} is {reading.names[example]!r})" for reading in readings
    )
    problems.add(
        "two-readings",
        f"class numbers {_span(numbers)}, which may be {meanings}",
        f"one reading: {' or '.join(reading.option for reading in readings)}",
        field="class",
    )


def _stated_only(numbers: list[int], names: ClassNames, problems: Problems) -> _Reading | None:
    if names.numbers is None:
        problems.add(
            "class-numbers",
            f"--class-ids and {names.source}, which states no numbers",
            "names with numbers (a COCO file, id2label), or --first-class 0 or 1",
        )
        return None
    reading = _as_stated(names)
    if reading.fits(numbers):
        return reading
    unknown = sorted(number for number in numbers if number not in reading.names)
    problems.add(
        "class-numbers",
        f"class {some_of(unknown, 5)}",
        f"the class numbers in {names.source} ({_span(names.numbers)})",
        cause="positions in the list of names; use --class-positions",
    )
    return None


def _positional(
    numbers: list[int], names: ClassNames, options: Options, defined: int | None, problems: Problems
) -> _Reading | None:
    """Class numbers as positions, if the first number is known or confirmed."""
    n, low, high = len(names.names), min(numbers), max(numbers)
    fits = [first for first in (0, 1) if first <= low and high < first + n]
    given = options.first_class if options.first_class is not None else defined
    expected = f"class numbers of the {n} names in {names.source}"
    if given is not None:
        if given in fits:
            return _positions(names, given)
        cause = _too_few(n, high)
        if fits:
            cause = f"numbers that start at {fits[0]}; use --first-class {fits[0]}"
        found = f"class numbers {_span(numbers)}"
        expected += f", {given} to {given + n - 1}"
        problems.add("class-numbers", found, expected, cause=cause)
        return None
    if len(fits) == 1:
        first = fits[0]
        inferred = (
            f"class numbers {_span(numbers)} for {n} names, so the first class is number {first} "
            f"({names.names[0]!r})"
        )
        if options.confirm is not None and options.confirm(inferred):
            reading = _positions(names, first)
            return replace(reading, words=f"{reading.words} (inferred)")
        problems.add("class-numbers", inferred, f"confirmation: --first-class {first} or --yes")
    elif fits:
        problems.add(
            "class-numbers",
            f"class numbers {_span(numbers)} for {n} names, which may start at 0 or at 1 "
            f"({high} is {names.names[high]!r} or {names.names[high - 1]!r})",
            "the number of the first class: --first-class 0 or --first-class 1",
        )
    else:
        problems.add("class-numbers", f"class numbers {_span(numbers)}", expected,
                     cause=_too_few(n, high))  # fmt: skip
    return None


def _too_few(n: int, high: int) -> str:
    return f"only {n} names, perhaps those of another model" if high >= n else ""


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _plain(name: str) -> str:
    """A name without differences in case, underscores and whitespace."""
    text = nfc(name).replace("_", " ").casefold()
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
        ids.setdefault(nfc(name), []).append(number)
    found = np.full(len(names), UNKNOWN, np.int64)
    for row, name in enumerate(map(nfc, names)):
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
            if _UNNAMED.fullmatch(name):
                cause = (
                    "a model without class names; use --names with the names of its training data"
                )
            elif _DIGITS.fullmatch(name):
                cause = "a class number; use --names"
            elif similar:
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
