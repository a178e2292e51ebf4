"""``<model>_report.txt``."""

import csv
import re

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats
from support.factories import evaluation

from benchmark_eval import evaluate_to_files, make_synthetic
from benchmark_eval.results.model_report import WIDTH, render_text
from benchmark_eval.results.schema import Confusion, load_summary

SPLITS = ("iid_test", "inat_test", "semantic_ood")


def flat(text):
    """The text without its line breaks."""
    return " ".join(text.split())


def report(result):
    return flat(render_text(result))


def with_recall(result, split, n_gt, n_tp, open_vocabulary):
    """The result with these counts and open-vocabulary recall on a split."""
    block = replace(
        result.per_split[split].decomposition,
        n_gt=n_gt,
        n_matched_tp=n_tp,
        detection_recall=n_tp / n_gt,
        detection_recall_open_vocabulary=open_vocabulary / n_gt,
    )
    return with_split(result, split, decomposition=block)


def with_split(result, split, **changes):
    splits = {**result.per_split, split: replace(result.per_split[split], **changes)}
    return replace(result, per_split=splits)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A model on a synthetic benchmark: its result, its report, and its summary.csv."""
    folder = tmp_path_factory.mktemp("real")
    made = make_synthetic(folder / "data", scale=0.05, detections_per_specimen=3, jobs=1)
    evaluate_to_files(
        benchmark=made.benchmark_dir,
        predictions_dir=made.predictions_dir / "alder_gu_kall_s0",
        output_dir=folder / "out",
        model_name="m",
    )
    with (folder / "out/m_summary.csv").open(newline="") as stream:
        rows = {
            (r["split"], r["category"], r["metric"]): r["value"] for r in csv.DictReader(stream)
        }
    text = (folder / "out/m_report.txt").read_text()
    return load_summary(folder / "out/m_summary.json"), text, rows


def section(text, title):
    """The lines of a section."""
    return re.search(rf"^{title.upper()} -+\n(.*?)\n(?:\n|\Z)", text, re.M | re.S)[1].split("\n")


def cells(lines, label):
    """The cells of a row of a table with one column per split."""
    (line,) = [line for line in lines if line.startswith(f"  {label}  ")]
    return [line[25 + 21 * i : 25 + 21 * (i + 1)].strip() for i in range(len(SPLITS))]


# ------------------------------------------------------------------ layout


def test_the_report_is_short_and_starts_with_the_bottom_line(real):
    _, text, _ = real
    lines = text.split("\n")
    assert 60 <= len(lines) <= 101
    assert max(map(len, lines)) <= WIDTH
    headings = re.findall(r"^([A-Z0-9. ]+) -+$", text, re.M)
    assert headings == [
        "BOTTOM LINE",
        "1. HEADLINE NUMBERS",
        "2. WHERE IT FAILS",
        "3. SPECIES",
        "CONFIDENCE AND UNSEEN SPECIES",
        "WARNINGS",
    ]
    assert "All metrics: m_summary.csv" in text


def test_the_report_is_computed_from_the_summary_alone(real):
    result, text, _ = real
    assert render_text(result) == text


# ------------------------------------------------------------------ numbers, read back


ROWS = {
    "AP@[.5:.95]": ("coco", "AP_50_95"),
    "AP@.5": ("coco", "AP_50"),
    "class-agnostic AP@.5": ("class_agnostic", "AP_50"),
    "class-agnostic AR@100": ("class_agnostic", "AR_100"),
    "detected": ("decomposition", "detection_recall"),
    "correct, of detected": ("decomposition", "classification_given_detection_acc"),
    "detected and correct": ("decomposition", "species_recall"),
    "n specimens": ("decomposition", "n_gt"),
    "n images": ("prediction_density", "n_images"),
}


@pytest.mark.parametrize("label", ROWS)
def test_the_headline_numbers_are_those_of_the_summary(real, label):
    _, text, rows = real
    by_construction = label.startswith("AP") or "correct" in label
    for split, cell in zip(SPLITS, cells(section(text, "1. Headline numbers"), label), strict=True):
        if split == "semantic_ood" and by_construction:
            assert cell == "0 by construction"
            continue
        value = float(rows[split, *ROWS[label]])
        shown = cell.split(" [")[0]
        assert shown == (f"{value:,.0f}" if label.startswith("n ") else f"{value:.3f}")


def test_the_intervals_cover_species_by_hand(real):
    result, text, _ = real
    lines = section(text, "1. Headline numbers")
    for split, cell in zip(SPLITS[:2], cells(lines, "AP@[.5:.95]"), strict=False):
        values = [s.AP_50_95 for s in result.per_split[split].per_species.values() if s.n_gt]
        half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
        low, high = (np.clip(np.mean(values) + sign * half, 0, 1) for sign in (-1, 1))
        assert cell.endswith(f"[{low:.3f}, {high:.3f}]")


def test_the_interval_of_a_share_by_hand(real):
    """Bell and McCaffrey's, from the matrices of its definition."""
    result, text, _ = real
    lines = section(text, "1. Headline numbers")
    for split, cell in zip(SPLITS, cells(lines, "detected"), strict=True):
        scored = [s for s in result.per_split[split].per_species.values() if s.n_gt]
        n = np.array([s.n_gt for s in scored], float)
        found = np.array([s.n_matched_tp for s in scored], float)
        h, r = n / n.sum(), found.sum() / n.sum()
        variance = (h**2 * (found / n - r) ** 2 / (1 - h)).sum()
        g = np.diag(h / np.sqrt(1 - h)) @ (np.eye(len(h)) - np.outer(np.ones(len(h)), h))
        q = g @ g.T
        df = max(1, np.trace(q) ** 2 / (q**2).sum())
        half = stats.t.ppf(0.975, df) * np.sqrt(variance) / (r * (1 - r))
        low, high = (1 / (1 + np.exp(-(np.log(r / (1 - r)) + sign * half))) for sign in (-1, 1))
        assert cell == f"{r:.3f} [{low:.3f}, {high:.3f}]"


