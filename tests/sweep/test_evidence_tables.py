"""The tables from the evidence, recomputed from detections.csv and the annotations.

Nothing here reads the evidence or calls the functions that made the tables: shares, intervals,
confusion, reliability and novelty are computed again by their formulas.
"""

import math
from collections import Counter, defaultdict
from functools import cache
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import t
from support.evaluated_sweep import (
    BANDS,
    CONDITIONS,
    CONFUSED,
    GU,
    KNOWN,
    SEEDS,
    SPLITS,
    TA,
    TARGETS,
    UNSEEN,
    band_of,
    build,
)
from support.layout import species

from benchmark_eval import read_aggregated

NUMBER = {species(n): n for n in (*KNOWN, *UNSEEN)}
STRATA = ("1", "2 to 10", ">10")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return build(tmp_path_factory.mktemp("sweep") / "s")


@pytest.fixture(scope="module")
def seen(place):
    """Everything by split: strata of images, scored specimens, and the detections of each model."""
    return Seen(place)


class Seen:
    def __init__(self, place):
        self.place = place
        self.stratum, self.scored, self.images = {}, {}, {}
        for split in SPLITS:
            truth = place.truth(split)
            size = Counter(row["image_id"] for row in truth)
            self.stratum[split] = {
                image: STRATA[0] if n == 1 else STRATA[1] if n <= 10 else STRATA[2]
                for image, n in size.items()
            }
            some = [row for row in truth if not row["iscrowd"]]
            self.scored[split] = Counter(
                (row["category_id"], self.stratum[split][row["image_id"]]) for row in some
            )
            self.images[split] = {(row["image_id"], row["category_id"]) for row in some}
        self.detections = {}
        for model, *_ in place.models:
            for row in place.rows(model, "detections"):
                key = model, row["split"]
                self.detections.setdefault(key, []).append(row)

    @cache  # noqa: B019  (one sweep per module)
    def hits(self, model, split):
        """True positives: (true species, predicted species, score, stratum)."""
        return [
            (
                NUMBER[row["gt_species"]],
                NUMBER[row["pred_species"]],
                float(row["score"]),
                self.stratum[split][int(row["image_id"])],
            )
            for row in self.detections[model, split]
            if row["is_tp"] == "1"
        ]

    @cache  # noqa: B019  (one sweep per module)
    def threshold(self, model):
        return self.place.summary(model)["operating_threshold"]["confidence"]

    @cache  # noqa: B019  (one sweep per module)
    def n_scored(self, split, number, stratum=""):
        return sum(
            n for (s, g), n in self.scored[split].items() if s == number and stratum in ("", g)
        )


def number(cell):
    return None if cell == "" else float(cell)


def close(cell, value, tolerance=1e-9):
    if value is None or cell == "":
        return value is None and cell == ""
    return math.isclose(float(cell), value, rel_tol=tolerance, abs_tol=tolerance)


def cochran(parts):
    """The mean of t quantiles weighted by variances: parts of (variance, df)."""
    total = sum(v for v, _ in parts)
    return sum(v * t.ppf(0.975, df) for v, df in parts) / total


def pooled(found, sizes):
    """Share and interval of statistics.md from (species, seeds) counts, with full matrices."""
    found, sizes = np.array(found, float), np.array(sizes, float)
    some = sizes.sum(1) > 0
    found, sizes = found[some], sizes[some]
    n, r = sizes.sum(1), found.shape[1]
    share = found.sum() / n.sum()
    result = {"share": share, "kish": n.sum() ** 2 / (n**2).sum(), "S": len(n)}
    if len(n) > 1:
        left = [(found.sum() - found[j].sum()) / (n.sum() - n[j]) for j in range(len(n))]
        result |= {"loo": (min(left), max(left))}
    if len(n) < 3 or share in (0, 1):
        return result | {"ci": None}
    h, e = n / n.sum(), found.sum(1) / n - share
    g = np.diag(h / np.sqrt(1 - h)) @ (np.eye(len(h)) - np.outer(np.ones(len(h)), h))
    q = g @ g.T
    df = max(1, np.trace(q) ** 2 / (q**2).sum())
    over_species = (h**2 * e**2 / (1 - h)).sum()
    by_seed = found.sum(0) / sizes.sum(0)
    over_seeds = by_seed.var(ddof=1) / r
    se = math.sqrt(over_species + over_seeds)
    half = cochran([(over_species, df), (over_seeds, r - 1)]) * se / (share * (1 - share))
    return result | {"ci": (expit(logit(share) - half), expit(logit(share) + half))}


