"""Compares an evaluation with the benchmark's evaluator, value by value.

``Expectation`` converts the evaluator's results to ours: identical except for the documented
deviations (docs/deviations.md). Each deviation is one narrow rule that first asserts the value of
the evaluator and then sets the expected value. ``compare`` makes no exceptions: every expected
value must be found, to 1e-9.
"""

import copy
import csv
import io
import json
import math
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from support import yardstick
from support.direct_coco import scored_records, truth_of

TOLERANCE = 1e-9
ROUNDING = 1e-12
NAMED = ("iid_test", "inat_test")
AREAS = {"small": (0, 1024), "medium": (1024, 9216), "large": (9216, 1e10)}
GAPS = {
    # key: (block, its key) on both sides; iid_test minus the split
    "photography_robustness_gap_AP_50": ("inat_test", "coco", "AP_50"),
    "photography_robustness_gap_AP_50_95": ("inat_test", "coco", "AP_50_95"),
    "species_generalization_gap_AR_100": (
        *("semantic_ood", "class_agnostic", "class_agnostic_AR_100"),
    ),
    "species_generalization_gap_AP_50": (
        *("semantic_ood", "class_agnostic", "class_agnostic_AP_50"),
    ),
    "confidence_drop_OOD": ("semantic_ood", "calibration", "mean_confidence"),
}
BAND_GAPS = {
    "ood_band_gap_AP_50": "class_agnostic_AP_50",
    "ood_band_gap_AR_100": "class_agnostic_AR_100",
    "ood_band_gap_correct_genus": "correct_genus",
    "ood_band_gap_correct_tribe": "correct_tribe",
    "ood_band_gap_confidence": "mean_confidence_matched",
}
OTHERS_OF_SUMMARY = (
    *("photography_robustness_gap_AP_50_shared_species",),
    *("photography_robustness_gap_AP_50_95_shared_species", "n_shared_species_iid_inat"),
    *("novelty_det_AUROC", "novelty_det_FPR@95TPR", "novelty_known_mean_conf"),
    *("novelty_novel_mean_conf", "n_known_tp", "n_novel_tp"),
    *(
        f"{stem}_{band}"
        for stem in ("novelty_det_AUROC", "novelty_novel_mean_conf")
        for band in ("near_genus", "mid_tribe", "far_tribe")
    ),
)


# --------------------------------------------------------------------------------------------
# The expected results
# --------------------------------------------------------------------------------------------


class Facts:
    """Facts about a split that the rules need, from its files only."""

    def __init__(self, case, split):
        truth = truth_of(case, split)
        self.listed = {c["id"] for c in truth["categories"]}
        self.annotations = truth["annotations"]
        self.scored = [a for a in self.annotations if not a["iscrowd"]]
        self.n_images = len(truth["images"])
        self.predicted_images = {r["image_id"] for r in scored_records(case, split)}

    def has_scored(self, area, *, listed_only):
        low, high = AREAS.get(area, (0, 1e10))
        return any(
            low <= a["area"] <= high and (not listed_only or a["category_id"] in self.listed)
            for a in self.scored
        )


