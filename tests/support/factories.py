"""Small benchmarks and artificial evaluations with known numbers."""

import itertools
import json

import msgspec

from benchmark_eval.protocol import REGIMES
from benchmark_eval.results import schema as results

TIERS = ("head", "medium", "tail")

# id, name, target band, distance band, training images (image id -> boxes)
SPECIES = (
    (1, "Xa una", "near_genus", "near_genus", {1: 2, 2: 1, 3: 1, 4: 1}),
    (2, "Xa bina", "", "near_genus", {1: 3, 5: 1}),
    (3, "Yb una", "mid_tribe", "mid_tribe", {6: 1, 7: 5}),
    (4, "Yb bina", "", "mid_tribe", {7: 1, 8: 1, 9: 1, 10: 1, 11: 1, 12: 1}),
    (5, "Zc una", "far_tribe", "far_tribe", {13: 1}),
    (6, "Xa nova", "", "near_genus", {}),
    (7, "Yd nova", "", "mid_tribe", {}),
    (8, "Ze nova", "", "far_tribe", {}),
)
TRAINED = (1, 2, 3, 4, 5)


def write_benchmark(folder):
    """Write a benchmark of five trained and three held-out species; returns its folder."""
    coco = folder / "detection" / "annotations_coco"
    coco.mkdir(parents=True)
    rows = [
        "scientificName,subfamily,tribe,genus,benchmark_role,target_band,distance_band_vs_trainable"
    ]
    for number, name, target, band, _ in SPECIES:
        role = "trainable" if number in TRAINED else "semantic_ood"
        genus = name.split()[0]
        rows.append(f"{name},Scolytinae,{genus[0]}ini,{genus},{role},{target},{band}")
    (folder / "species_taxonomy.csv").write_text("\n".join(rows) + "\n")

    def split(name, listed, images, boxes):
        annotations = [
            {
                "id": at,
                "image_id": image,
                "category_id": category,
                "bbox": [10 * at, 0, 9, 9],
                "area": 81,
                "iscrowd": crowd,
            }
            for at, (image, category, crowd) in enumerate(boxes, start=1)
        ]
        content = {
            "images": [{"id": i, "width": 1000, "height": 1000} for i in images],
            "annotations": annotations,
            "categories": [{"id": s[0], "name": s[1]} for s in SPECIES if s[0] in listed],
        }
        (coco / f"{name}.json").write_text(json.dumps(content))

    train = [
        (image, number, 0)
        for number, *_, images in SPECIES
        for image, boxes in images.items()
        for _ in range(boxes)
    ]
    split("train", TRAINED, range(1, 14), train)
    split("iid_test", TRAINED, range(1, 6), [*((n, n, 0) for n in TRAINED), (1, 1, 1)])
    split("inat_test", (1, 2), (1, 2), [(1, 1, 0), (2, 2, 0)])
    split("semantic_ood", (6, 7, 8), (1, 2, 3), [(1, 6, 0), (2, 7, 0), (3, 8, 0), (3, 8, 0)])
    return folder


def _coco(value):
    keys = [
        "AP_50_95",
        "AP_50",
        "AP_75",
        "AP_small",
        "AP_medium",
        "AP_large",
        "AR_1",
        "AR_10",
        "AR_100",
        "AR_small",
        "AR_medium",
        "AR_large",
    ]
    return {key: None if key.endswith(("small", "medium")) else value for key in keys}