def crossed(table):
    """Mean and interval over species and seeds of statistics.md."""
    y = np.array(table, float)
    s, r = y.shape
    ms_species, ms_seed = r * y.mean(1).var(ddof=1), s * y.mean(0).var(ddof=1)
    rest = y - y.mean(1)[:, None] - y.mean(0) + y.mean()
    ms_rest = (rest**2).sum() / ((s - 1) * (r - 1))
    v = max(ms_species + ms_seed - ms_rest, ms_species, ms_seed)
    half = cochran([(ms_species, s - 1), (ms_seed, r - 1)]) * math.sqrt(v / (s * r))
    return y.mean(), y.mean() - half, y.mean() + half


def auroc_of(negative, positive):
    """The share of pairs in which the positive one is higher; a tie counts one half."""
    difference = np.asarray(positive)[:, None] - np.asarray(negative)
    return (np.sign(difference).mean() + 1) / 2


def condition_of(row):
    return row["architecture"], row["regime"], row["k_or_p"]


def counted(seen, split, models, share, band, stratum):
    """Numerator and denominator of a share, (species, seeds) each, of the scored species."""
    numbers = [
        n
        for n in (*KNOWN, *UNSEEN)
        if seen.n_scored(split, n) and band in ("", band_of(n) if n > 100 else "-")
    ]
    above, below = np.zeros((2, len(numbers), len(models)))
    for at, model in enumerate(models):
        hits = [h for h in seen.hits(model, split) if stratum in ("", h[3])]
        for row, n in enumerate(numbers):
            own = [h for h in hits if h[0] == n]
            right = sum(h[1] == n for h in own)
            genus = sum(species(h[1]).split()[0] == _genus(n) for h in own)
            scored = seen.n_scored(split, n, stratum)
            above[row, at], below[row, at] = {
                "detection_recall": (len(own), scored),
                "classification_given_detection_acc": (right, len(own)),
                "species_recall": (right, scored),
                "correct_genus": (genus, len(own)),
            }[share]
    return above, below


def _genus(n):
    return f"Genus{(n - 1) // 3}" if n < 104 else f"Other{n // 4}"


def test_data_frames_have_the_cells_of_the_csv_files(place):
    for name, frame in read_aggregated(place.folder / "out").items():
        rows = place.table(name)
        assert len(frame) == len(rows) > 0, name
        for column in frame:
            texts = [row[column] for row in rows]
            for text, value in zip(texts, frame[column].tolist(), strict=True):
                is_missing = value is pd.NA or value != value
                assert text == "" if is_missing else text == value or float(text) == value


def test_shares_and_their_intervals(place, seen):
    rows = place.table("pooled_shares")
    places = Counter((r["split"], r["band"], r["stratum"]) for r in rows)
    assert {b for s, b, _ in places if s == "semantic_ood"} == {"", *BANDS}
    assert {g for _, _, g in places} == {"", *STRATA}
    n_checked, left_out = 0, set()
    for row in rows:
        models = place.of(*condition_of(row))
        split, band, stratum = row["split"], row["band"], row["stratum"]
        images = {
            image
            for image, n in seen.images[split]
            if stratum in ("", seen.stratum[split][image]) and band in ("", band_of(n))
        }
        assert int(row["n_images"]) == len(images)
        assert int(row["n_seeds"]) == len(SEEDS)
        if row["share"].endswith("_open_vocabulary"):
            of = [place.summary(m)["per_split"][split]["decomposition"] for m in models]
            if not row["share"].startswith("classification"):  # equal denominators
                mean = np.mean([d[row["share"]] for d in of])
                assert close(row["pooled"], mean)
            continue
        above, below = counted(seen, split, models, row["share"], band, stratum)
        expected = pooled(above, below)
        n_checked += 1
        assert close(row["pooled"], expected["share"]), row
        assert int(row["n_species"]) == expected["S"]
        assert close(row["n_effective_species"], expected["kish"])
        assert close(row["leave_one_out_low"], expected["loo"][0])
        assert close(row["leave_one_out_high"], expected["loo"][1])
        is_small = stratum != "" and len(images) < 10
        if expected["ci"] is None or is_small:
            assert row["ci95_low"] == row["ci95_high"] == ""
            assert row["reason"]
        else:
            assert close(row["ci95_low"], expected["ci"][0], 1e-6), row
            assert close(row["ci95_high"], expected["ci"][1], 1e-6)
        assert (row["bootstrap_low"] == "") == (expected["share"] in (0, 1) or expected["S"] < 3)
        complete = (below > 0).all(axis=1)
        there = [
            seen.n_scored(split, n, stratum) > 0
            for n in (*KNOWN, *UNSEEN)
            if seen.n_scored(split, n) and band in ("", band_of(n) if n > 100 else "-")
        ]
        n_left_out = sum(there) - int(complete.sum())
        assert int(row["species_mean_n_left_out"]) == n_left_out
        left_out.add(n_left_out / sum(there) > 0.1)
        if n_left_out / sum(there) > 0.1:
            assert row["species_mean_no_verdict"], row
        shares = above[complete] / below[complete]
        if len(shares) >= 3 and np.ptp(shares):
            mean, low, high = crossed(shares)
            assert close(row["species_mean"], mean)
            assert close(row["species_mean_ci95_low"], max(0, low), 1e-6)
            assert close(row["species_mean_ci95_high"], min(1, high), 1e-6)
    assert n_checked > 300
    fixed = [r for r in rows if r["split"] == "semantic_ood" and "species" in r["share"]]
    assert fixed == []  # no unseen species can be identified
    bands = {r["band"] for r in rows if r["share"] == "correct_genus"}
    assert bands == {"", "near_genus"}
    of_unseen = {r["band"] for r in rows if r["split"] == "semantic_ood" and "genus" in r["share"]}
    assert of_unseen == {"near_genus"}  # that of all would mix in zeros by construction
    assert left_out == {True, False}