@dataclass
class Expectation:
    """The evaluator's results converted to ours; ``used`` counts the uses of each rule."""

    results: dict
    case: object
    used: Counter = field(default_factory=Counter)

    def __post_init__(self):
        raw = self.results
        self.raw = copy.deepcopy(raw)
        self.train_images = raw["_train_images"]
        self.facts = {split: Facts(self.case, split) for split in raw["per_split"]}
        for split, blocks in raw["per_split"].items():
            self._split(split, blocks, self.facts[split])
        self._summary(raw)
        self._detections(raw)

    def _undefined(self, block, key, reference):
        """Deviation 1: an undefined value is ``reference`` in the evaluator and null in ours."""
        assert block[key] == reference, (
            f"{key}: the evaluator has {block[key]!r}, not {reference!r}"
        )
        block[key] = None
        self.used["1: undefined is null"] += 1

    def _split(self, split, blocks, facts):
        n = blocks["n_predictions"]
        # without predictions, the evaluator keeps the order of categories in the file
        blocks["per_species"] = dict(sorted(blocks["per_species"].items()))
        density, calibration = blocks["prediction_density"], blocks["calibration"]
        if not facts.scored:
            self._undefined(density, "boxes_per_gt", 0.0)
        if not facts.n_images:
            self._undefined(density, "boxes_per_image", 0.0)
        for name, listed_only in (("coco", True), ("class_agnostic", False)):
            for key in blocks[name]:
                area = key.rsplit("_", 1)[1]
                if not facts.has_scored(area, listed_only=listed_only):
                    self._undefined(blocks[name], key, -1.0 if n else 0.0)
                elif not n:
                    assert blocks[name][key] == 0.0
        self._imbalance(split, blocks)
        for species in blocks["per_species"].values():
            if not species["n_gt"]:
                self._undefined(species, "AP_50", 0.0)
                self._undefined(species, "AP_50_95", 0.0)
        if not calibration["n_predictions"]:
            self._undefined(calibration, "ECE", 0.0)
            self._undefined(calibration, "mean_confidence", 0.0)
        for bin_, count in enumerate(calibration["confidence_histogram"]):
            if not count:
                self._undefined(calibration["accuracy_per_bin"], bin_, 0.0)
        if not blocks["hierarchical"]["n_matched"]:
            for rank in ("species", "genus", "tribe", "subfamily"):
                self._undefined(blocks["hierarchical"], f"correct_{rank}", 0.0)
        self._decomposition(split, blocks, facts)
        for name, band in blocks.get("ood_by_band", {}).get("by_band", {}).items():
            self._band(name, band, facts)

    def _decomposition(self, split, blocks, facts):
        n_gt = len(facts.scored)
        found = blocks["decomposition"]
        accuracies = [f"acc_{rank}_given_det" for rank in ("species", "genus", "tribe")]
        if not blocks["n_predictions"] or not n_gt:
            assert found == {}
            nothing = 0.0 if n_gt else None
            found |= {"n_gt": n_gt, "n_matched_tp": 0, "is_species_meaningful": split in NAMED}
            found |= dict.fromkeys(accuracies)
            keys = ("detection", "species", "genus", "tribe")
            found |= {f"{key}_recall": nothing for key in keys} | {"classification_loss": nothing}
            self.used["1: undefined is null"] += len(accuracies)
        elif not found["n_matched_tp"]:
            for key in accuracies:
                self._undefined(found, key, 0.0)
        # the APs are those of the COCO blocks, with their rules
        found["joint_AP_50"] = blocks["coco"]["AP_50"]
        found["detection_only_AP_50_ref"] = blocks["class_agnostic"]["class_agnostic_AP_50"]

    def _band(self, name, band, facts):
        ids = _ids_of_band(self.case, name, facts.listed)
        annotations = [a for a in facts.annotations if a["category_id"] in ids]
        images = {a["image_id"] for a in annotations}
        predicted = images & facts.predicted_images
        if not any(not a["iscrowd"] for a in annotations):
            for key in ("AP_50", "AP_50_95", "AR_100"):
                self._undefined(band, f"class_agnostic_{key}", -1.0 if predicted else 0.0)
        if not band["n_matched_tp"]:
            for rank in ("genus", "tribe", "subfamily"):
                self._undefined(band, f"correct_{rank}", 0.0)
            self._undefined(band, "mean_confidence_matched", 0.0)
        if not predicted:
            self._undefined(band, "mean_confidence_all_preds", 0.0)

    def _imbalance(self, split, blocks):
        """Deviations 2 and 3: scored species only, and ties broken by category id."""
        reference = blocks["class_imbalance"]
        everyone = blocks["per_species"]
        scored = {i: s for i, s in sorted(everyone.items()) if s["n_gt"]}
        if not everyone or not self.train_images:
            assert reference == {}
            return
        score = yardstick.module().evaluate_class_imbalance
        trained = [i for i, s in scored.items() if self.train_images.get(s["name"], 0)]
        order = sorted(trained, key=lambda i: (self.train_images[scored[i]["name"]], i))
        # counts with the same order but no ties, and unique names
        untied = {
            str(i): self.train_images[scored[i]["name"]] * 1000 + at for at, i in enumerate(order)
        }
        by_id = {i: s | {"name": str(i)} for i, s in scored.items()}
        must = score(by_id, untied) if untied else {"n_species_evaluated": 0}
        plain = score(scored, self.train_images) if scored else {}
        for key in must:
            if key.endswith("_train_imgs"):
                must[key] //= 1000
            elif key.endswith("_correlation"):
                must[key] = plain[key]
                column = key.removesuffix("_train_count_correlation")
                images = [self.train_images[scored[i]["name"]] for i in trained]
                ap = [scored[i][column] for i in trained]
                if min(max(images) - min(images), max(ap) - min(ap)) == 0:
                    self._undefined(must, key, 0.0)
                elif max(ap) - min(ap) < ROUNDING:
                    # the evaluator's correlation of rounding errors is arbitrary
                    self._undefined(must, key, must[key])
        if len(scored) < len(everyone):
            self.used["2: scored species only"] += 1
        elif len({self.train_images[scored[i]["name"]] for i in trained}) < len(trained):
            self.used["3: ties of training images by category id"] += 1
        else:
            # no deviation applies: the evaluator's values, except for an undefined correlation
            for key, value in must.items():
                assert value is None or math.isclose(value, reference[key], abs_tol=TOLERANCE), key
            assert must.keys() == reference.keys()
        blocks["class_imbalance"] = must

    def _summary(self, raw):
        splits = raw["per_split"]
        summary = raw["summary"]
        for key in [key for key in summary if key.endswith("_nan")]:
            del summary[key]
            self.used["7: a blank band is ignored"] += 1
        # deviation 2: the evaluator's own gap, over species scored in both splits
        scored = copy.deepcopy(self.raw["per_split"])
        for blocks in scored.values():
            kept = {i: s for i, s in sorted(blocks["per_species"].items()) if s["n_gt"]}
            self.used["2: scored species only"] += len(kept) < len(blocks["per_species"])
            blocks["per_species"] = kept
        again = yardstick.module().compute_summary(scored)
        for key in OTHERS_OF_SUMMARY[:3]:
            summary[key] = again.get(key)
        if "iid_test" in splits and "inat_test" in splits and not summary[OTHERS_OF_SUMMARY[2]]:
            summary[OTHERS_OF_SUMMARY[2]] = 0
        for key in OTHERS_OF_SUMMARY[3:]:
            summary.setdefault(key, None)

        iid = splits.get("iid_test")
        for key, (split, block, name) in GAPS.items():
            sides = [s[block][name] if s else None for s in (iid, splits.get(split))]
            self._gap(summary, key, sides)
        bands = splits.get("semantic_ood", {}).get("ood_by_band", {}).get("by_band", {})
        for key, name in BAND_GAPS.items():
            sides = [bands.get(b, {}).get(name) for b in ("near_genus", "far_tribe")]
            self._gap(summary, key, sides)
        raw["headline"] = {
            "iid_test.coco.AP_50_95": iid["coco"]["AP_50_95"] if iid else None,
            "inat_test.coco.AP_50_95": (
                splits["inat_test"]["coco"]["AP_50_95"] if "inat_test" in splits else None
            ),
            "semantic_ood.class_agnostic.AR_100": (
                splits["semantic_ood"]["class_agnostic"]["class_agnostic_AR_100"]
                if "semantic_ood" in splits
                else None
            ),
        }

    def _gap(self, summary, key, sides):
        """Deviation 1 for differences: undefined if either value is."""
        if None in sides:
            self.used["1: undefined is null"] += key in summary
            summary[key] = None

    def _detections(self, raw):
        """Deviation 8: image order, within the evaluator's order of splits."""
        records = raw["_detection_records"]
        place = {split: at for at, split in enumerate(raw["per_split"])}
        ordered = sorted(records, key=lambda r: (place[r["split"]], r["image_id"]))
        self.used["8: detections in image order"] += ordered != records or not records
        raw["_detection_records"] = ordered


