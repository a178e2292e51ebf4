"""Class names: reading lists of them, numbers to names, names to the benchmark's category ids."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark_eval.core.arrays import Ints
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.json_values import as_id, plain_json, show
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.safe_read import parse_yaml, read_input, unreadable
from benchmark_eval.formats.options import ClassNames, Options
from benchmark_eval.formats.table import UNKNOWN, Classes
from benchmark_eval.inputs.benchmark import Categories

_EXPECTED = (
    "a text file with a name a line, a data.yaml with names, or JSON: a list of names, id2label, "
    "or a COCO file"
)


def read_class_names(path: str | Path) -> ClassNames:
    """The names of a model's classes, in its order.

    Reads a name a line (classes.txt, obj.names), Ultralytics' data.yaml (``names`` as list or as
    mapping from numbers), JSON (a list, a mapping from numbers, a Hugging Face config with
    ``id2label``) and the categories of a COCO file, by ascending id. InputError with all problems.
    """
    path = Path(path)

    def fault(kind: str, found: str, wanted: str = _EXPECTED) -> InputError:
        return InputError([Problem(kind, str(path), found, wanted)])

    try:
        text = read_input(path).decode("utf-8-sig")
    except OSError as error:
        raise InputError([unreadable(path, error, _EXPECTED)]) from None
    except UnicodeDecodeError as error:
        raise fault("not-utf8", f"byte {error.start} is not UTF-8") from None
    suffix = path.suffix.lower()
    tree: Any
    if suffix in (".yaml", ".yml", ".json"):
        try:
            tree = _parsed(text, suffix)
        except (ValueError, RecursionError) as error:
            raise fault("not-readable", " ".join(str(error).split())[:200]) from None
        if isinstance(tree, dict):
            tree = next((tree[k] for k in ("names", "id2label", "categories") if k in tree), tree)
    else:
        tree = text.rstrip().splitlines()
    names = _ordered(tree)
    if names is None:
        raise fault("class-names", f"{show(tree)}")
    return ClassNames(_checked(names, str(path)), str(path))


def _parsed(text: str, suffix: str) -> Any:
    return plain_json(text) if suffix == ".json" else parse_yaml(text)


def _ordered(tree: Any) -> list[Any] | None:
    """Names in their order from a list, a mapping from numbers, or COCO categories."""
    if isinstance(tree, list) and all(isinstance(entry, dict) for entry in tree):
        tree = {entry.get("id"): entry.get("name") for entry in tree}
    if isinstance(tree, dict):
        keys = {_number(key): value for key, value in tree.items()}
        if None in keys or not keys:
            return None
        return [keys[key] for key in sorted(keys, key=lambda k: k or 0)]
    return tree if isinstance(tree, list) and tree else None


def _number(key: Any) -> int | None:
    if isinstance(key, str):
        return int(key) if key.isascii() and key.isdigit() and len(key) < 19 else None
    return as_id(key)


def _checked(names: Sequence[Any], file: str) -> tuple[str, ...]:
    """Names that can be told apart; InputError naming those that cannot."""
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for at, name in enumerate(names, start=1):
        where = f"class {at} of {len(names)}"
        if not isinstance(name, str) or not name.strip():
            problems.append(Problem("class-name", file, show(name), "a name", where))
        elif name.strip() in seen:
            found = f"{name.strip()!r}, as class {seen[name.strip()]}"
            problems.append(Problem("class-name", file, found, "each name once", where))
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
    beside: ClassNames | None = None,
    first_class: int | None = None,
    ids: Mapping[str, int] | None = None,
) -> tuple[Classes, Ints]:
    """Classes of a source, and the row of each of its ``keys`` among them (-1: a fault was added).

    ``keys`` are names or numbers, ``counts`` how many boxes each has and ``first_at`` where the
    first of them stands. ``beside`` are names that stand beside the source, ``first_class`` what
    the format itself says its first number is, ``ids`` category ids that a COCO file gives names.
    """
    names = options.names or beside
    name_of: dict[str | int, str] = {}
    order: tuple[str, ...] = ()
    numbers = [key for key in keys if isinstance(key, int)]
    if not numbers:
        name_of = {key: str(key) for key in keys}
        order = (*(names.names if names else ()), *(ids or ()), *sorted(name_of.values()))
    elif len(numbers) < len(keys):
        odd = next(key for key in keys if not isinstance(key, int))
        problems.add("class-numbers", f"{odd!r} among class numbers", "names or numbers, not both")
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
            "the names of the model's classes (--names), or that the numbers are the benchmark's "
            "category ids (--class-ids)",
            field="class",
        )
    for name in options.rename:
        if name_of and name not in order:
            problems.add(
                "rename", f"no class {name!r} to rename", f"one of {', '.join(order)[:200]}"
            )
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
        used.setdefault(row, f"{count} boxes, first in {place}")
    return Classes(listed, _category_ids(listed, used, options.categories, problems)), rows


def _by_id(
    numbers: list[int], categories: Categories | None, problems: Problems
) -> dict[str | int, str]:
    """Names of the benchmark's categories with these ids."""
    ordered = sorted(set(numbers))
    if categories is None:
        problems.add(
            "class-numbers",
            f"category ids ({_span(numbers)}) and no benchmark",
            "the benchmark that they are ids of (--benchmark-dir), or names (--names)",
            field="class",
        )
        return {}
    rows = categories.rows_of(np.array(ordered, np.int64)).tolist()
    for number, row in zip(ordered, rows, strict=True):
        if row < 0:
            problems.add(
                "unknown-class",
                f"category id {number}",
                f"an id of the benchmark ({categories.ids[0]} to {categories.ids[-1]})",
                field="category_id",
                cause="class numbers of the model, not category ids: give its --names",
            )
    return {
        number: categories.names[row] for number, row in zip(ordered, rows, strict=True) if row >= 0
    }