ERRORS = {
    "correct": "correct",
    "wrong name, same genus": "wrong_name_congener",
    "wrong name, same tribe": "wrong_name_same_tribe",
    "wrong name, other": "wrong_name_other",
    "poor box": "poor_box",
    "poor box, wrong name": "both",
    "duplicate": "duplicate",
    "background": "background",
    "missed specimen": "missed",
}


@pytest.mark.parametrize("label", ERRORS)
def test_the_errors_are_those_of_the_summary(real, label):
    _, text, rows = real
    key = ERRORS[label]
    for split, cell in zip(SPLITS, cells(section(text, "2. Where it fails"), label), strict=True):
        n = rows.get((split, "errors", f"{key}.n_operating"))
        if n is None:
            assert cell == "-"
            continue
        per_100 = float(rows[split, "errors", f"{key}.per_100_images"])
        assert cell == f"{int(n):,} ({per_100:.1f})"


def test_confidence_and_novelty_are_those_of_the_summary(real):
    result, text, rows = real
    text = flat("\n".join(section(text, "Confidence and unseen species")))
    for split in SPLITS:
        n = int(rows[split, "calibration", "n_predictions"])
        above = int(rows[split, "operating_point", "at_0.50.n_detections"])
        ece = float(rows[split, "calibration", "ECE"])
        detections = "detection" if n == 1 else "detections"
        assert f"ECE {ece:.3f} over {n:,} {detections}, {above:,} of them at 0.5 or above" in text
    auroc = float(rows["ALL", "summary", "novelty_det_AUROC"])
    fpr = float(rows["ALL", "summary", "novelty_det_FPR@95TPR"])
    assert f"novelty AUROC {auroc:.3f} (0.5: chance), FPR at 95 % TPR {fpr:.3f}" in text
    near = result.per_split["semantic_ood"].ood_by_band.by_band["near_genus"]
    assert (
        f"near (genus known): AR@100 {near.class_agnostic_AR_100:.3f}, genus "
        f"{near.correct_genus:.3f}, tribe {near.correct_tribe:.3f} correct"
    ) in text
    assert "mid (tribe known): AR@100" in text
    assert re.search(
        r"far \(tribe unknown\): AR@100 \d.\d{3}, genus and tribe 0 by construct", text
    )