def test_bands_at_equal_density_hide_no_gap_and_invent_none(place, seen):
    """Far species are only denser: the gap at any density is large, within strata it is not."""
    split = "semantic_ood"
    rows = place.table("band_gaps")
    assert {r["other_band"] for r in rows} == {"mid_tribe", "far_tribe"}
    for row in rows:
        models = place.of(*condition_of(row))
        bands = {"near": "near_genus", "other": row["other_band"]}
        numbers = {k: [n for n in UNSEEN if band_of(n) == b] for k, b in bands.items()}
        used = [
            g
            for g in STRATA
            if all(
                len({i for i, n in seen.images[split] if n in of and seen.stratum[split][i] == g})
                >= 10
                and sum(seen.n_scored(split, n, g) > 0 for n in of) >= 2
                for of in numbers.values()
            )
        ]
        sizes = {g: sum(seen.n_scored(split, n, g) for n in numbers["near"]) for g in STRATA}
        coverage = sum(sizes[g] for g in used) / sum(sizes.values())
        assert close(row["coverage"], coverage)
        if coverage < 0.8:
            assert row["near_minus_other"] == ""
            assert "less than 80 %" in row["reason"]
            continue
        assert row["strata"] == "; ".join(used)
        for side, of in numbers.items():
            share = 0
            for g in used:
                hits = [Counter(h[0] for h in seen.hits(m, split) if h[3] == g) for m in models]
                found = [sum(c[n] for c in hits) / len(models) for n in of]
                scored = [seen.n_scored(split, n, g) for n in of]
                each = [f / s for f, s in zip(found, scored, strict=True) if s]
                own = np.mean(each) if row["weighting"] == "species" else sum(found) / sum(scored)
                share += own * sizes[g] / sum(sizes[g] for g in used)
            assert close(row[side], share)
        assert close(row["near_minus_other"], float(row["near"]) - float(row["other"]))
        assert float(row["ci95_low"]) < 0 < float(row["ci95_high"])
    at_any = {
        r["band"]: float(r["pooled"])
        for r in place.table("pooled_shares")
        if (*condition_of(r), r["split"]) == ("b", GU, "all", split)
        and (r["stratum"], r["share"]) == ("", "detection_recall")
    }
    assert at_any["near_genus"] - at_any["far_tribe"] > 0.02
    questions = [r for r in place.table("comparisons") if r["question"] == "bands"]
    far = [r for r in questions if r["b"].endswith("far_tribe")]
    assert {r["verdict"] for r in far} == {"inconclusive"}
    assert all(int(r["n_tests"]) == len([x for x in far if x["scope"] == r["scope"]]) for r in far)


def best_of(place, architecture):
    rows = [r for r in place.table("learning_curves") if r["architecture"] == architecture]
    return condition_of(max(rows, key=lambda r: float(r["iid_AP_50_95_mean"])))