def _numbered(
    numbers: list[int], names: ClassNames, options: Options, defined: int | None, problems: Problems
) -> dict[str | int, str]:
    """Name of each number, once it is settled what the first number is."""
    n, low, high = len(names.names), min(numbers), max(numbers)
    fits = [first for first in (0, 1) if first <= low and high < first + n]
    told = options.first_class if options.first_class is not None else defined
    wanted = f"numbers of the {n} names of {names.source}"
    if told is not None:
        if told in fits:
            return {number: names.names[number - told] for number in numbers}
        cause = f"counted from {fits[0]}: --first-class {fits[0]}" if fits else _too_few(n, high)
        found = f"class numbers {_span(numbers)}"
        problems.add(
            "class-numbers", found, f"{wanted}, from {told} to {told + n - 1}", cause=cause
        )
        return {}
    if len(fits) == 1:
        first = fits[0]
        said = (
            f"class numbers {_span(numbers)} with {n} names: counted from {first}, so that "
            f"{first} is {names.names[0]!r}"
        )
        if options.confirm is not None and options.confirm(said):
            return {number: names.names[number - first] for number in numbers}
        problems.add("class-numbers", said, f"your word for it: --first-class {first}")
    elif fits:
        problems.add(
            "class-numbers",
            f"class numbers {_span(numbers)} with {n} names, which may be counted from 0 or from 1",
            "the number of the first class: --first-class 0 or --first-class 1",
        )
    else:
        problems.add("class-numbers", f"class numbers {_span(numbers)}", wanted,
                   cause=_too_few(n, high))  # fmt: skip
    return {}


def _too_few(n: int, high: int) -> str:
    return f"{n} names are too few: names of another model?" if high >= n else ""


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _plain(name: str) -> str:
    """A name without what people write differently: case, underscores, repeated blanks."""
    text = unicodedata.normalize("NFC", name).replace("_", " ").casefold()
    return " ".join(text.split())


def near_names(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Known names that look like ``name``, the likeliest first."""
    by_plain = {_plain(k): k for k in known}
    close = difflib.get_close_matches(_plain(name), by_plain, n=n, cutoff=0.6)
    return [by_plain[plain] for plain in close]


def _category_ids(
    names: Sequence[str], used: Mapping[int, str], categories: Categories, problems: Problems
) -> Ints:
    """The benchmark's category id of each name; a fault for each used name that has none."""
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
                f"class {name!r}, which is the name of categories {ids[name]}",
                "names that the benchmark has once",
            )
        elif row in used:
            near = near_names(name, ids)
            hint = " or ".join(map(repr, near))
            again = f" (--rename {name!r} {near[0]!r})" if near else ""
            problems.add(
                "unknown-class",
                f"class {name!r} ({used[row]})",
                "a species of the benchmark",
                field="class",
                cause=f"did you mean {hint}?{again}" if near else "no name of it is like this",
            )
    return found
