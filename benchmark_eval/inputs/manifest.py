"""The manifest of a sweep: which model was trained under which condition.

A CSV file, a row a model. Everything is read as text and parsed strictly, so that a model called
``NA`` or ``007`` keeps its name and ``1``, ``1.0`` and ``"1"`` are one k. No pandas: the workflow
reads this file each time it starts. ``schemas/manifest.schema.json`` describes a row.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from benchmark_eval.core.csv_text import is_formula, separator_hint
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import read_input
from benchmark_eval.inputs.model_names import name_key, name_problem
from benchmark_eval.protocol import ALL, REGIMES

REQUIRED_COLUMNS = ("model_name", "regime", "k_or_p", "seed")
OPTIONAL_COLUMNS = ("architecture", "predictions_dir", "train_annotations")
ONE_ARCHITECTURE = "default"
"""The architecture of every row where the manifest has no such column."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|\.[0-9]+([eE][+-]?[0-9]{1,3})?")
_MAX_WHOLE = 10**9
_MAX_DECIMALS = 12
_MAX_SHOWN = 60

_EXPECTED = {
    "global_uniform": "a whole number of images a species from 1, or all",
    "incremental_natural": "a share p above 0 and up to 1, as 0.05",
    "incremental_uniform_targets": "a whole number of images a target species from 0",
}


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """What one model was trained on, but for its seed; sorts in table order.

    ``k_or_p`` is canonical text: ``"5"``, ``"0.1"``, ``"all"``.
    """

    architecture: str
    regime_order: int
    value: float
    k_or_p: str

    @property
    def regime(self) -> str:
        """The regime's name."""
        return REGIMES[self.regime_order]

    def __str__(self) -> str:
        place = "" if self.architecture == ONE_ARCHITECTURE else f"{self.architecture} "
        return f"{place}{self.regime} {budget_text(self.regime, self.k_or_p)}"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One row of the manifest. Paths are resolved against the manifest's folder."""

    model_name: str
    condition: Condition
    seed: int
    predictions_dir: Path | None
    train_annotations: Path | None
    row: int
    line: int

    @property
    def architecture(self) -> str:
        """The architecture; ``ONE_ARCHITECTURE`` where the manifest has no such column."""
        return self.condition.architecture

    @property
    def regime(self) -> str:
        """One of ``REGIMES``."""
        return self.condition.regime

    @property
    def k_or_p(self) -> str:
        """Canonical text of the budget: ``"5"``, ``"0.1"``, ``"all"``."""
        return self.condition.k_or_p


@dataclass(frozen=True, slots=True)
class Manifest:
    """A valid manifest: ``models`` in file order, names and (condition, seed) unique."""

    path: Path
    models: tuple[ModelEntry, ...]

    def in_table_order(self) -> list[ModelEntry]:
        """The models by architecture, regime, budget, seed: independent of the file's order."""
        return sorted(self.models, key=lambda entry: (entry.condition, entry.seed))


def read_manifest(path: str | Path) -> Manifest:
    """Read and check a manifest.

    Raises InputError with every fault of the file: what is no CSV text, columns missing, unknown
    or repeated, rows of another length, blank cells, unfit names, regimes, budgets or seeds, and
    rows that repeat a model or a (architecture, regime, k_or_p, seed), and two spellings of an
    architecture.
    """
    path = Path(path)
    return _Reader(path).read()