def _ids_of_band(case, name, listed):
    """The category ids of the band that semantic_ood lists."""
    names = {c["id"]: c["name"] for c in truth_of(case, "semantic_ood")["categories"]}
    with (case.reference / "species_taxonomy.csv").open(newline="") as stream:
        band = {
            row["scientificName"]: row["distance_band_vs_trainable"]
            for row in csv.DictReader(stream)
        }
    return {i for i in listed if band.get(names[i]) == name}


# --------------------------------------------------------------------------------------------
# Comparing
# --------------------------------------------------------------------------------------------


@dataclass
class Comparison:
    """Counts values and collects differences."""

    n_values: int = 0
    differences: list = field(default_factory=list)
    used: Counter = field(default_factory=Counter)

    def tree(self, expected, found, path=""):
        """Compare every leaf of ``expected``; further keys of ``found`` are our own metrics."""
        if isinstance(expected, dict):
            if not isinstance(found, dict):
                self._differ(path, expected, found)
                return
            for key, value in expected.items():
                if str(key) not in found:
                    self._differ(f"{path}.{key}", value, "nothing")
                else:
                    self.tree(value, found[str(key)], f"{path}.{key}")
        elif isinstance(expected, list | tuple):
            if not isinstance(found, list | tuple) or len(found) != len(expected):
                self._differ(path, expected, found)
                return
            for at, (value, other) in enumerate(zip(expected, found, strict=True)):
                self.tree(value, other, f"{path}[{at}]")
        else:
            self.value(expected, found, path)

    def value(self, expected, found, path):
        """Compare one value: numbers to 1e-9, all else exactly; texts are not counted."""
        if isinstance(expected, str):
            if expected != found:
                self._differ(path, expected, found)
            return
        self.n_values += 1
        if expected is None or isinstance(expected, bool) or found is None:
            same = expected is found
        else:
            same = not isinstance(found, str) and abs(expected - found) <= TOLERANCE
        if not same:
            self._differ(path, expected, found)

    def _differ(self, path, expected, found):
        self.differences.append(f"{path}: expected {expected!r}, found {found!r}")