def test_a_model_without_an_operating_confidence(real):
    result, _, _ = real
    threshold = replace(result.operating_threshold, confidence=None, source="no true positives")
    result = replace(result, operating_threshold=threshold)
    for split in SPLITS:
        block = result.per_split[split].errors
        names = [
            n for n in block.__struct_fields__ if n not in ("background_near_crowd", "on_crowd")
        ]
        undefined = {
            name: replace(found, n_operating=None, per_100_images=None)
            for name in names
            if (found := getattr(block, name)) is not None and hasattr(found, "n")
        }
        result = with_split(result, split, errors=replace(block, **undefined))
    text = render_text(result)
    assert "no operating confidence (no true positives)" in text
    assert "Detections at any confidence" in text
    n = result.per_split["iid_test"].errors.missed.n
    assert cells(section(text, "2. Where it fails"), "missed specimen")[0] == f"{n:,}"


# ------------------------------------------------------------------ species


def of_species(values):
    """A result whose species on iid_test have these APs."""
    result = evaluation("m", 0.5)
    block = result.per_split["iid_test"]
    one = next(iter(block.per_species.values()))
    scores = {
        str(i): replace(one, name=f"Xa species{i:02}", AP_50_95=value, n_gt=10 + i)
        for i, value in enumerate(values)
    }
    return with_split(result, "iid_test", per_species=scores)


def test_worst_and_best_species():
    text = render_text(of_species([i / 20 for i in range(12)]))
    names = re.findall(r"^  (worst|best) +(Xa species\d+) +(\S+) +(\d+)", text, re.M)
    assert names == [
        *(("worst", f"Xa species{i:02}", f"{i / 20:.3f}", str(10 + i)) for i in range(5)),
        *(("best", f"Xa species{i:02}", f"{i / 20:.3f}", str(10 + i)) for i in range(11, 6, -1)),
    ]


def test_a_tie_that_does_not_fit_singles_out_no_species():
    text = report(of_species([0.1, 0.2, *[0.3] * 9, 0.9]))
    assert "worst Xa species00 0.100 10 1 1 worst Xa species01 0.200" in text
    names = "Xa species02, Xa species03, Xa species04, Xa species05 and 5 more"
    assert f"worst AP 0.300, 9 species tied: {names}" in text
    assert "best Xa species11 0.900" in text
    assert "best AP 0.300, 9 species tied" in text


def test_few_species_are_listed_once():
    text = render_text(of_species([0.1, 0.2, 0.3]))
    assert len(re.findall(r"Xa species", text)) == 3
    assert "worst" not in text


def confused(counts, *, same_genus=False, expected=None, n_correct=0):
    result = evaluation("m", 0.5)
    block = result.per_split["iid_test"]
    pairs = [
        Confusion(
            gt_species=f"T{i}", pred_species=f"P{i}", n=n, n_matched_tp=20, same_genus=same_genus
        )
        for i, n in enumerate(counts)
    ]
    species = {
        key: replace(score, n_correct_species=n_correct, n_correct_genus=n_correct)
        for key, score in block.per_species.items()
    }
    chance = replace(block.chance, expected_genus=expected)
    return with_split(result, "iid_test", confusions=pairs, per_species=species, chance=chance)


def test_the_most_frequent_confusion():
    text = report(confused([7, 3]))
    assert "most frequent confusion: T0 identified as P0, 7 of 20 detected." in text
    assert "same genus" not in text.split("3. SPECIES")[1]


def test_a_tie_of_confusions_is_a_tie():
    text = report(confused([3, 3, 3, 1]))
    assert (
        "most frequent confusions: 3 pairs tied at 3 specimens each (T0 identified as P0, T1 "
        "identified as P1 and 1 more)." in text
    )
    assert "at least 10 pairs tied at 2 specimens each" in report(confused([2] * 10))
    assert "no pair of species is confused more than once" in report(confused([1, 1, 1]))


