"""The sides of a comparison: which summaries belong to each, and whether they can be compared.

A side is a model or a condition. Its summaries can come from any evaluation or sweep, as long as
benchmark and scoring code are the same.
"""

from __future__ import annotations

import difflib
import glob
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark_eval.core.errors import InputError, UsageError
from benchmark_eval.core.problems import Problem, Problems
from benchmark_eval.core.records import (
    STATE,
    outdated_model,
    rewritten,
)
from benchmark_eval.core.safe_read import absent, read_or_report
from benchmark_eval.core.text import counted, some_of
from benchmark_eval.inputs.manifest import ONE_ARCHITECTURE, ModelEntry, condition_of
from benchmark_eval.protocol import REGIMES
from benchmark_eval.results.evidence import SUFFIX as EVIDENCE
from benchmark_eval.results.evidence import evidence_problems
from benchmark_eval.results.schema import RunConfig, decode_summary
from benchmark_eval.sweep.custom_metrics import CustomMetrics
from benchmark_eval.sweep.summaries import (
    BENCHMARK_INPUT,
    SUFFIX,
    ModelResult,
    extract,
    find_summaries,
)
from benchmark_eval.sweep.tables import AGGREGATED, Aggregated, load_current_tables

MOST_SIDES = 26
"""Largest number of sides: each has a letter."""
_UNKNOWN = condition_of(ONE_ARCHITECTURE, REGIMES[0], "all")
"""Stands in for the condition of a model, which its summary does not contain."""
_EXPECTED = (
    f"a <model>{SUFFIX}, a folder with such files, a pattern of one of them in quotes, or "
    "RESULTS:CONDITION"
)