def test_confusions_labels_and_what_is_named(place, seen):
    rows = place.table("confusions")
    assert {condition_of(r) for r in rows} == {best_of(place, name) for name in "ab"}
    assert {r["threshold"] for r in rows} == {"operating"}
    found = {
        (condition_of(r), r["split"], r["true_species"], r["predicted_species"]): r for r in rows
    }
    n_pairs = 0
    for name in "ab":
        condition = best_of(place, name)
        for split in SPLITS:
            models = place.of(*condition)
            counts = [
                Counter(
                    (h[0], h[1])
                    for h in seen.hits(model, split)
                    if h[2] >= seen.threshold(model) and h[0] != h[1]
                )
                for model in models
            ]
            total = sum(counts, Counter())
            n_pairs += sum(n >= 3 for n in total.values())
            for (true, predicted), n in total.items():
                if n < 3:  # fewer than one per seed
                    continue
                row = found[condition, split, species(true), species(predicted)]
                assert close(row["n"], n / 3)
                assert close(row["share"], n / 3 / seen.n_scored(split, true))
                agreeing = sum(c[true, predicted] >= 3 for c in counts)
                assert int(row["n_seeds_at_least_3"]) == agreeing
                of_true = [m for (a, _), m in total.items() if a == true]
                assert int(row["rank"]) == 1 + sum(m > n for m in of_true)
                named = agreeing >= 2 and of_true.count(n) == 1
                assert row["named"] == str(int(named))
                assert (row["reason"] == "") == named
    assert n_pairs == len(rows)
    planted = found[best_of(place, "a"), "iid_test", species(CONFUSED[0]), species(CONFUSED[1])]
    assert (planted["rank"], planted["named"], planted["relation"]) == ("1", "1", "same tribe")


def test_every_misidentified_specimen_is_counted_by_genus(place, seen):
    rows = place.table("genus_confusions")
    groups = {(condition_of(r), r["split"], r["threshold"]) for r in rows}
    assert groups
    for condition, split, threshold in groups:
        expected = Counter()
        models = place.of(*condition)
        for model in models:
            for true, predicted, score, *_ in seen.hits(model, split):
                if true != predicted and (threshold == "all" or score >= seen.threshold(model)):
                    expected[_genus(true), _genus(predicted)] += 1
        own = [
            r
            for r in rows
            if (condition_of(r), r["split"], r["threshold"]) == (condition, split, threshold)
        ]
        assert sum(float(r["n"]) for r in own) == pytest.approx(expected.total() / len(models))
        counts = Counter(round(float(r["n"]) * len(models)) for r in own)
        assert counts == Counter(expected.values())
        for row in own:
            assert close(row["share"], float(row["n"]) / int(row["n_specimens"]))


def test_labels_that_absorb_others(place, seen):
    rows = place.table("labels")
    for row in rows:
        models, split = place.of(*condition_of(row)), row["split"]
        n = NUMBER[row["label"]]
        hits = [
            [h for h in seen.hits(m, split) if row["group"] == "targets" or
             h[2] >= seen.threshold(m)]
            for m in models
        ]  # fmt: skip
        if row["group"] == "targets":
            hits = [[h for h in of if h[0] in TARGETS] for of in hits]
        given = sum(h[1] == n for of in hits for h in of)
        true = sum(h[0] == n for of in hits for h in of)
        right = sum(h[0] == h[1] == n for of in hits for h in of)
        assert close(row["n_given"], given / 3)
        assert close(row["n_true"], true / 3)
        assert close(row["n_right"], right / 3)
        assert close(row["given_per_true"], given / true if true else None)
        assert row["label_is_target"] == str(int(n in TARGETS))
    absorbing = [r for r in rows if r["group"] == "targets" and r["k_or_p"] == "0"]
    top = max(absorbing, key=lambda r: float(r["n_given"]))
    assert top["label"] == species(1)  # the first species that is no target
    assert {condition_of(r)[1:] for r in absorbing} == {(TA, "0")}


def test_relatives_are_confused_more_often_than_by_chance(place, seen):
    for row in place.table("confusion_by_chance"):
        models, split = place.of(*condition_of(row)), row["split"]
        of_taxon = _genus if row["taxon"] == "genus" else _tribe
        same, chance = Counter(), Counter()
        n_wrong = Counter()
        for model in models:
            hits = seen.hits(model, split)
            f = Counter(h[1] for h in hits)
            for true, predicted, *_ in hits:
                if true == predicted:
                    continue
                n_wrong[true] += 1
                same[true] += of_taxon(true) == of_taxon(predicted)
                others = sum(n for s, n in f.items() if s != true and of_taxon(s) == of_taxon(true))
                chance[true] += others / (len(hits) - f[true])
        assert int(row["n_misidentified"]) == sum(n_wrong.values())
        assert int(row["n_species"]) == len(n_wrong)
        assert close(row["observed"], sum(same.values()) / sum(n_wrong.values()))
        assert close(row["expected"], sum(chance.values()) / sum(n_wrong.values()))
        if row["reason"]:
            assert row["ci95_species_low"] == ""
            continue
        ratio = sum(same.values()) / sum(chance.values())
        assert close(row["enrichment"], ratio)
        logs = np.array([
            math.log((sum(same.values()) - same[s]) / (sum(chance.values()) - chance[s]))
            for s in n_wrong
        ])  # fmt: skip
        n = len(logs)
        half = t.ppf(0.975, n - 1) * math.sqrt((n - 1) ** 2 / n * logs.var(ddof=1))
        assert close(row["ci95_species_low"], ratio * math.exp(-half), 1e-6)
        assert close(row["ci95_species_high"], ratio * math.exp(half), 1e-6)