def test_congeners_are_not_counted_where_none_is_predicted():
    assert "congener" not in report(confused([3], expected=0.0))
    assert "congener" not in report(confused([3], expected=None))
    # 5 detected, none of them with the correct species or genus
    assert "Misidentified as a congener: 0 of 5 (0 %; by chance 20 %)." in report(
        confused([3], expected=0.2)
    )


def test_no_confusion_where_everything_is_identified():
    assert "in-distribution: no detected specimen is misidentified." in report(evaluation("m", 0.5))


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("n_gt", "n_tp", "open_vocabulary", "text"),
    [(4, 0, 1, "25 %"), (8, 0, 8, "100 %"), (5000, 0, 1, "0.02 %"), (1000, 0, 999, "99.9 %")],
)
def test_open_vocabulary_recall_is_printed_as_other_percentages(n_gt, n_tp, open_vocabulary, text):
    result = with_recall(evaluation("m", 0.25), "inat_test", n_gt, n_tp, open_vocabulary)
    assert f" {text} of specimens detected if out-of-vocabulary detections" in report(result)
    assert f"0 % of {n_gt:,} specimens detected; 100 % missed" in report(result)


def test_percentages_have_one_format():
    text = render_text(with_recall(evaluation("m", 0.25), "inat_test", 3, 1, 2))
    assert len(re.findall(r"\d %", text)) > 5
    assert re.findall(r"\d%", text) == []


def test_percentages_and_n_are_not_broken(real):
    assert not re.search(r"^\s*%", real[1], re.M)
    assert not re.search(r"\bn( =)?$", real[1], re.M)


def test_warnings_are_announced_at_the_top_and_listed_at_the_end():
    warnings = [("iid_test", f"warning number {i}") for i in range(10)]
    result = evaluation("m", 0.5, warnings=warnings, notes=[("inat_test", "a note")])
    text = render_text(result)
    top, _, end = text.partition("1. HEADLINE")
    assert "10 warnings at the end: the numbers may be wrong." in top
    assert "WARNING: in-distribution: warning number 0" in end
    assert "WARNING: in-distribution: 2 more warnings in m_summary.json" in end
    assert "note: field photographs: a note" in end
    assert "arning" not in render_text(evaluation("m", 0.5))


@pytest.mark.parametrize("splits", [*((split,) for split in SPLITS), SPLITS[1:]])
def test_reports_of_some_splits(splits):
    text = render_text(evaluation("m", 0.5, splits=splits))
    assert ("in-distribution" in text) == ("iid_test" in splits)
    assert max(map(len, text.split("\n"))) <= WIDTH


def test_a_model_without_any_defined_metric():
    text = render_text(evaluation("m", None))
    assert "n/a" in text
    assert "no true or false positives" in text


def test_long_and_hostile_names():
    result = of_species([0.1, 0.2])
    block = result.per_split["iid_test"].per_species
    name = "Ips \x1b[2J" + "x" * 300
    scores = {key: replace(score, name=name) for key, score in block.items()}
    text = render_text(with_split(result, "iid_test", per_species=scores))
    assert text.replace("\n", "").isprintable()
    assert max(map(len, text.split("\n"))) < WIDTH + 10


def test_the_most_frequent_error_and_its_tie(real):
    # every type of error occurs once at the operating confidence
    text = report(evaluation("m", 0.5))
    tied = "poor box and duplicate and background and missed specimen, 1 of 4 each, tied"
    assert f"unseen species: {tied}" in text
    result, printed, _ = real
    mistakes = {
        label: getattr(result.per_split["inat_test"].errors, key).n_operating
        for label, key in ERRORS.items()
        if key != "correct"
    }
    most = max(mistakes, key=lambda label: mistakes[label])
    total = sum(mistakes.values())
    assert f"field photographs: {most}, {mistakes[most]} of {total}" in flat(printed)
