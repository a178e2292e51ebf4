"""Compares models or conditions with each other, from their summaries.

Species are paired, as all sides are scored on the same specimens. Models are paired only if they
were trained on the same images: otherwise the variances over seeds of both sides add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from benchmark_eval import __version__
from benchmark_eval.core.arrays import Floats, Ints
from benchmark_eval.core.crossed import (
    CrossedTable,
    crossed_interval,
    crossed_table,
    unpaired_interval,
)
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.intervals import (
    MIN_SEEDS,
    UNIT,
    Covers,
    Interval,
    Reason,
    mean_of,
    seed_interval,
    without_interval,
)
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.text import some_of
from benchmark_eval.protocol import TEST_SPLITS
from benchmark_eval.results.registry import CURVE_METRICS, HEADLINE, SPLIT_LABEL
from benchmark_eval.sweep.comparison_rows import METRICS, OOD_RECALL, Metric
from benchmark_eval.sweep.curve_intervals import limits
from benchmark_eval.sweep.custom_metrics import PREFIX, load_custom_metrics
from benchmark_eval.sweep.paired import difference_intervals, probability_higher
from benchmark_eval.sweep.sides import (
    OPTION_LABELS,
    Run,
    Side,
    benchmark_files,
    different_options,
    read_sides,
)
from benchmark_eval.sweep.species_tables import PREDICTIONS, distinct_models, scored_species
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.tie_groups import tie_group
from benchmark_eval.sweep.verdicts import Question, Verdict, Word, judge

SCHEMA_VERSION = 1
"""Layout version of the JSON of a comparison."""
_REGISTERED = {metric.name: metric for metric in CURVE_METRICS}
_OF_METRIC = {metric.name: metric for metric in METRICS}
_VALUES = (*HEADLINE, OOD_RECALL)
"""The metrics of the headline table, in order."""


class Pairing(StrEnum):
    """What is paired in a difference."""

    SPECIES_AND_SEEDS = "species and seeds"
    SPECIES = "species"


class SideFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One side: its models, and the options that they were evaluated with.

    ``trained_on`` has the SHA-256 of each model's training annotations, null where it is unknown.
    """

    letter: str
    name: str
    models: list[str]
    trained_on: list[str | None]
    iou_threshold: float
    engine: str
    on_invalid: str
    operating_confidence: float | None
    splits: list[str]