def _tribe(n):
    return f"Tribe{(n - 1) // 6}" if n < 109 else f"Away{n}"


def test_reliability_of_every_bin(place, seen):
    rows = place.table("reliability")
    key = ("architecture", "regime", "k_or_p", "split", "event", "threshold")
    curves = [
        (values, list(bins)) for values, bins in groupby(rows, key=lambda r: [r[k] for k in key])
    ]
    assert len(curves) == 2 * (3 + 3 + 1) * 2
    for (*condition, split, event, threshold), bins in curves:
        points = []  # (score, whether it happened)
        for model in place.of(*condition):
            low = seen.threshold(model) if threshold == "operating" else 0
            for row in seen.detections[model, split]:
                is_tp = row["is_tp"] == "1"
                if row["is_tp"] == "" or float(row["score"]) < low:
                    continue
                right = is_tp and row["pred_species"] == row["gt_species"]
                if event != "identified" or is_tp:
                    points.append((float(row["score"]), is_tp if event == "detected" else right))
        scores = np.array([score for score, _ in points])
        happened = np.array([value for _, value in points])
        assert sum(int(b["n"]) for b in bins) == len(points)
        for at, b in enumerate(bins):
            assert int(b["bin"]) == at
            last = at == len(bins) - 1
            lower, upper = float(b["lower"]), float(b["upper"])
            inside = (scores >= lower) & ((scores < upper) | (last & (scores <= upper)))
            assert int(b["n"]) == inside.sum()
            assert close(b["observed"], happened[inside].mean())
            assert close(b["mean_confidence"], scores[inside].mean(), 0.004)
            if b["ci95_low"]:
                low, high = float(b["ci95_low"]), float(b["ci95_high"])
                assert 0 <= low < float(b["observed"]) < high <= 1
        sizes = [int(b["n"]) for b in bins]
        assert 8 <= len(bins) <= 10
        assert max(sizes) < 2 * min(sizes) + 10


def test_risk_coverage_with_fallback_to_the_genus(place, seen):
    rows = place.table("risk_coverage")
    assert {r["split"] for r in rows} == {"iid_test", "inat_test"}
    for row in rows:
        models = place.of(*condition_of(row))
        by_seed = [seen.hits(model, row["split"]) for model in models]
        hits = [h for of in by_seed for h in of]
        named = [h for h in hits if h[2] >= float(row["confidence"])]
        assert int(row["n"]) == len(named)
        assert close(row["coverage"], len(named) / len(hits))
        assert close(row["wrong_species"], np.mean([h[0] != h[1] for h in named]))
        wrong = [
            h[0] != h[1] if h[2] >= float(row["confidence"]) else _genus(h[0]) != _genus(h[1])
            for h in hits
        ]
        assert close(row["wrong_with_fallback"], np.mean(wrong))
        if row["ci95_low"]:
            of = [n for n in KNOWN if any(h[0] == n for h in named)]
            cut = [[h for h in s if h[2] >= float(row["confidence"])] for s in by_seed]
            above = [[sum(h[0] == n != h[1] for h in s) for s in cut] for n in of]
            below = [[sum(h[0] == n for h in s) for s in cut] for n in of]
            low, high = pooled(above, below)["ci"]
            assert close(row["ci95_low"], low, 1e-6)
            assert close(row["ci95_high"], high, 1e-6)
    last = [r for r in rows if r["coverage"] == "1.0"]
    assert len(last) == 4
    assert all(r["wrong_species"] == r["wrong_with_fallback"] for r in last)


