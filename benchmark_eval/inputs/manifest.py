"""The manifest of a sweep: which model was trained under which condition.

A CSV file with one row per model. Cells are read as text and parsed strictly: a model called
``NA`` or ``007`` keeps its name, and ``1``, ``1.0`` and ``"1"`` are the same k. pandas is not used,
as the workflow reads this file at every start. ``schemas/manifest.schema.json`` describes a row.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from benchmark_eval.core.csv_text import csv_records, is_formula, separator_hint
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.problems import Problems
from benchmark_eval.core.safe_read import absent, decoded, read_input, unreadable
from benchmark_eval.core.user_paths import URL_CAUSE, expand_home, is_url
from benchmark_eval.inputs.model_names import name_key, name_problem
from benchmark_eval.protocol import ALL, REGIMES

REQUIRED_COLUMNS = ("model_name", "regime", "k_or_p", "seed")
OPTIONAL_COLUMNS = ("architecture", "predictions_dir", "train_annotations")
ONE_ARCHITECTURE = "default"
"""The architecture of every row of a manifest without this column."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|\.[0-9]+([eE][+-]?[0-9]{1,3})?")
_MAX_WHOLE = 10**9
_MAX_DECIMALS = 12
_MAX_SHOWN = 60

_EXPECTED = {
    "global_uniform": "an integer >= 1 (images per species), or all",
    "incremental_natural": "a fraction p in (0, 1], such as 0.05",
    "incremental_uniform_targets": "an integer >= 0 (images per target species)",
}


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """The training condition of a model, without its seed; sorts in table order.

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
        prefix = "" if self.architecture == ONE_ARCHITECTURE else f"{self.architecture} "
        return f"{prefix}{self.regime} {budget_text(self.regime, self.k_or_p)}"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One row of the manifest. Paths are relative to the manifest's folder, ``~`` is expanded."""

    model_name: str
    condition: Condition
    seed: int
    predictions_dir: Path | None
    train_annotations: Path | None
    row: int
    line: int

    @property
    def architecture(self) -> str:
        """The architecture; ``ONE_ARCHITECTURE`` if the manifest has no such column."""
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

    The InputError lists all problems of the file: text that is not CSV; missing, unknown or
    duplicate columns; wrong row lengths; blank cells; invalid names, regimes, budgets or seeds;
    duplicate models or (architecture, regime, k_or_p, seed); two spellings of an architecture.
    """
    path = Path(path)
    return _Reader(path).read()


class _Reader:
    """Reads one manifest and collects its problems."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = Problems(str(path))

    def read(self) -> Manifest:
        header, rows = self.split(self.text())
        columns = self.columns(header)
        models: list[ModelEntry] = []
        if columns is not None:
            if not rows and not self.problems:
                self.problems.add("no-rows", "no rows below the header", "one row per model")
            for number, (line, cells) in enumerate(rows, start=1):
                entry = self.entry(columns, number, line, cells)
                if entry is not None:
                    models.append(entry)
            self.check_duplicates(models, "architecture" in columns)
        if self.problems:
            raise InputError(self.problems.all())
        return Manifest(self.path, tuple(models))

    def text(self) -> str:
        try:
            data = read_input(self.path)
        except FileNotFoundError as error:
            from benchmark_eval.inputs.path_hints import file_hint  # not needed by a valid sweep

            cause = file_hint(self.path)
            found = absent(self.path)
            self.problems.add("missing-file", found, "a manifest (CSV)", cause=cause)
            raise InputError(self.problems.all()) from error
        except OSError as error:
            problem = unreadable(self.path, error, "a readable manifest (CSV)")
            raise InputError([problem]) from error
        text = decoded(data, self.problems, "a CSV file in UTF-8")
        if text is None:
            raise InputError(self.problems.all())
        if not text.strip():
            self.problems.add(
                "empty", "an empty file", f"a header with {', '.join(REQUIRED_COLUMNS)}, and rows"
            )
            raise InputError(self.problems.all())
        return text

    def split(self, text: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
        """Header, and rows with the line on which each starts; empty lines are skipped."""
        records = csv_records(text, self.problems)
        if records is None:
            raise InputError(self.problems.all())
        return records[0][1], records[1:]

    def columns(self, header: list[str]) -> list[str] | None:
        known = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
        cause = separator_hint(header)
        before = len(self.problems)
        for name in dict.fromkeys(header):
            if name not in known:
                near = difflib.get_close_matches(name.strip().lower(), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else ""
                self.problems.add(
                    "unknown-column",
                    f"column {_show(name)}",
                    f"one of {', '.join(known)}",
                    record="header",
                    cause=cause or hint,
                )
            elif header.count(name) > 1:
                self.problems.add(
                    "duplicate-column",
                    f"column {name!r} {header.count(name)} times",
                    "unique column names",
                    record="header",
                )
        missing = [name for name in REQUIRED_COLUMNS if name not in header]
        if missing:
            self.problems.add(
                "missing-column",
                f"no column {', '.join(map(repr, missing))}",
                f"the columns {', '.join(REQUIRED_COLUMNS)}",
                record="header",
                cause=cause,
            )
        # rows cannot be read with unknown, duplicate or missing columns
        return header if len(self.problems) == before else None

    def entry(
        self, columns: Sequence[str], number: int, line: int, cells: list[str]
    ) -> ModelEntry | None:
        where = f"row {number} (line {line})"
        if not any(cell.strip() for cell in cells):
            self.problems.add(
                "blank-row", "a row of blank cells", "one row per model", record=where
            )
            return None
        if len(cells) != len(columns):
            self.problems.add(
                "row-length",
                f"{len(cells)} cells",
                f"{len(columns)} cells, one per column",
                record=where,
                cause="a cell with a comma must be in double quotes"
                if len(cells) > len(columns)
                else "",
            )
            return None
        row = dict(zip(columns, cells, strict=True))
        before = len(self.problems)
        self.check_blanks(row, where)
        name = row["model_name"]
        reason = name_problem(name) if name.strip() else None
        if reason is not None:
            self.problems.add(
                "model-name",
                f"a name {reason}: {_show(name)}",
                "a name that can be used for folders and files",
                record=where,
                field="model_name",
            )
        architecture = row.get("architecture", "")
        if is_formula(architecture):
            self.problems.add(
                "architecture",
                f"a name that starts with {architecture[0]!r}: {_show(architecture)}",
                "a name that a spreadsheet does not run as a formula",
                record=where,
                field="architecture",
            )
        for field in ("predictions_dir", "train_annotations"):
            if is_url(row.get(field, "")):
                self.problems.add(
                    "url", _show(row[field]), "a path", record=where, field=field, cause=URL_CAUSE
                )
        condition = self.condition(row, where)
        seed = self.seed(row["seed"], where)
        if len(self.problems) > before or condition is None or seed is None:
            return None
        folder = self.path.parent
        predictions, train = row.get("predictions_dir"), row.get("train_annotations")
        return ModelEntry(
            model_name=name,
            condition=condition,
            seed=seed,
            predictions_dir=folder / expand_home(predictions) if predictions else None,
            train_annotations=folder / expand_home(train) if train else None,
            row=number,
            line=line,
        )

    def check_blanks(self, row: dict[str, str], where: str) -> None:
        for field in (*REQUIRED_COLUMNS, "architecture"):
            if field in row and not row[field].strip():
                self.problems.add(
                    "blank-cell", "a blank cell", "a value", record=where, field=field
                )
        for field, cell in row.items():
            if field == "model_name" or not cell.strip():
                continue
            unprintable = next((c for c in cell if not c.isprintable()), None)
            if unprintable is not None:
                self.problems.add(
                    "unprintable",
                    f"the unprintable character U+{ord(unprintable):04X}",
                    "printable text",
                    record=where,
                    field=field,
                )
            elif cell != cell.strip():
                self.problems.add(
                    "surrounding-whitespace",
                    f"leading or trailing whitespace: {_show(cell)}",
                    "the value without them",
                    record=where,
                    field=field,
                )

    def condition(self, row: dict[str, str], where: str) -> Condition | None:
        regime, text = row["regime"], row["k_or_p"]
        if not regime.strip():
            return None
        if regime.strip() not in REGIMES:
            near = difflib.get_close_matches(regime.lower(), REGIMES, n=1)
            self.problems.add(
                "regime",
                f"regime {_show(regime)}",
                f"one of {', '.join(REGIMES)}",
                record=where,
                field="regime",
                cause=f"did you mean {near[0]!r}?" if near else "",
            )
            return None
        if not text.strip():
            return None
        parsed = parse_budget(regime.strip(), text.strip())
        if parsed is None:
            cause = "write 'all' in lower case" if text.strip().lower() == ALL else ""
            if cause and regime != "global_uniform":
                cause = "only global_uniform accepts 'all'"
            self.problems.add(
                "k_or_p",
                _show(text),
                f"{_EXPECTED[regime.strip()]} ({regime.strip()})",
                record=where,
                field="k_or_p",
                cause=cause,
            )
            return None
        value, canonical = parsed
        architecture = row.get("architecture", ONE_ARCHITECTURE)
        return Condition(architecture, REGIMES.index(regime.strip()), value, canonical)

    def seed(self, text: str, where: str) -> int | None:
        if not text.strip():
            return None
        seed = _integer(text.strip())
        if seed is None:
            self.problems.add("seed", _show(text), "an integer >= 0", record=where, field="seed")
        return seed

    def check_duplicates(self, models: list[ModelEntry], has_architecture: bool) -> None:
        """Report duplicate models and seeds, and names that differ only in case."""
        by_name: dict[str, ModelEntry] = {}
        by_cell: dict[tuple[Condition, int], ModelEntry] = {}
        by_architecture: dict[str, ModelEntry] = {}
        for entry in models:
            where = f"row {entry.row} (line {entry.line})"
            first = by_name.setdefault(name_key(entry.model_name), entry)
            if first is not entry:
                same = first.model_name == entry.model_name
                self.problems.add(
                    "duplicate-model",
                    f"{_show(entry.model_name)}, as in row {first.row} (line {first.line})"
                    + ("" if same else f": {_show(first.model_name)}"),
                    "unique model names"
                    if same
                    else "names that differ in more than case (some file systems ignore case)",
                    record=where,
                    field="model_name",
                )
            like = by_architecture.setdefault(name_key(entry.architecture), entry)
            if like.architecture != entry.architecture:
                self.problems.add(
                    "architecture",
                    f"{_show(entry.architecture)}, but {_show(like.architecture)} in "
                    f"row {like.row} (line {like.line})",
                    "one spelling per architecture",
                    record=where,
                    field="architecture",
                    cause="different case, or two encodings of an accented letter",
                )
            other = by_cell.setdefault((entry.condition, entry.seed), entry)
            if other is not entry:
                self.problems.add(
                    "duplicate-seed",
                    f"{entry.condition}, seed {entry.seed}, as in row {other.row}"
                    f" (line {other.line})",
                    "unique seeds within a condition",
                    record=where,
                    field="seed",
                    cause=""
                    if has_architecture
                    else "for several architectures, add a column 'architecture'",
                )


def condition_of(architecture: str, regime: str, k_or_p: str) -> Condition:
    """The condition with these values. Raises ``ValueError`` for an invalid regime or budget."""
    parsed = parse_budget(regime, k_or_p) if regime in REGIMES else None
    if parsed is None:
        raise ValueError(f"not a condition: {regime!r} with k_or_p {k_or_p!r}")
    return Condition(architecture, REGIMES.index(regime), *parsed)


def budget_text(regime: str, k_or_p: str) -> str:
    """A budget for messages and reports: ``k=5``, ``p=0.1``."""
    return f"{'p' if regime == 'incremental_natural' else 'k'}={k_or_p}"


def parse_budget(regime: str, text: str) -> tuple[float, str] | None:
    """(sort key, canonical text) of a ``k_or_p`` cell; None if it is not valid.

    k: an integer, however written (``1.0``), or ``"all"``, which sorts last; p: shortest decimal.
    """
    if regime == "incremental_natural":
        p = _number(text)
        if p is None or not 0 < p <= 1:
            return None
        canonical = f"{p.normalize():f}"
        if len(canonical) > _MAX_DECIMALS + 2:
            return None
        return float(p), canonical
    if regime == "global_uniform" and text == ALL:
        return float("inf"), ALL
    k = _integer(text)
    if k is None or (k == 0 and regime == "global_uniform"):
        return None
    return float(k), str(k)


def _number(text: str) -> Decimal | None:
    return Decimal(text) if len(text) <= _MAX_SHOWN and _NUMBER.fullmatch(text) else None


def _integer(text: str) -> int | None:
    number = _number(text)
    if number is None or number > _MAX_WHOLE or number != number.to_integral_value():
        return None
    return int(number)


def _show(text: str) -> str:
    """A cell for messages: quoted, escaped, truncated."""
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")