def compare(results, case, ours, files=None):
    """A comparison of the evaluator's ``results`` with ``ours``, the content of summary.json.

    ``files`` are the paths of the model's CSV files by suffix; they are compared with what the
    evaluator's own writers produce from the expectation.
    """
    comparison = Comparison()
    warnings = {split: list(r["warnings"]) for split, r in results["per_split"].items()}
    expectation = Expectation(copy.deepcopy(results), case)
    must = expectation.results
    comparison.used = expectation.used
    for split, blocks in must["per_split"].items():
        del blocks["warnings"]
        out_of_vocabulary = _out_of_vocabulary(warnings[split], case)
        note = [n for n in ours["per_split"][split]["notes"] if "out of vocabulary" in n]
        found = int(note[0].split()[0].replace(",", "")) if note else 0
        if case.on_invalid == "error":
            comparison.value(out_of_vocabulary, found, f"{split}.out of vocabulary")
    public = {
        split: {key: block for key, block in blocks.items() if not key.startswith("_")}
        for split, blocks in must["per_split"].items()
    }
    comparison.tree(public, ours["per_split"], "per_split")
    for split, blocks in public.items():
        # where the evaluator's keys depend on the data, ours must have no others
        for block in ("per_species", "class_imbalance"):
            keys = {str(key) for key in blocks[block]}
            comparison.value(
                True, keys == set(ours["per_split"][split][block]), f"{split}.{block} keys"
            )
        bands = set(blocks["hierarchical"]["per_band"])
        found = set(ours["per_split"][split]["hierarchical"]["per_band"])
        comparison.value(True, bands == found, f"{split}.hierarchical.per_band keys")
        if "ood_by_band" in blocks:
            bands = list(blocks["ood_by_band"]["by_band"])
            found = list(ours["per_split"][split]["ood_by_band"]["by_band"])
            comparison.value(True, bands == found, f"{split}.ood_by_band keys")
    comparison.tree(must["summary"], ours["summary"], "summary")
    comparison.value(True, must["summary"].keys() == ours["summary"].keys(), "summary keys")
    comparison.tree(must["headline"], ours["headline"], "headline")
    comparison.tree(must["config"], ours["config"], "config")
    if files is not None:
        _compare_files(must, public, files, comparison)
    return comparison