def test_novelty_by_band_and_density(place, seen):
    rows = place.table("novelty")
    assert len({(r["band"], r["stratum"]) for r in rows}) > 8
    reasons = set()
    for row in rows:
        auroc, fpr = [], []
        for model in place.of(*condition_of(row)):
            known = [1 - h[2] for h in seen.hits(model, "iid_test") if row["stratum"] in ("", h[3])]
            novel = [
                1 - h[2]
                for h in seen.hits(model, "semantic_ood")
                if row["stratum"] in ("", h[3]) and row["band"] in ("", band_of(h[0]))
            ]
            if known and novel:
                auroc.append(auroc_of(known, novel))
                fpr.append(np.mean(np.array(known) >= np.quantile(novel, 0.05)))
        assert int(row["n_seeds"]) == len(auroc)
        assert close(row["AUROC"], np.mean(auroc))
        assert close(row["FPR_95TPR"], np.mean(fpr))
        n_images = [
            len({
                image
                for image, n in seen.images[split]
                if row["stratum"] in ("", seen.stratum[split][image])
                and (split == "iid_test" or row["band"] in ("", band_of(n)))
            })
            for split in ("iid_test", "semantic_ood")
        ]  # fmt: skip
        few = min(int(row["n_known_species"]), int(row["n_novel_species"])) < 3
        is_small = row["stratum"] != "" and min(n_images) < 10
        reason = "fewer than 3 species" if few else "fewer than 10 images" if is_small else ""
        assert row["reason"] == reason
        assert (row["FPR_95TPR_ci95_species_low"] == "") == bool(reason)
        reasons.add(reason)
        if row["reason"] == "":
            assert 0 <= float(row["AUROC_ci95_species_low"]) < float(row["AUROC"])
            assert float(row["AUROC"]) < float(row["AUROC_ci95_species_high"]) <= 1
    assert reasons == {"", "fewer than 10 images"}
    whole = next(r for r in rows if r["band"] == r["stratum"] == "")
    summaries = [place.summary(m)["summary"] for m in place.of(*condition_of(whole))]
    assert close(whole["AUROC"], np.mean([s["novelty_det_AUROC"] for s in summaries]))
    assert close(whole["FPR_95TPR"], np.mean([s["novelty_det_FPR@95TPR"] for s in summaries]))


def test_the_bootstrap_of_novelty_against_copies_of_species(place, seen):
    """The same draws of species, with the true positives of a drawn species repeated."""
    from benchmark_eval.core.shares import species_draws

    row = next(r for r in place.table("novelty") if r["band"] == r["stratum"] == "")
    hits = [
        [seen.hits(model, split) for split in ("iid_test", "semantic_ood")]
        for model in place.of(*condition_of(row))
    ]
    known = sorted({h[0] for of, _ in hits for h in of})
    novel = sorted({h[0] for _, of in hits for h in of})
    a = species_draws(len(known), "known species")
    b = species_draws(len(novel), "unseen species")
    auroc, fpr = [], []
    for times_known, times_novel in zip(a, b, strict=True):
        values = []
        for of_known, of_novel in hits:
            x = np.repeat([1 - h[2] for h in of_known], [times_known[known.index(h[0])]
                          for h in of_known])  # fmt: skip
            y = np.repeat([1 - h[2] for h in of_novel], [times_novel[novel.index(h[0])]
                          for h in of_novel])  # fmt: skip
            least = np.sort(y)[::-1][math.ceil(0.95 * len(y)) - 1]
            values.append((auroc_of(x, y), np.mean(x >= least)))
        auroc.append(np.mean([v for v, _ in values]))
        fpr.append(np.mean([v for _, v in values]))
    for name, values in (("AUROC", auroc), ("FPR_95TPR", fpr)):
        low, high = (float(row[f"{name}_ci95_species_{side}"]) for side in ("low", "high"))
        assert [low, high] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=1e-9), name


def test_histograms_of_confidence(place, seen):
    rows = place.table("novelty_histograms")
    for (architecture, group), of in groupby(rows, key=lambda r: (r["architecture"], r["group"])):
        bins = list(of)
        scores = []
        for model in place.of(*best_of(place, architecture)):
            split = "iid_test" if group.startswith("known") else "semantic_ood"
            for true, predicted, score, _ in seen.hits(model, split):
                name = "known, correct" if true == predicted else "known, wrong"
                if group == (band_of(true) if true > 100 else name):
                    scores.append(score)
        counts, _ = np.histogram(scores, bins=20, range=(0, 1))
        assert [float(b["n"]) * 3 for b in bins] == pytest.approx(counts.tolist())
        assert sum(float(b["share"]) for b in bins) == pytest.approx(1)


def test_error_types_are_means_of_the_summaries(place):
    rows = place.table("error_types")
    assert len(rows) == 2 * len(CONDITIONS) * (9 + 9 + 4)
    for row in rows:
        models = place.of(*condition_of(row))
        found = [place.summary(m)["per_split"][row["split"]]["errors"] for m in models]
        for column, key in (("per_100_images", "per_100_images"), ("dAP_50", "dAP_50")):
            values = np.array([errors[row["error_type"]][key] for errors in found])
            assert close(row[column], values.mean())
            half = t.ppf(0.975, 2) * values.std(ddof=1) / math.sqrt(3)
            if values.std():
                low = max(values.mean() - half, 0 if column != "dAP_50" else -1)
                assert close(row[f"{column}_ci95_retraining_low"], low, 1e-6)
            else:
                assert row[f"{column}_ci95_retraining_low"] == ""
                none = column == "per_100_images" and not values.mean()
                expected = "none observed" if none else "no variation"
                assert row[f"{column}_reason"] == expected