@dataclass(frozen=True, slots=True)
class Run:
    """One model of a side.

    ``trained_on`` is the SHA-256 of its training annotations and ``condition`` the name of its
    condition, if tables of a sweep beside the summary record them.
    """

    model: ModelResult
    path: Path
    trained_on: str | None
    condition: str | None

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.entry.model_name


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a letter, a name, and its models, which are seeds of one kind."""

    letter: str
    name: str
    runs: tuple[Run, ...]

    @property
    def options(self) -> RunConfig:
        """The options of the evaluation, equal for all models of the side."""
        return self.runs[0].model.config


def read_sides(
    arguments: Sequence[str | Path], custom: CustomMetrics | None = None
) -> tuple[Side, ...]:
    """Read the models of all sides and check that they can be compared.

    Parameters
    ----------
    arguments
        ``[NAME=]PLACE`` each; NAME has no slash or colon. PLACE is a summary; a folder with the
        summaries of one model or condition, itself or in folders named after the models; a pattern
        (``*``, ``?``, ``[...]``) of either; or ``RESULTS:CONDITION``, a condition of a sweep, as
        comparisons.csv names it.
        Arguments with the same NAME are one side.
    custom
        The user's metrics.

    Raises
    ------
    UsageError
        Fewer than two sides, or more than 26.
    InputError
        With all problems: places without a summary; summaries that are damaged, edited, outdated
        or on two sides; sides with models of several conditions or options; another benchmark or
        other scoring code than most.
    """
    places: dict[str, list[str]] = {}
    unnamed = 0
    for argument in map(str, arguments):
        name, place = _named(argument)
        if not name:
            unnamed += 1
        places.setdefault(name or f"\0{unnamed}", []).append(place)
    if not 2 <= len(places) <= MOST_SIDES:
        raise UsageError(
            f"found {counted(len(places), 'side')}; expected 2 to {MOST_SIDES}, each a model or a "
            "condition (models of one condition are one argument: put the pattern of their names "
            "in quotes, or give their arguments the same NAME=)"
        )
    problems, tables = Problems(), _Tables()
    sides = []
    for number, (name, each) in enumerate(places.items()):
        found: dict[Path, str | None] = {}
        for place in each:
            try:
                found.update(_summaries(place, tables, problems))
            except InputError as error:  # a folder that cannot be read
                problems.extend(error.problems)
        runs = [_read(path, tables, custom, problems) for path in found]
        read = tuple(run for run in runs if run is not None)
        if read:
            given = "" if name.startswith("\0") else name
            chosen = next((c for c in found.values() if c), None)
            label = given or chosen or _label(each[0], read)
            sides.append(Side(chr(ord("A") + number), label, read))
    _check_sides(sides, problems)
    _check_all([run for side in sides for run in side.runs], problems)
    if problems:
        raise InputError(dict.fromkeys(problems.all()))
    return tuple(sides)


# ------------------------------------------------------------------ from arguments to summaries


def _named(argument: str) -> tuple[str, str]:
    """The name (or "") and the place of ``[NAME=]PLACE``; a path that exists has no name."""
    name, equals, place = argument.partition("=")
    # the "=" of a condition is no separator: RESULTS:yolo global_uniform k=all
    if not equals or not name or not {"/", ":"}.isdisjoint(name) or os.path.lexists(argument):
        return "", argument
    return name, place


def _summaries(
    place: str, tables: _Tables, problems: Problems
) -> Iterator[tuple[Path, str | None]]:
    """The summaries at a place, with the condition if the place names one."""
    path = Path(place)
    try:
        if path.is_dir():
            yield from ((found, None) for found in _in_folder(path, place, problems))
            return
        if path.exists():
            yield path, None
            return
        if glob.has_magic(place):
            yield from _of_pattern(place, problems)
            return
    except (OSError, ValueError):  # a name that is too long, or with NUL
        path = Path()
    folder, condition = _condition_of_sweep(place)
    if folder is not None:
        yield from _of_condition(folder, condition, tables, problems)
        return
    problems.add("missing-file", absent(place), _EXPECTED, file=place)


def _in_folder(folder: Path, place: str, problems: Problems) -> Iterator[Path]:
    below = folder / "models"
    found = find_summaries(below if below.is_dir() else folder, problems)
    if not found:
        problems.add("no-summary", "no summary of any model", _EXPECTED, file=place)
    yield from found.values()


def _of_pattern(pattern: str, problems: Problems) -> Iterator[tuple[Path, None]]:
    matches = [Path(name) for name in sorted(glob.glob(pattern))]  # noqa: PTH207  (as the shell)
    found = [path for path in matches if path.name.endswith(SUFFIX) and not path.is_dir()]
    for folder in (path for path in matches if path.is_dir()):
        found += find_summaries(folder, problems).values()
    if not found:
        problems.add("no-summary", "no summary that matches this pattern", _EXPECTED, file=pattern)
    yield from ((path, None) for path in found)


def _condition_of_sweep(place: str) -> tuple[Path | None, str]:
    """The folder and the condition of ``RESULTS:CONDITION``; names of both may have colons."""
    for at, character in enumerate(place):
        if character == ":" and at and Path(place[:at]).is_dir():
            return Path(place[:at]), place[at + 1 :].strip()
    return None, ""


def _of_condition(
    folder: Path, condition: str, tables: _Tables, problems: Problems
) -> Iterator[tuple[Path, str]]:
    """The summaries of a condition in the tables of a sweep."""
    home = folder / "models" if (folder / "models").is_dir() else folder
    table = tables.of(home, problems)
    if table is None:
        problems.add(
            "missing-file",
            f"no {AGGREGATED} of a sweep",
            f"the results folder of a sweep, with aggregated/{AGGREGATED}",
            file=str(folder),
            cause="conditions are known from the tables: run the workflow or benchmark-eval "
            "aggregate first, or name the summaries",
        )
        return
    known = list(dict.fromkeys(str(row.condition) for row in table.models))
    models = [row.model for row in table.models if str(row.condition) == condition]
    if not models:
        near = difflib.get_close_matches(condition, known, n=1)
        problems.add(
            "no-condition",
            f"no condition {condition!r}",
            f"one of {some_of(known, MOST_SIDES)}",
            file=str(folder),
            cause=f"did you mean {near[0]!r}?" if near else "",
        )
    found = find_summaries(home, problems)
    for model in models:
        if model in found:
            yield found[model], condition
        else:
            problems.add(
                "missing-summary",
                f"no summary of {model!r}",
                "one summary per model in the tables",
                file=str(home),
                cause="removed since the tables were made",
            )


def _label(place: str, runs: Sequence[Run]) -> str:
    """The name of a side that was given none: its model, its condition, or the end of its place."""
    if len(runs) == 1:
        return runs[0].name
    conditions = {run.condition for run in runs}
    only = next(iter(conditions))
    return only if len(conditions) == 1 and only else Path(place).absolute().name


# ------------------------------------------------------------------ reading


class _Tables:
    """The tables beside summaries, each read once; refuses those that are outdated or edited."""

    def __init__(self) -> None:
        self._known: dict[Path, Aggregated | None] = {}

    def of(self, home: Path, problems: Problems) -> Aggregated | None:
        """The tables of the sweep whose summaries are in the folder ``home``, if there are any."""
        home = home.absolute()
        if home not in self._known:
            self._known[home] = None
            places = [home / "aggregated" / AGGREGATED, home / AGGREGATED]
            if home.name == "models":
                places.insert(0, home.parent / "aggregated" / AGGREGATED)
            path = next((place for place in places if place.is_file()), None)
            if path is not None:
                self._known[home] = self._read(path, problems)
        return self._known[home]

    @staticmethod
    def _read(path: Path, problems: Problems) -> Aggregated | None:
        try:
            return load_current_tables(path)
        except InputError as error:
            problems.extend(error.problems)
            return None


def _read(
    path: Path, tables: _Tables, custom: CustomMetrics | None, problems: Problems
) -> Run | None:
    """One model; None and a problem if it cannot be used."""
    data = read_or_report(path, problems, f"a <model>{SUFFIX}")
    if data is None:
        return None
    digest = hashlib.sha256(data).hexdigest()
    before = len(problems)
    try:
        evaluation = decode_summary(data, str(path))
        name = evaluation.model
        entry = ModelEntry(name, _UNKNOWN, 0, None, None, 0, 0)
        model = extract(evaluation, entry, digest, custom)
    except InputError as error:
        problems.extend(error.problems)
        return None
    if path.name == f"{name}{SUFFIX}":  # else it was renamed, and so was what belongs to it
        problems.extend(evidence_problems(path.with_name(f"{name}_{EVIDENCE}"), evaluation))
    folder = path.absolute().parent
    home = folder.parent if folder.name == name else folder
    problems.extend(_changed(path, name, digest, home))
    trained_on = condition = None
    table = tables.of(home, problems)
    if table is not None and name in table.inputs.summaries:
        if table.inputs.summaries[name] != digest:
            problems.add(
                "digest",
                f"SHA-256 {digest[:12]}...",
                f"SHA-256 {table.inputs.summaries[name][:12]}..., as in the tables of its sweep",
                file=str(path),
                cause="edited, or evaluated again since: aggregate again",
            )
        trained_on = table.inputs.train_annotations.get(name)
        condition = next((str(row.condition) for row in table.models if row.model == name), None)
    return Run(model, path, trained_on, condition) if len(problems) == before else None


def _changed(path: Path, model: str, digest: str, home: Path) -> Iterator[Problem]:
    """Whether a summary was edited, or is not that of the last run."""
    if home.name == "models":
        problem = outdated_model(home.parent / STATE, model, path, digest)
        if problem is not None:
            yield problem
    problem = rewritten(path, digest)
    if problem is not None:
        yield problem


# ------------------------------------------------------------------ what can be compared


def _check_sides(sides: Sequence[Side], problems: Problems) -> None:
    """Report models on two sides, and sides whose models do not belong together."""
    seen: dict[str, tuple[Side, Run]] = {}
    for side in sides:
        for run in side.runs:
            first = seen.setdefault(run.model.digest, (side, run))
            if first[1] is not run:
                where = "the same side" if first[0] is side else f"side {first[0].letter}"
                problems.add(
                    "same-model",
                    f"the summary of {run.name!r} on side {side.letter}, which is also on {where}"
                    f" ({first[1].path})",
                    "each summary on one side, once",
                    file=str(run.path),
                )
        conditions = sorted({run.condition for run in side.runs if run.condition})
        if len(conditions) > 1:
            problems.add(
                "several-conditions",
                f"models of {counted(len(conditions), 'condition')} on side {side.letter} "
                f"({some_of(conditions, 3)})",
                "the models of one condition",
                file=side.name,
                cause="the folder of a whole sweep: name a condition, as in "
                f"RESULTS:'{conditions[0]}'",
            )
        for field, value in _OPTIONS.items():
            values = sorted({str(value(run.model.config)) for run in side.runs})
            if len(values) > 1:
                problems.add(
                    "other-options",
                    f"{' and '.join(values)} on side {side.letter}",
                    "one value, because the models of a side are averaged",
                    file=side.name,
                    field=f"config.{field}",
                    cause="evaluated with different options: make them two sides, or evaluate "
                    "again",
                )


_OPTIONS: Mapping[str, Callable[[RunConfig], object]] = {
    "iou_threshold": lambda options: f"{options.iou_threshold:g}",
    "engine": lambda options: options.engine,
    "on_invalid": lambda options: options.on_invalid,
    "operating_confidence": lambda options: options.operating_confidence,
    "splits": lambda options: ", ".join(options.splits),
}
OPTION_LABELS = {
    "iou_threshold": "localisation IoU",
    "engine": "engine",
    "on_invalid": "invalid detections",
    "operating_confidence": "operating confidence",
    "splits": "splits",
}
"""The options of an evaluation, as titles name them."""


def different_options(sides: Sequence[Side]) -> dict[str, dict[str, str]]:
    """The options that differ between sides: option -> letter of a side -> value."""
    values = {
        option: {side.letter: str(value(side.options)) for side in sides}
        for option, value in _OPTIONS.items()
    }
    return {option: by_side for option, by_side in values.items() if len(set(by_side.values())) > 1}


def benchmark_files(run: Run) -> dict[str, str]:
    """The SHA-256 of each file of the benchmark that a model was evaluated on."""
    return {
        name.removeprefix(BENCHMARK_INPUT): digest
        for name, digest in run.model.provenance.inputs.items()
        if name.startswith(BENCHMARK_INPUT)
    }


def _check_all(runs: Sequence[Run], problems: Problems) -> None:
    """Report models of another benchmark or other scoring code than that of the first model."""
    if not runs:
        return
    first = runs[0]
    expected, code = benchmark_files(first), first.model.provenance.scoring_code
    for run in runs[1:]:
        found = benchmark_files(run)
        if found != expected:
            names = sorted(found.keys() | expected.keys())
            odd = [name for name in names if found.get(name) != expected.get(name)]
            problems.add(
                "other-benchmark",
                f"values of {run.name!r} on another benchmark (other {', '.join(odd)})",
                f"the same benchmark as for {first.name!r}",
                file=str(run.path),
                field="provenance.inputs",
                cause="numbers on different test data are not comparable: evaluate the model again",
            )
        own = run.model.provenance.scoring_code
        if own != code:
            problems.add(
                "other-code",
                f"values of {run.name!r} by scoring code {own[:12]}... (benchmark-eval "
                f"{run.model.provenance.package_version})",
                f"scoring code {code[:12]}... (benchmark-eval "
                f"{first.model.provenance.package_version}), as for {first.name!r}",
                file=str(run.path),
                field="provenance.scoring_code",
                cause="evaluated with another version of benchmark-eval: evaluate the model again",
            )