def _split(split, value, species_ap):
    listed = {"iid_test": TRAINED, "inat_test": (1, 2), "semantic_ood": (6, 7, 8)}[split]
    names = {s[0]: s[1] for s in SPECIES}
    stratum = {
        "n_images": 2,
        "n_images_with_tp": 2,
        "n_gt": 4,
        "n_matched_tp": 2,
        "recall": value,
        "classification_given_detection_acc": value,
        "species_recall": value,
        "image_mean_recall": value,
        "image_mean_classification_given_detection_acc": value,
        "image_mean_species_recall": value,
    }

    def strata():
        return {key: dict(stratum) for key in ("1", "2 to 10", ">10", ">1")}

    at_threshold = {
        "confidence": 0.5,
        "n_detections": 3,
        "precision": value,
        "recall": value,
        "F1": value,
        "species_recall": value,
        "false_positives_per_image": 1.0,
    }
    ranks = ("species", "genus", "tribe", "subfamily")
    block = {
        "warnings": [],
        "notes": [],
        "n_predictions": 10,
        "prediction_density": {
            "n_predictions": 10,
            "n_gt": 5,
            "n_images": 5,
            "boxes_per_gt": 2.0,
            "boxes_per_image": 2.0,
        },
        "coco": _coco(value),
        "class_agnostic": _coco(value),
        "per_species": {
            str(n): {
                "name": names[n],
                "AP_50": species_ap.get(n, value),
                "AP_50_95": species_ap.get(n, value),
                "n_gt": 1,
                "n_matched_tp": 1,
                "n_correct_species": 1,
                "n_correct_genus": 1,
            }
            for n in listed
        },
        "calibration": {
            "ECE": value,
            "mean_confidence": value,
            "confidence_histogram": [1] * 10,
            "accuracy_per_bin": [value] * 10,
            "n_predictions": 10,
        },
        "hierarchical": {
            "n_matched": 5,
            **{f"correct_{rank}": value for rank in ranks},
            "per_band": {},
        },
        "class_imbalance": {"n_species_evaluated": 0},
        "decomposition": {
            "n_gt": 5,
            "n_matched_tp": 5,
            **dict.fromkeys(
                [
                    "detection_recall",
                    "detection_recall_open_vocabulary",
                    "classification_given_detection_acc_open_vocabulary",
                    "species_recall_open_vocabulary",
                    "classification_given_detection_acc",
                    "acc_genus_given_det",
                    "acc_tribe_given_det",
                    "species_recall",
                    "genus_recall",
                    "tribe_recall",
                    "localisation_loss",
                    "classification_loss",
                    "joint_AP_50",
                    "detection_only_AP_50",
                    "classification_loss_ratio",
                    "mean_confidence_matched",
                    "median_iou_matched",
                ],
                value,
            ),
            "classification_loss_ratio_note": "",
            "is_species_meaningful": split != "semantic_ood",
        },
        "density": {"strata": strata(), "by_band": {}},
        "chance": {
            "n_misidentified": 0,
            **dict.fromkeys(
                [
                    "observed_genus",
                    "expected_genus",
                    "enrichment_genus",
                    "observed_tribe",
                    "expected_tribe",
                    "enrichment_tribe",
                ]
            ),
        },
        "detection_cap": {
            "n_images_over_100": 0,
            "n_detections_over_100": 0,
            "AR_100": value,
            "AR_300": value,
            "AR_uncapped": value,
        },
        "operating_point": {
            "best_F1": dict(at_threshold),
            "at_0.25": dict(at_threshold),
            "at_0.50": dict(at_threshold),
            "curve": {
                "confidence": [i / 100 for i in range(101)],
                **{
                    key: [None if value is None else value * (1 - i / 200) for i in range(101)]
                    for key in (
                        "precision",
                        "recall",
                        "F1",
                        "species_recall",
                        "false_positives_per_image",
                    )
                },
            },
        },
    }
    hidden = ("wrong_name_congener", "wrong_name_same_tribe", "wrong_name_other", "both")
    named = [*results.ERROR_TYPES, "wrong_name"]
    if split == "semantic_ood":
        named = [name for name in results.ERROR_TYPES if name not in hidden]
    block["errors"] = {
        **{
            name: {
                "n": 3,
                "n_operating": 1,
                "per_100_images": 20.0,
                "n_class_aware": 3,
                "dAP_50": None if name == "correct" else 0.0,
            }
            for name in named
        },
        "background_near_crowd": 0,
        "on_crowd": 0,
    }
    bins = {
        "n_detections": 2,
        "ECE_equal_mass": value,
        "edges": [0.0, 1.0],
        "n_in_bin": [2],
        "mean_confidence": [0.5],
        "observed": [0.5],
    }
    events = ["detected", "identified", "detected_and_identified"]
    block["reliability"] = {
        event: {"all": dict(bins), "operating": dict(bins)}
        for event in (events[:1] if split == "semantic_ood" else events)
    }
    if split == "semantic_ood":
        band = {
            "n_species": 1,
            "n_annotations": 1,
            "n_images": 1,
            "n_matched_tp": 1,
            **dict.fromkeys(
                [
                    "class_agnostic_AP_50",
                    "class_agnostic_AP_50_95",
                    "class_agnostic_AR_100",
                    "correct_genus",
                    "correct_tribe",
                    "correct_subfamily",
                    "mean_confidence_matched",
                    "mean_confidence_all_preds",
                ],
                value,
            ),
        }
        block["ood_by_band"] = {
            "by_band": {key: dict(band) for key in ("near_genus", "mid_tribe", "far_tribe")}
        }
        block["density"]["by_band"] = {
            key: strata() for key in ("near_genus", "mid_tribe", "far_tribe")
        }
    elif value is not None:
        imbalance = {"n_species_evaluated": len(listed)}
        for at, tier in enumerate(TIERS):
            imbalance |= {
                f"{tier}_n_species": 2,
                f"{tier}_AP_50": value * (1 - at / 4),
                f"{tier}_AP_50_95": value * (1 - at / 4),
                f"{tier}_min_train_imgs": 1,
                f"{tier}_max_train_imgs": 9,
            }
        imbalance |= dict.fromkeys(
            [
                "head_minus_tail_AP_50",
                "head_minus_tail_AP_50_95",
                "AP_50_train_count_correlation",
                "AP_50_95_train_count_correlation",
            ],
            value / 2,
        )
        block["class_imbalance"] = imbalance
    return block


