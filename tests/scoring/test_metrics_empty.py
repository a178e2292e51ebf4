"""Empty inputs: expected values of every case as a table.

``None`` is undefined; a model that detects none of the specimens scores 0.
"""

import pytest
from support.scoring import Taxon, score

A = [0, 0, 100, 100]
FAR = [700, 700, 100, 100]
TAXA = {1: Taxon("A", "T", "S", "near_genus")}

EMPTY = {
    # case: specimens, detections, images
    "no predictions": ([[1, 1, A]], [], [1]),
    "nothing detected": ([[1, 1, A]], [[1, 1, FAR, 0.9]], [1]),
    "no specimens": ([], [[1, 1, FAR, 0.9]], [1]),
    "crowd only, all ignored": ([[1, 1, A, 1]], [[1, 1, A, 0.9]], [1]),
    "crowd only, no predictions": ([[1, 1, A, 1]], [], [1]),
    "no specimens, no predictions": ([], [], [1]),
    "no images": ([], [], []),
}
# in the order of the cases above
VALUES = {
    "n_predictions": (0, 1, 1, 1, 0, 0, 0),
    "prediction_density/n_gt": (1, 1, 0, 0, 0, 0, 0),
    "prediction_density/boxes_per_gt": (0.0, 1.0, None, None, None, None, None),
    "prediction_density/boxes_per_image": (0.0, 1.0, 1.0, 1.0, 0.0, 0.0, None),
    "coco/AP_50_95": (0.0, 0.0, None, None, None, None, None),
    "coco/AP_large": (0.0, 0.0, None, None, None, None, None),
    "coco/AP_small": (None,) * 7,
    "coco/AR_100": (0.0, 0.0, None, None, None, None, None),
    "class_agnostic/AP_50": (0.0, 0.0, None, None, None, None, None),
    "class_agnostic/AR_large": (0.0, 0.0, None, None, None, None, None),
    "per_species/1/AP_50": (0.0, 0.0, None, None, None, None, None),
    "per_species/1/n_gt": (1, 1, 0, 0, 0, 0, 0),
    "calibration/ECE": (None, 0.9, 0.9, None, None, None, None),
    "calibration/mean_confidence": (None, 0.9, 0.9, None, None, None, None),
    "calibration/n_predictions": (0, 1, 1, 0, 0, 0, 0),
    "hierarchical/n_matched": (0,) * 7,
    "hierarchical/correct_species": (None,) * 7,
    "hierarchical/per_band": ({},) * 7,
    "decomposition/n_gt": (1, 1, 0, 0, 0, 0, 0),
    "decomposition/detection_recall": (0.0, 0.0, None, None, None, None, None),
    "decomposition/species_recall": (0.0, 0.0, None, None, None, None, None),
    "decomposition/localisation_loss": (1.0, 1.0, None, None, None, None, None),
    "decomposition/classification_loss": (0.0, 0.0, None, None, None, None, None),
    "decomposition/classification_given_detection_acc": (None,) * 7,
    "decomposition/classification_loss_ratio": (None,) * 7,
    "decomposition/mean_confidence_matched": (None,) * 7,
    "decomposition/median_iou_matched": (None,) * 7,
    "decomposition/is_species_meaningful": (False,) * 7,
    "density/strata/1/n_images": (1, 1, 0, 0, 0, 0, 0),
    "density/strata/1/recall": (0.0, 0.0, None, None, None, None, None),
    "density/strata/1/image_mean_recall": (0.0, 0.0, None, None, None, None, None),
    "density/strata/1/classification_given_detection_acc": (None,) * 7,
    "density/strata/>10/recall": (None,) * 7,
    "chance/n_misidentified": (0,) * 7,
    "chance/observed_genus": (None,) * 7,
    "chance/expected_tribe": (None,) * 7,
    "detection_cap/n_detections_over_100": (0,) * 7,
    "detection_cap/AR_uncapped": (0.0, 0.0, None, None, None, None, None),
    "operating_point/best_F1/confidence": (None, 0.9, None, None, None, None, None),
    "operating_point/best_F1/F1": (None, 0.0, None, None, None, None, None),
    "operating_point/at_0.50/recall": (0.0, 0.0, None, None, None, None, None),
    "operating_point/at_0.50/precision": (None, 0.0, 0.0, None, None, None, None),
    "operating_point/at_0.50/F1": (0.0, 0.0, None, None, None, None, None),
    "operating_point/at_0.50/false_positives_per_image": (0.0, 1.0, 1.0, 0.0, 0.0, 0.0, None),
}
BAND = {
    # only bands with an annotation are present
    "n_annotations": (1, 1, None, 1, 1, None, None),
    "class_agnostic_AP_50": (0.0, 0.0, None, None, None, None, None),
    "class_agnostic_AR_100": (0.0, 0.0, None, None, None, None, None),
    "n_matched_tp": (0, 0, None, 0, 0, None, None),
    "correct_genus": (None,) * 7,
    "mean_confidence_matched": (None,) * 7,
    "mean_confidence_all_preds": (None, 0.9, None, 0.9, None, None, None),
}


@pytest.mark.parametrize("case", EMPTY)
def test_values_of_empty_inputs(case):
    truth, rows, images = EMPTY[case]
    at = list(EMPTY).index(case)
    blocks = score(truth, rows, "semantic_ood", listed=[1], images=images, taxa=TAXA)
    for path, values in VALUES.items():
        found = blocks
        for key in path.split("/"):
            found = found[key]
        assert _same(found, values[at]), f"{path}: {found!r}, expected {values[at]!r}"
    bands = blocks["ood_by_band"]["by_band"]
    assert list(bands) == (["near_genus"] if BAND["n_annotations"][at] else [])
    for band in bands.values():
        for key, values in BAND.items():
            assert _same(band[key], values[at]), f"{key}: {band[key]!r}, expected {values[at]!r}"


def _same(found, expected):
    if isinstance(expected, float):
        return found is not None and found == pytest.approx(expected)
    return found == expected and type(found) is type(expected)