def test_species_and_whom_not_to_rely_on(place, seen):
    rows = {int(r["category_id"]): r for r in place.table("species")}
    assert list(rows) == [*KNOWN, *UNSEEN]
    curves = defaultdict(dict)
    for row in place.table("species_curves"):
        curves[int(row["category_id"])][condition_of(row), row["split"]] = row
    train = Counter((r["category_id"], r["image_id"]) for r in place.truth("train"))
    best = [best_of(place, name) for name in "ab"]
    for n, row in rows.items():
        split = "iid_test" if n in KNOWN else "semantic_ood"
        key = "AP_50_95" if n in KNOWN else "detection_recall"
        assert row["role"] == ("known" if n in KNOWN else "unseen")
        assert row["genus"] == _genus(n)
        assert int(row["n_train_images"]) == len([1 for s, _ in train if s == n])
        for prefix, of in zip(("iid", "inat", "ood"), SPLITS, strict=True):
            assert int(row[f"{prefix}_n_specimens"]) == seen.n_scored(of, n)
            assert int(row[f"{prefix}_n_images"]) == sum(s == n for _, s in seen.images[of])
        sizes = [seen.n_scored(split, n, g) for g in STRATA]
        names = ("n_specimens_1", "n_specimens_2_to_10", "n_specimens_over_10")
        assert [int(row[name]) for name in names] == sizes
        assert row["stratum"] == STRATA[sizes.index(max(sizes))]
        level = {c: float(curves[n][c, split][key]) for c in best}
        condition = max(level, key=level.get)
        assert (row["best_architecture"], row["regime"], row["k_or_p"]) == condition
        models = place.of(*condition)
        if n in KNOWN:
            scored = seen.n_scored(split, n)
            values, operating, taken = [], [], []
            for model in models:
                own = {r["category_id"]: r for r in place.rows(model, "per_species")
                       if r["split"] == split}  # fmt: skip
                values.append(float(own[str(n)]["AP_50_95"]))
                hits = [h for h in seen.hits(model, split) if h[0] == n]
                hits = [h for h in hits if h[2] >= seen.threshold(model)]
                operating.append(sum(h[1] == n for h in hits) / scored)
                taken.append(Counter(h[1] for h in hits if h[1] != n))
            assert close(row["iid_AP_50_95"], np.mean(values))
            assert close(row["iid_species_recall_operating"], np.mean(operating))
            n_low = sum(v < 0.5 for v in operating)
            assert int(row["n_seeds_low_recall"]) == n_low
            absorbed = [s for s in KNOWN if sum(c[s] / scored >= 0.3 for c in taken) >= 2]
            assert row["do_not_rely"] == str(int(scored < 10 or n_low >= 2 or bool(absorbed)))
            total = sum(taken, Counter())
            top = sorted(s for s in total if total[s] == max(total.values()))
            assert row["confused_with"] == "; ".join(species(s) for s in top)
            first = min(
                (c for c in CONDITIONS if c[0] == GU), key=lambda c: float(c[1].replace("all", "9"))
            )
            smallest = curves[n][(condition[0], *first), split]
            assert row["global_uniform_smallest_k_or_p"] == "1"
            assert row["global_uniform_smallest_iid_AP_50_95"] == smallest["AP_50_95"]
        else:
            assert row["do_not_rely"] == ""
            assert row["iid_AP_50_95"] == ""
            assert close(row["ood_detection_recall"], level[condition])
    mark = rows[CONFUSED[0]]
    assert mark["do_not_rely"] == "1"
    assert "species recall below 0.5 in 3 of 3 seeds" in mark["do_not_rely_reason"]
    assert f"are labelled {species(CONFUSED[1])} in 3 of 3 seeds" in mark["do_not_rely_reason"]
    assert (mark["confused_named"], mark["confused_reason"]) == ("1", "")


@cache
def per_species(place, condition, split, key):
    """{species: values over seeds} of a condition."""
    found = defaultdict(list)
    for model in place.of(*condition):
        for row in place.rows(model, "per_species"):
            if row["split"] == split and row["AP_50_95"]:
                found[int(row["category_id"])].append(float(row[key]))
    return found