class _Reader:
    """Collects the faults of one manifest while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []

    def add(
        self, kind: str, found: str, wanted: str, *, at: str = "", field: str = "", cause: str = ""
    ) -> None:
        self.problems.append(
            Problem(kind, str(self.path), found, wanted, record=at, field=field, cause=cause)
        )

    def read(self) -> Manifest:
        header, rows = self.split(self.text())
        columns = self.columns(header)
        models: list[ModelEntry] = []
        if columns is not None:
            if not rows and not self.problems:
                self.add("no-rows", "no row below the header", "a row for each model")
            for number, (line, cells) in enumerate(rows, start=1):
                entry = self.entry(columns, number, line, cells)
                if entry is not None:
                    models.append(entry)
            self.repeats(models, "architecture" in columns)
        if self.problems:
            raise InputError(self.problems)
        return Manifest(self.path, tuple(models))

    def text(self) -> str:
        try:
            data = read_input(self.path)
        except FileNotFoundError as fault:
            from benchmark_eval.inputs.path_hints import file_absence  # a sound sweep can spare it

            cause = file_absence(self.path)
            self.add("missing-file", "no such file", "a manifest (CSV)", cause=cause)
            raise InputError(self.problems) from fault
        except OSError as fault:
            self.add(
                "unreadable", fault.strerror or type(fault).__name__, "a readable manifest (CSV)"
            )
            raise InputError(self.problems) from fault
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as fault:
            line = data.count(b"\n", 0, fault.start) + 1
            self.add(
                "not-utf8",
                f"a byte that is not UTF-8 ({data[fault.start]:#04x})",
                "a CSV file in UTF-8",
                at=f"line {line}",
                cause="saved by a spreadsheet in another encoding; save as 'CSV UTF-8'",
            )
            raise InputError(self.problems) from fault
        if not text.strip():
            self.add(
                "empty", "an empty file", f"a header with {', '.join(REQUIRED_COLUMNS)} and rows"
            )
            raise InputError(self.problems)
        return text

    def split(self, text: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
        """Header and rows with the line each starts on; lines without a character are passed."""
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        records: list[tuple[int, list[str]]] = []
        start = 1
        try:
            for cells in reader:
                if cells:
                    records.append((start, cells))
                start = reader.line_num + 1
        except csv.Error as fault:
            self.add("not-csv", str(fault), "comma-separated text", at=f"line {start}")
            raise InputError(self.problems) from fault
        return records[0][1], records[1:]

    def columns(self, header: list[str]) -> list[str] | None:
        known = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
        cause = separator_hint(header)
        before = len(self.problems)
        for name in dict.fromkeys(header):
            if name not in known:
                near = difflib.get_close_matches(name.strip().lower(), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else ""
                self.add(
                    "unknown-column",
                    f"the column {_show(name)}",
                    f"columns out of {', '.join(known)}",
                    at="header",
                    cause=cause or hint,
                )
            elif header.count(name) > 1:
                self.add(
                    "duplicate-column",
                    f"the column {name!r} {header.count(name)} times",
                    "each column once",
                    at="header",
                )
        missing = [name for name in REQUIRED_COLUMNS if name not in header]
        if missing:
            self.add(
                "missing-column",
                f"no column {', '.join(map(repr, missing))}",
                f"the columns {', '.join(REQUIRED_COLUMNS)}",
                at="header",
                cause=cause,
            )
        # rows cannot be read while a column has no meaning or two
        return header if len(self.problems) == before else None

    def entry(
        self, columns: Sequence[str], number: int, line: int, cells: list[str]
    ) -> ModelEntry | None:
        at = f"row {number} (line {line})"
        if not any(cell.strip() for cell in cells):
            self.add("blank-row", "a row of blank cells", "a model, or no row at all", at=at)
            return None
        if len(cells) != len(columns):
            self.add(
                "row-length",
                f"{len(cells)} cells",
                f"{len(columns)} cells, one a column",
                at=at,
                cause="a comma in a cell must stand in double quotes"
                if len(cells) > len(columns)
                else "",
            )
            return None
        row = dict(zip(columns, cells, strict=True))
        before = len(self.problems)
        self.blanks(row, at)
        name = row["model_name"]
        fault = name_problem(name) if name.strip() else None
        if fault is not None:
            self.add(
                "model-name",
                f"a name {fault}: {_show(name)}",
                "a name that can be a folder and the start of a file name",
                at=at,
                field="model_name",
            )
        architecture = row.get("architecture", "")
        if is_formula(architecture):
            self.add(
                "architecture",
                f"a name that starts with {architecture[0]!r}: {_show(architecture)}",
                "a name that no spreadsheet takes for a formula",
                at=at,
                field="architecture",
            )
        condition = self.condition(row, at)
        seed = self.seed(row["seed"], at)
        if len(self.problems) > before or condition is None or seed is None:
            return None
        folder = self.path.parent
        predictions, train = row.get("predictions_dir"), row.get("train_annotations")
        return ModelEntry(
            model_name=name,
            condition=condition,
            seed=seed,
            predictions_dir=folder / predictions if predictions else None,
            train_annotations=folder / train if train else None,
            row=number,
            line=line,
        )

    def blanks(self, row: dict[str, str], at: str) -> None:
        for field in (*REQUIRED_COLUMNS, "architecture"):
            if field in row and not row[field].strip():
                self.add("blank-cell", "a blank cell", "a value", at=at, field=field)
        for field, cell in row.items():
            if field == "model_name" or not cell.strip():
                continue
            odd = next((c for c in cell if not c.isprintable()), None)
            if odd is not None:
                self.add(
                    "unprintable",
                    f"the unprintable character U+{ord(odd):04X}",
                    "printable text",
                    at=at,
                    field=field,
                )
            elif cell != cell.strip():
                self.add(
                    "surrounding-whitespace",
                    f"blanks around the value: {_show(cell)}",
                    "the value alone",
                    at=at,
                    field=field,
                )

    def condition(self, row: dict[str, str], at: str) -> Condition | None:
        regime, text = row["regime"], row["k_or_p"]
        if not regime.strip():
            return None
        if regime.strip() not in REGIMES:
            near = difflib.get_close_matches(regime.lower(), REGIMES, n=1)
            self.add(
                "regime",
                f"the regime {_show(regime)}",
                f"one of {', '.join(REGIMES)}",
                at=at,
                field="regime",
                cause=f"did you mean {near[0]!r}?" if near else "",
            )
            return None
        if not text.strip():
            return None
        parsed = parse_budget(regime.strip(), text.strip())
        if parsed is None:
            cause = "write all in small letters" if text.strip().lower() == ALL else ""
            if cause and regime != "global_uniform":
                cause = "only global_uniform has 'all'"
            self.add(
                "k_or_p",
                _show(text),
                f"{_EXPECTED[regime.strip()]} ({regime.strip()})",
                at=at,
                field="k_or_p",
                cause=cause,
            )
            return None
        value, canonical = parsed
        architecture = row.get("architecture", ONE_ARCHITECTURE)
        return Condition(architecture, REGIMES.index(regime.strip()), value, canonical)

    def seed(self, text: str, at: str) -> int | None:
        if not text.strip():
            return None
        seed = _whole(text.strip())
        if seed is None:
            self.add("seed", _show(text), "a whole number from 0", at=at, field="seed")
        return seed

    def repeats(self, models: list[ModelEntry], has_architecture: bool) -> None:
        """Rows that repeat a model, a name for a file system, a seed, or nearly an architecture."""
        by_name: dict[str, ModelEntry] = {}
        by_cell: dict[tuple[Condition, int], ModelEntry] = {}
        by_architecture: dict[str, ModelEntry] = {}
        for entry in models:
            at = f"row {entry.row} (line {entry.line})"
            first = by_name.setdefault(name_key(entry.model_name), entry)
            if first is not entry:
                same = first.model_name == entry.model_name
                self.add(
                    "duplicate-model",
                    f"{_show(entry.model_name)}, as in row {first.row} (line {first.line})"
                    + ("" if same else f": {_show(first.model_name)}"),
                    "each model once"
                    if same
                    else "names that differ by more than case, which some file systems ignore",
                    at=at,
                    field="model_name",
                )
            like = by_architecture.setdefault(name_key(entry.architecture), entry)
            if like.architecture != entry.architecture:
                self.add(
                    "architecture",
                    f"{_show(entry.architecture)}, in row {like.row} (line {like.line}) "
                    f"{_show(like.architecture)}",
                    "one spelling of an architecture",
                    at=at,
                    field="architecture",
                    cause="upper and lower case, or two ways to write an accented letter",
                )
            other = by_cell.setdefault((entry.condition, entry.seed), entry)
            if other is not entry:
                self.add(
                    "duplicate-seed",
                    f"{entry.condition}, seed {entry.seed}, as in row {other.row}"
                    f" (line {other.line})",
                    "each seed of a condition once",
                    at=at,
                    field="seed",
                    cause=""
                    if has_architecture
                    else "for several architectures add a column 'architecture'",
                )


def condition_of(architecture: str, regime: str, k_or_p: str) -> Condition:
    """The condition of these three texts; ``ValueError`` for an invalid regime or budget."""
    parsed = parse_budget(regime, k_or_p) if regime in REGIMES else None
    if parsed is None:
        raise ValueError(f"not a condition: {regime!r} with k_or_p {k_or_p!r}")
    return Condition(architecture, REGIMES.index(regime), *parsed)


def budget_text(regime: str, k_or_p: str) -> str:
    """A budget for reading: ``k=5``, ``p=0.1``."""
    return f"{'p' if regime == 'incremental_natural' else 'k'}={k_or_p}"


def parse_budget(regime: str, text: str) -> tuple[float, str] | None:
    """(number to sort by, canonical text) of a ``k_or_p`` cell, or None if it is not valid.

    k: whole numbers however written (``1.0``), ``"all"`` last; p: shortest decimal.
    """
    if regime == "incremental_natural":
        share = _number(text)
        if share is None or not 0 < share <= 1:
            return None
        canonical = f"{share.normalize():f}"
        if len(canonical) > _MAX_DECIMALS + 2:
            return None
        return float(share), canonical
    if regime == "global_uniform" and text == ALL:
        return float("inf"), ALL
    k = _whole(text)
    if k is None or (k == 0 and regime == "global_uniform"):
        return None
    return float(k), str(k)


def _number(text: str) -> Decimal | None:
    return Decimal(text) if len(text) <= _MAX_SHOWN and _NUMBER.fullmatch(text) else None


def _whole(text: str) -> int | None:
    number = _number(text)
    if number is None or number > _MAX_WHOLE or number != number.to_integral_value():
        return None
    return int(number)


def _show(text: str) -> str:
    """A cell as it may stand in a message: quoted, escaped, not too long."""
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")