def _spread(node, step):
    """Shift every float of a tree by a different step, so that all are distinct."""
    for key, old in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(old, dict | list):
            _spread(old, step)
        elif isinstance(old, float):
            node[key] = old + 1e-5 * next(step)


def evaluation(
    model,
    value=0.5,
    *,
    species_ap=(),
    benchmark=(),
    splits=("iid_test", "inat_test", "semantic_ood"),
    warnings=(),
    notes=(),
    predictions=(),
    distinct=False,
    **changes,
):
    """An evaluation with ``value`` for every metric, or with ``distinct`` distinct values near it.

    ``species_ap`` maps a category id to its AP; ``changes`` sets the value at a path
    (``per_split__iid_test__coco__AP_50=0.1``); ``warnings`` and ``notes`` are (split, text);
    ``predictions`` maps a split to the digest of its prediction file.
    """
    tree = {
        "schema_version": results.SCHEMA_VERSION,
        "model": model,
        "headline": {
            "iid_test.coco.AP_50_95": value,
            "inat_test.coco.AP_50_95": value,
            "semantic_ood.class_agnostic.AR_100": value,
        },
        "summary": {
            field.encode_name: 3 if field.name.startswith("n_") else value
            for field in msgspec.structs.fields(results.Summary)
        },
        "operating_threshold": {"confidence": 0.5, "source": "best F1 on iid_test"},
        "per_split": {split: _split(split, value, dict(species_ap)) for split in splits},
        "config": {
            "iou_threshold": 0.5,
            "splits": list(splits),
            "engine": "fast",
            "on_invalid": "error",
        },
        "provenance": {
            "package_version": "0.1.0",
            "schema_version": results.SCHEMA_VERSION,
            "scoring_code": "c" * 64,
            "inputs": {
                **{f"benchmark/{name}": sha for name, sha in dict(benchmark).items()},
                **{f"predictions/{name}": sha for name, sha in dict(predictions).items()},
            },
        },
    }
    for split, text in warnings:
        tree["per_split"][split]["warnings"].append(text)
    for split, text in notes:
        tree["per_split"][split]["notes"].append(text)
    if distinct:
        step = itertools.count(1)
        for part in ("headline", "summary", "per_split"):
            _spread(tree[part], step)
    for path, new in changes.items():
        *parents, last = path.split("__")
        node = tree
        for key in parents:
            node = node[key]
        assert last in node, path
        node[last] = new
    return msgspec.convert(tree, results.Evaluation)


def write_evaluation(folder, item, *, nested=False):
    """Write an evaluation where ``aggregate`` reads it; returns the file."""
    place = folder / item.model if nested else folder
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{item.model}_summary.json"
    path.write_bytes(msgspec.json.encode(results.to_dict(item)))
    return path


def manifest_text(rows, header="model_name,architecture,regime,k_or_p,seed"):
    """A manifest of (model, architecture, regime, k_or_p, seed) rows."""
    return header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


BUDGETS = {
    REGIMES[0]: ("1", "5", "10", "25", "50", "all"),
    REGIMES[1]: ("0.01", "0.05", "0.1", "0.25", "0.5", "1"),
    REGIMES[2]: ("0", "1", "5", "10", "25"),
}
"""The benchmark's 17 training conditions."""