def test_species_curves_tiers_and_retention(place):
    images = Counter()
    for image, n in {(r["image_id"], r["category_id"]) for r in place.truth("train")}:
        images[n] += bool(image)
    for row in place.table("species_curves"):
        if row["split"] == "semantic_ood":
            assert row["AP_50_95"] == row["species_recall"] == ""
            continue
        values = per_species(place, condition_of(row), row["split"], "AP_50_95")
        values = values[int(row["category_id"])]
        assert close(row["AP_50_95"], np.mean(values))
        if np.ptp(values):
            half = t.ppf(0.975, 2) * np.std(values, ddof=1) / math.sqrt(3)
            assert close(row["AP_50_95_ci95_retraining_low"], max(0, np.mean(values) - half), 1e-6)
    for row in place.table("tiers"):
        values = per_species(place, condition_of(row), row["split"], row["metric"])
        ranked = sorted(values, key=lambda n: (images[n], n))
        rank = {n: at for at, n in enumerate(ranked, 1)}
        part = {"tail": lambda x: x <= 0.25, "head": lambda x: x > 0.75}
        part["medium"] = lambda x: 0.25 < x <= 0.75
        inside = [n for n in ranked if part[row["tier"]](rank[n] / len(ranked))]
        assert int(row["n_species"]) == len(inside)
        assert int(row["max_train_images"]) == max(images[n] for n in inside)
        assert close(row["mean"], np.mean([values[n] for n in inside]))
        if len(inside) >= 3:
            _, low, high = crossed([values[n] for n in inside])
            assert close(row["ci95_low"], max(0, low), 1e-6)
            assert close(row["ci95_high"], min(1, high), 1e-6)
    for row in place.table("retention"):
        if not row["metric"].startswith("AP"):
            continue
        iid, inat = (
            per_species(place, condition_of(row), split, row["metric"]) for split in SPLITS[:2]
        )
        shared = sorted(iid.keys() & inat.keys())
        a, b = (np.array([side[n] for n in shared]) for side in (iid, inat))
        assert int(row["n_species"]) == len(shared)
        assert close(row["gap"], (a - b).mean())
        _, low, high = crossed(a - b)
        assert close(row["gap_ci95_low"], max(-1, low), 1e-6)
        assert close(row["gap_ci95_high"], min(1, high), 1e-6)
        if a.mean() < 0.2:
            assert row["retention"] == ""
            assert row["retention_reason"] == "the in-distribution mean is below 0.2"
            continue
        ratio = b.sum() / a.sum()
        assert close(row["retention"], ratio)
        x, y = b.mean(1), a.mean(1)
        logs = np.log(x.sum() - x) - np.log(y.sum() - y)
        n = len(logs)
        half = t.ppf(0.975, n - 1) * math.sqrt((n - 1) ** 2 / n * logs.var(ddof=1))
        assert close(row["retention_ci95_species_low"], ratio * math.exp(-half), 1e-6)
        assert close(row["retention_ci95_species_high"], ratio * math.exp(half), 1e-6)


def test_gains_of_targets_and_the_share_that_they_close(place):
    rows = place.table("target_gains")
    assert {r["level"] for r in rows} == {"band", "species"}
    n_shares = 0
    for row in rows:
        split = row["split"]
        zero, at_k, every = (
            per_species(place, (row["architecture"], *c), split, "AP_50_95")
            for c in ((TA, "0"), (TA, row["k"]), (GU, "all"))
        )
        if row["level"] == "band":
            numbers = [n for n, band in TARGETS.items() if band == row["name"] and n in zero]
        else:
            numbers = [NUMBER[row["name"]]]
        z, k, a = (np.array([side[n] for n in numbers]) for side in (zero, at_k, every))
        assert close(row["AP"], k.mean())
        assert close(row["gain_of_all"], (a - z).mean())
        assert row["by_construction"] == str(int(row["k"] == "0"))
        if row["k"] == "0":
            assert row["gain"] == row["share_closed"] == ""
            assert row["reason"] == "fixed by construction"
            continue
        assert close(row["gain"], (k - z).mean())
        if row["level"] == "species":
            share = (k - z).sum() / (a - z).sum() if (a - z).mean() >= 0.1 else None
            assert close(row["share_closed"], share)
        elif row["share_closed_ci95_low"]:
            n_shares += 1
            share = (k - z).sum() / (a - z).sum()
            assert close(row["share_closed"], share)
            errors = ((k - z) - share * (a - z)) / (a - z).mean()
            _, low, high = crossed(errors)
            assert close(row["share_closed_ci95_low"], share + low, 1e-6)
            assert close(row["share_closed_ci95_high"], share + high, 1e-6)
    assert n_shares >= 1