class SideValue(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of one side: its mean over the models, with the interval that ``covers`` describes.

    ``reason`` says why there is no interval.
    """

    metric: str
    label: str
    split: str | None
    side: str
    mean: float | None
    ci95_low: float | None
    ci95_high: float | None
    covers: Covers
    n_models: int
    n_species: int | None
    reason: Reason | None


class SideDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The mean difference of side ``a`` minus side ``b``, and the verdict on it.

    The interval is the plain 95 % one; ``p_holm`` is adjusted for the ``n_tests`` tests of the
    metric. ``share_a_higher`` is the fraction of species on which ``a`` has the higher mean, ties
    counted as half: descriptive. ``reason`` says why nothing was tested.
    """

    metric: str
    label: str
    split: str
    a: str
    b: str
    paired_by: Pairing
    a_minus_b: float | None
    ci95_low: float | None
    ci95_high: float | None
    covers: Covers
    n_species: int
    n_seeds: int
    n_left_out: int
    share_a_higher: float | None
    p: float | None
    p_holm: float | None
    n_tests: int
    verdict: Word
    reason: Reason | None


class SideRanking(msgspec.Struct, frozen=True, kw_only=True):
    """The sides by descending mean, and the tie group of the best.

    The difference between the best side and the others of its tie group is inconclusive.
    ``method`` is the studentised range if all sides share their seeds, else Holm's verdicts.
    ``reason`` says why nothing was tested, and then all sides are tied.
    """

    metric: str
    label: str
    split: str
    order: list[str]
    means: list[float | None]
    tied: list[str]
    method: str
    reason: str | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `compare`; ``title`` names the sides and ``other_options``, which differ."""

    schema_version: int
    package_version: str
    scoring_code: str
    benchmark: str
    benchmark_files: dict[str, str]
    title: str
    other_options: list[str]
    sides: list[SideFacts]
    values: list[SideValue]
    differences: list[SideDifference]
    rankings: list[SideRanking]
    notes: list[str]


def compare(*sides: str | Path, custom_metrics: str | Path | None = None) -> Comparison:
    """Compare two or more models or conditions by the headline metrics.

    Parameters
    ----------
    sides : str or Path
        ``[NAME=]PLACE`` for each side. PLACE is a ``<model>_summary.json``; a folder with the
        summaries of one model or condition; a pattern of either, such as
        ``results/models/yolo_gu_kall_s*``; or ``RESULTS:CONDITION``, the results folder of a sweep
        and a condition as ``comparisons.csv`` names it. Arguments with the same NAME are one side.
        The models of a side are its seeds.
    custom_metrics : str or Path, optional
        Python file with a function ``custom_metrics`` that computes additional metrics of a model.

    Returns
    -------
    Comparison
        The values of each side, their differences with intervals and verdicts, and the ranking of
        three or more sides.

    Raises
    ------
    UsageError
        Fewer than two sides, or more than 26.
    InputError
        A place has no summary; a summary is damaged, edited, outdated or on two sides; the sides
        were evaluated on different benchmarks, by different versions of the scoring code, or have
        no split in common. All problems are in ``problems``.

    Notes
    -----
    A difference is a mean over species. Its interval covers species and retraining, and species
    only if a side has one model; verdicts need three models on each side. Models are paired if
    ``aggregated.json`` beside their summaries records the same training annotations for both sides.
    AR@100 on unseen species has no values by species in a summary, so the mean over species of
    detection recall is compared in its place. Holm's correction is over all pairs of sides of a
    metric. Custom metrics have an interval over seeds and no verdict. See ``docs/compare.md``.

    Examples
    --------
    >>> import tempfile
    >>> from benchmark_eval import compare, evaluate_to_files, make_synthetic
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = make_synthetic(folder.name, scale=0.005)
    >>> for name, iou in (("loose", 0.5), ("strict", 0.75)):
    ...     _ = evaluate_to_files(
    ...         benchmark=made.benchmark_dir,
    ...         predictions_dir=made.predictions_dir / "alder_gu_kall_s0",
    ...         output_dir=f"{folder.name}/{name}",
    ...         model_name=name,
    ...         iou=iou,
    ...     )
    >>> result = compare(f"{folder.name}/loose", f"{folder.name}/strict")
    >>> print(result.title)
    loose (A) and strict (B); localisation IoU: 0.5 (A), 0.75 (B)
    >>> row = result.differences[0]
    >>> print(f"{row.label}, {row.split}: {row.verdict} ({row.reason})")
    AP@[.5:.95], iid_test: not tested (no variation)
    >>> folder.cleanup()
    """
    custom = None if custom_metrics is None else load_custom_metrics(custom_metrics)
    return compare_sides(read_sides(sides, custom))


def compare_sides(sides: Sequence[Side]) -> Comparison:
    """The comparison of sides that ``read_sides`` read."""
    splits = [s for s in TEST_SPLITS if all(s in side.options.splits for side in sides)]
    if not splits:
        listed = "; ".join(f"{side.letter}: {', '.join(side.options.splits)}" for side in sides)
        raise InputError(
            [
                Problem(
                    "no-common-split",
                    " and ".join(side.letter for side in sides),
                    f"no test split that all sides have ({listed})",
                    f"one of {', '.join(TEST_SPLITS)} in all of them",
                    cause="evaluated with other --splits: evaluate the models again",
                )
            ]
        )
    differences: list[SideDifference] = []
    rankings: list[SideRanking] = []
    for metric in METRICS:
        if metric.split in splits:
            made = _Table(sides, metric)
            question, pairing = _question(made)
            differences += _difference_rows(made, question, pairing)
            if len(sides) > 2:
                rankings.append(_ranking(made, question))
    first = sides[0].runs[0].model
    other = list(_other_options(different_options(sides)))
    return Comparison(
        schema_version=SCHEMA_VERSION,
        package_version=__version__,
        scoring_code=first.provenance.scoring_code,
        benchmark=first.provenance.benchmark,
        benchmark_files=benchmark_files(sides[0].runs[0]),
        title="; ".join([_title(sides), *other]),
        other_options=other,
        sides=[_facts(side) for side in sides],
        values=[*_headline_values(sides), *_custom_values(sides)],
        differences=differences,
        rankings=rankings,
        notes=list(_notes(sides, splits, differences)),
    )


# ------------------------------------------------------------------ values of one side


def _headline_values(sides: Sequence[Side]) -> Iterator[SideValue]:
    for name in _VALUES:
        split = _OF_METRIC[name].split if name in _OF_METRIC else str(_REGISTERED[name].split)
        tables = _Table(sides, _OF_METRIC[name]) if name in _OF_METRIC else None
        for side in sides:
            models = distinct_models([run.model for run in side.runs], split)
            models = [model for model in models if split in model.species]
            if tables is not None:
                found = crossed_interval(crossed_table(tables.by_side[side.letter]), UNIT)
                values = [v for model in models if (v := model.values.get(name)) is not None]
                if name in _REGISTERED:
                    # the printed mean is that of the headline metric, also with undefined species
                    cut = limits(found, values)
                    found = replace(
                        found,
                        mean=mean_of(values),
                        low=cut.low,
                        high=cut.high,
                        no_interval=cut.reason,
                    )
            else:
                found = seed_interval((model.values[name] for model in models), UNIT)
            yield _value(name, split, side, found)


def _custom_values(sides: Sequence[Side]) -> Iterator[SideValue]:
    """The user's metrics: an interval over seeds, unless some share a prediction file."""
    names = [n for side in sides for run in side.runs for n in run.model.values]
    for name in dict.fromkeys(n for n in names if n.startswith(PREFIX)):
        for side in sides:
            found = seed_interval((run.model.values.get(name) for run in side.runs), None)
            splits = side.options.splits
            models = [run.model for run in side.runs]
            if any(len(distinct_models(models, split)) < len(models) for split in splits):
                found = without_interval(found, Reason.IDENTICAL_RUNS)
            yield _value(name, None, side, found)


def _value(name: str, split: str | None, side: Side, found: Interval) -> SideValue:
    return SideValue(
        metric=name,
        label=metric_label(name),
        split=split,
        side=side.letter,
        mean=found.mean,
        ci95_low=found.low,
        ci95_high=found.high,
        covers=found.covers,
        n_models=found.n_seeds,
        n_species=found.n_species,
        reason=found.no_interval,
    )


def metric_label(name: str) -> str:
    """The name of a metric of a comparison, without its split."""
    if name == OOD_RECALL:
        return "detection recall, mean over species"
    return _REGISTERED[name].metric.label if name in _REGISTERED else name.removeprefix(PREFIX)


# ------------------------------------------------------------------ differences


class _Table:
    """One metric of all sides: (species, models) each; of identical predictions the first model."""

    def __init__(self, sides: Sequence[Side], metric: Metric) -> None:
        self.metric = metric
        self.letters = [side.letter for side in sides]
        self.runs: dict[str, list[Run]] = {}
        for side in sides:
            by_name = {id(run.model): run for run in side.runs}
            kept = distinct_models([run.model for run in side.runs], metric.split)
            self.runs[side.letter] = [by_name[id(model)] for model in kept]
        models = [run.model for runs in self.runs.values() for run in runs]
        self.species: Ints = scored_species(models, metric.split)
        self.by_side = {
            letter: self._columns([run.model for run in runs]) for letter, runs in self.runs.items()
        }

    def _columns(self, models: Sequence[ModelResult]) -> Floats:
        table = np.full((len(self.species), len(models)), np.nan)
        for column, model in enumerate(models):
            scores = model.species.get(self.metric.split)
            if scores is not None and len(scores.ids):
                rows = np.searchsorted(self.species, scores.ids)
                table[rows, column] = self.metric.value(scores)
        return table

    def shared_training(self, letters: Sequence[str]) -> list[str]:
        """The training annotations that pair the models of these sides; [] if none do.

        Each must be that of one model per side, and the side with the fewest models must have no
        others: what only a larger side has leaves the pair.
        """
        trained = [[run.trained_on for run in self.runs[letter]] for letter in letters]
        known = [{digest for digest in side if digest is not None} for side in trained]
        if any(len(k) < len(side) for k, side in zip(known, trained, strict=True)):
            return []
        smallest = min(known, key=len)
        return sorted(smallest) if all(smallest <= other for other in known) else []

    def of_training(self, letter: str, digests: Sequence[str]) -> Floats:
        """The columns of a side in the order of the training annotations ``digests``."""
        at = {run.trained_on: column for column, run in enumerate(self.runs[letter])}
        return self.by_side[letter][:, [at[digest] for digest in digests]]

    def same_predictions(self, a: str, b: str) -> bool:
        """Whether a model of one side has the same prediction file as one of the other."""
        key = f"{PREDICTIONS}{self.metric.split}"
        files = [
            {run.model.provenance.inputs.get(key, run.name) for run in self.runs[letter]}
            for letter in (a, b)
        ]
        return not files[0].isdisjoint(files[1])

    def other_iou(self, a: str, b: str) -> bool:
        """Whether the metric depends on the localisation IoU, and that of the sides differs."""
        if self.metric.name != OOD_RECALL:
            return False
        return len({run.model.config.iou_threshold for s in (a, b) for run in self.runs[s]}) > 1


def _question(made: _Table) -> tuple[Question, list[Pairing]]:
    """The verdicts on all pairs of sides, and what is paired in each."""
    pairs = list(combinations(made.letters, 2))
    pairing: list[Pairing] = []
    paired: dict[tuple[str, str], CrossedTable] = {}
    for pair in pairs:
        digests = made.shared_training(pair)
        pairing.append(Pairing.SPECIES_AND_SEEDS if digests else Pairing.SPECIES)
        if digests:
            left, right = (made.of_training(letter, digests) for letter in pair)
            paired[pair] = crossed_table(left, right)
    # the comparisons of a question share their variance over seeds; variances that add are not of
    # the same kind
    found = dict(
        zip(paired, difference_intervals(list(paired.values()), list(paired)), strict=True)
    )
    intervals = []
    for a, b in pairs:
        interval = found.get((a, b)) or unpaired_interval(made.by_side[a], made.by_side[b])
        reason = _not_comparable(made, a, b)
        if reason is not None and interval.no_verdict is None:
            interval = replace(interval, no_verdict=reason)
        intervals.append(interval)
    return judge(intervals), pairing


def _not_comparable(made: _Table, a: str, b: str) -> Reason | None:
    if made.same_predictions(a, b):
        return Reason.IDENTICAL_RUNS
    return Reason.OTHER_OPTIONS if made.other_iou(a, b) else None


def _difference_rows(
    made: _Table, question: Question, pairing: Sequence[Pairing]
) -> Iterator[SideDifference]:
    pairs = combinations(made.letters, 2)
    for (a, b), paired_by, verdict in zip(pairs, pairing, question.verdicts, strict=True):
        found = verdict.interval
        yield SideDifference(
            metric=made.metric.name,
            label=metric_label(made.metric.name),
            split=made.metric.split,
            a=a,
            b=b,
            paired_by=paired_by,
            a_minus_b=found.mean,
            ci95_low=found.low,
            ci95_high=found.high,
            covers=found.covers,
            n_species=found.n_species or 0,
            n_seeds=found.n_seeds,
            n_left_out=found.n_left_out,
            share_a_higher=probability_higher(made.by_side[a], made.by_side[b]),
            p=verdict.p,
            p_holm=verdict.p_holm,
            n_tests=question.n_tests,
            verdict=verdict.word,
            reason=verdict.reason,
        )


STUDENTISED_RANGE = "studentised range"
HOLM = "Holm's verdicts on all pairs"


def _ranking(made: _Table, question: Question) -> SideRanking:
    """The order of three or more sides, and which are not told from the best."""
    letters, pairs = made.letters, list(combinations(made.letters, 2))
    means = {s: crossed_table(made.by_side[s]).mean for s in letters}
    order = sorted(letters, key=lambda s: (means[s] is None, -(means[s] or 0.0)))
    tied, reason, method = set(order), None, HOLM
    digests = made.shared_training(letters)
    untested = [verdict for verdict in question.verdicts if verdict.word is Word.NOT_TESTED]
    if untested:
        reason = untested[0].reason
    elif digests:
        group = tie_group(np.array([made.of_training(s, digests) for s in letters]))
        order = [letters[i] for i in group.order]
        means = dict(zip(letters, group.means, strict=True)) if group.means else means
        tied, reason, method = {letters[i] for i in group.tied}, group.reason, STUDENTISED_RANGE
    else:
        tied -= {s for s in order[1:] if _better(order[0], s, pairs, question.verdicts)}
    return SideRanking(
        metric=made.metric.name,
        label=metric_label(made.metric.name),
        split=made.metric.split,
        order=order,
        means=[means[s] for s in order],
        tied=[s for s in order if s in tied],
        method=method,
        reason=reason,
    )


def _better(
    best: str, other: str, pairs: Sequence[tuple[str, str]], verdicts: Sequence[Verdict]
) -> bool:
    """Whether the verdict on a pair is that ``best`` is higher."""
    words = dict(zip(pairs, (verdict.word for verdict in verdicts), strict=True))
    if (best, other) in words:
        return words[best, other] is Word.HIGHER
    return words[other, best] is Word.LOWER


# ------------------------------------------------------------------ words


def _facts(side: Side) -> SideFacts:
    options = side.options
    return SideFacts(
        letter=side.letter,
        name=side.name,
        models=[run.name for run in side.runs],
        trained_on=[run.trained_on for run in side.runs],
        iou_threshold=options.iou_threshold,
        engine=options.engine,
        on_invalid=options.on_invalid,
        operating_confidence=options.operating_confidence,
        splits=list(options.splits),
    )


def _title(sides: Sequence[Side]) -> str:
    if len(sides) > 3:
        return f"{len(sides)} sides, {sides[0].letter} to {sides[-1].letter}"
    return _and([f"{side.name} ({side.letter})" for side in sides])


def _other_options(different: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The options that differ, with the value of each side."""
    for option, values in different.items():
        shown = ", ".join(f"{value} ({letter})" for letter, value in values.items())
        yield f"{OPTION_LABELS[option]}: {shown}"


def _unchecked(sides: Sequence[Side]) -> Iterator[str]:
    """Sides whose models may be of several conditions."""
    letters = [
        side.letter
        for side in sides
        if len(side.runs) > 1 and any(run.condition is None for run in side.runs)
    ]
    if letters:
        yield (
            f"It was not checked that the models of {_and(letters)} are seeds of one condition: no "
            "tables of a sweep beside their summaries say so."
        )


def _notes(
    sides: Sequence[Side], splits: Sequence[str], differences: Sequence[SideDifference]
) -> Iterator[str]:
    """What the tables cannot say: why there is no verdict, what was paired, what is missing."""
    single = [side.letter for side in sides if len(side.runs) == 1]
    few = [side.letter for side in sides if 1 < len(side.runs) < MIN_SEEDS]
    if single:
        who = "Each side is" if len(single) == len(sides) else f"{_and(single)} is"
        if 1 < len(single) < len(sides):
            who = f"{_and(single)} are each"
        yield (
            f"{who} one model, so the intervals cover other species but not another training run, "
            "and there is no verdict: another seed of the same method could turn the difference "
            f"around. For a verdict, give at least {MIN_SEEDS} seeds of each side."
        )
        if len(single) == len(sides) > 2:
            yield (
                "If some of these are seeds of one method, they should be one side: put the "
                "pattern of their names in quotes, or give their arguments the same NAME=."
            )
    yield from _unchecked(sides)
    if few:
        yield (
            f"{_and(few)} {'has' if len(few) == 1 else 'have'} fewer than {MIN_SEEDS} models, so "
            f"there is no verdict: give at least {MIN_SEEDS} seeds of each side."
        )
    unpaired = {(row.a, row.b) for row in differences if row.paired_by is Pairing.SPECIES}
    if unpaired and not (single and len(single) == len(sides)):
        unknown = [s.letter for s in sides if any(run.trained_on is None for run in s.runs)]
        why = (
            f"the training annotations of {_and(unknown)} are unknown"
            if unknown
            else "their training annotations do not match one to one"
        )
        pairs = some_of([f"{a} - {b}" for a, b in sorted(unpaired)], 3)
        yield (
            f"Seeds are not paired in {pairs} ({why}): the variances over seeds of both sides add."
        )
    for side in sides:
        for split in splits:
            n = len(distinct_models([run.model for run in side.runs], split))
            if n < len(side.runs):
                yield (
                    f"{side.letter}: {len(side.runs)} models have {n} different prediction "
                    f"file{'' if n == 1 else 's'} for {split}; identical ones count once."
                )
    for split in TEST_SPLITS:
        without = [side.letter for side in sides if split not in side.options.splits]
        if without and len(without) < len(sides):
            yield f"{SPLIT_LABEL[split]}: {_and(without)} was not evaluated on {split}."
    if any(row.metric == OOD_RECALL for row in differences):
        yield (
            "Summaries have no AR@100 by species, so detection recall (mean over unseen species) "
            "is compared in its place."
        )
    if any(row.reason is Reason.OTHER_OPTIONS for row in differences):
        yield "Detection recall depends on the localisation IoU, which differs: no verdict."


def _and(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]
