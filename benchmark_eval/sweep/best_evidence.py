"""The whole evidence of each architecture's best condition, one architecture at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmark_eval.core.arrays import Bools, Ints
from benchmark_eval.inputs.benchmark import Categories
from benchmark_eval.inputs.manifest import Condition
from benchmark_eval.results.evidence import THRESHOLDS, Evidence, SplitEvidence
from benchmark_eval.sweep.evidence_counts import full_evidence
from benchmark_eval.sweep.species_tables import distinct_models
from benchmark_eval.sweep.summaries import ModelResult
from benchmark_eval.sweep.table_rows import Threshold

_ALL, _OPERATING = range(len(THRESHOLDS))


@dataclass(frozen=True, slots=True)
class BestEvidence:
    """The best condition of an architecture: its models that have evidence, and that evidence."""

    condition: Condition
    models: Sequence[ModelResult]
    evidence: Mapping[str, Evidence]

    def on(self, *splits: str) -> list[Evidence]:
        """The evidence of the models that count on these splits, each evaluated on all of them."""
        found = [self.evidence[m.entry.model_name] for m in distinct_models(self.models, *splits)]
        return [each for each in found if all(split in each.splits for split in splits)]

    def of(self, split: str) -> list[SplitEvidence]:
        """The same, of one split."""
        return [each.splits[split] for each in self.on(split)]

    def threshold(self, split: str) -> tuple[int, Threshold]:
        """The row of counts to use: at the operating threshold if every model has one."""
        has_one = all(each.header.operating_confidence is not None for each in self.on(split))
        return (_OPERATING, "operating") if has_one else (_ALL, "all")


def best_evidence(
    groups: Mapping[Condition, Sequence[ModelResult]],
    best: Collection[Condition],
    with_evidence: Collection[str],
) -> Iterator[BestEvidence]:
    """The evidence of the ``best`` conditions, in table order.

    ``with_evidence`` names the models that have evidence. Raises InputError if a file changed
    since it was counted.
    """
    for condition in [each for each in groups if each in best]:
        models = [m for m in groups[condition] if m.entry.model_name in with_evidence]
        if models:
            yield BestEvidence(
                condition, models, {m.entry.model_name: full_evidence(m) for m in models}
            )


@dataclass(frozen=True, slots=True)
class Pairs:
    """The misidentified specimens of a best condition on a split.

    Attributes
    ----------
    condition : Condition
    split : str
    threshold : "operating" or "all"
        Which detections count.
    n : (seeds, species, species) int
        Specimens by true and predicted species; correct ones are not counted.
    right : (seeds, species) int
        Correctly identified specimens.
    found : (seeds, species) int
        Detected specimens.
    given : (seeds, species) int
        True positives by predicted species.
    scored : (species,) int
        Scored specimens.
    """

    condition: Condition
    split: str
    threshold: Threshold
    n: Ints
    right: Ints
    found: Ints
    given: Ints
    scored: Ints


def pairs_of(best: BestEvidence, split: str, categories: Categories) -> Pairs | None:
    """The misidentified specimens of a best condition; None without evidence of the split."""
    tables = best.of(split)
    if not tables:
        return None
    row, threshold = best.threshold(split)
    n = np.zeros((len(tables), len(categories.ids), len(categories.ids)), np.int64)
    for seed, table in enumerate(tables):
        wrong: Bools = (
            categories.name_code[table.confusion_true]
            != categories.name_code[table.confusion_predicted]
        )
        at = (seed, table.confusion_true[wrong], table.confusion_predicted[wrong])
        n[at] = table.confusion_n[row][wrong]
    return Pairs(
        condition=best.condition,
        split=split,
        threshold=threshold,
        n=n,
        right=np.array([table.n_right[row] for table in tables], np.int64),
        found=np.array([table.n_found[row] for table in tables], np.int64),
        given=np.array([table.n_given[row] for table in tables], np.int64),
        scored=tables[0].n_scored.astype(np.int64),
    )