def _out_of_vocabulary(warnings, case):
    """Number of detections that the evaluator dropped because the split lacks the category."""
    counts = [int(w.split()[0]) for w in warnings if "invalid category_ids" in w]
    assert len(counts) <= 1, case
    return sum(counts)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def _number(text):
    if text == "":
        return None
    return {"True": True, "False": False}[text] if text in ("True", "False") else float(text)


def _compare_files(must, public, files, comparison):
    from benchmark_eval.results.registry import ALIASES

    our_name = {(block, alias): key for block, alias, key in ALIASES}
    writers = yardstick.module()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        model = files["summary.csv"].name.removesuffix("_summary.csv")
        summary = rows_of(
            writers.write_summary_csv({**must, "per_split": public}, place, model).read_text()
        )
        species = rows_of(writers.write_per_species_csv(must, place, model).read_text())
        detections = rows_of(writers.write_detections_csv(must, place, model).read_text())

    ours = {
        (row["model"], row["split"], row["category"], row["metric"]): row["value"]
        for row in rows_of(files["summary.csv"].read_text())
    }
    written = defaultdict(dict)
    for row in summary:
        block = row["category"]
        name = our_name.get((block, row["metric"]), row["metric"])
        path = (row["model"], row["split"], block, name)
        if path in ours:
            comparison.value(_number(row["value"]), _number(ours[path]), f"summary.csv {path}")
        else:
            comparison.value(True, False, f"summary.csv has no {path}")
        written[path] = True
    for split, blocks in [*public.items(), ("ALL", {"summary": must["summary"]})]:
        for block, content in blocks.items():
            if not isinstance(content, dict):
                continue
            for key, value in content.items():
                if value is None:
                    path = (model, split, block, our_name.get((block, key), key))
                    comparison.value(None, _number(ours[path]), f"summary.csv {path}")

    found = rows_of(files["per_species.csv"].read_text())
    _compare_rows(
        species, found, "per_species.csv", comparison, texts=("model", "split", "species")
    )
    header = files["detections.csv"].read_text().split("\n")[0].split(",")
    found = rows_of(files["detections.csv"].read_text())
    texts = ("split", "pred_species", "gt_species", "pred_genus", "gt_genus", "band")
    _compare_rows(detections, found, "detections.csv", comparison, texts=texts)
    if detections:
        comparison.value(True, list(detections[0]) == header, "detections.csv header")


def _compare_rows(expected, found, file, comparison, texts):
    comparison.value(len(expected), len(found), f"{file}: number of rows")
    for at, (row, other) in enumerate(zip(expected, found, strict=False)):
        for key, cell in row.items():
            path = f"{file} row {at} {key}"
            if key in texts:
                comparison.value(cell, other.get(key), path)
            else:
                comparison.value(_number(cell), _number(other.get(key, "")), path)


# --------------------------------------------------------------------------------------------
# Running ours
# --------------------------------------------------------------------------------------------


def run_ours(case, output, engine="fast", model="model"):
    """Evaluate a case to files; returns the content of summary.json and the files by suffix.

    The package is imported here, so that a mutant can replace it.
    """
    from benchmark_eval.results.writers import model_files
    from benchmark_eval.scoring.evaluate import evaluate_to_files

    evaluate_to_files(
        benchmark=case.benchmark,
        predictions_dir=case.predictions,
        output_dir=output,
        model_name=model,
        splits=case.splits,
        iou=case.iou,
        engine=engine,
        on_invalid=case.on_invalid,
    )
    files = model_files(output, model)
    return json.loads(files["summary.json"].read_text()), files


def ours_of(case):
    """The result of ``run_evaluation`` for a case, without files."""
    from benchmark_eval import run_evaluation

    options = {"iou": case.iou, "on_invalid": case.on_invalid}
    return run_evaluation(case.benchmark, case.predictions, case.splits, quiet=True, **options)


def run_yardstick(case):
    """The benchmark evaluator's results for a case."""
    return yardstick.run(case.reference, case.reference_predictions, case.splits, case.iou)
