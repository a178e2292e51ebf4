"""Slow reference implementation of the VOC 2012 rule.

Boxes are tuples in lists, detections are processed one by one, overlaps and areas are exact
fractions. No code is shared with the library.
"""

import math
from fractions import Fraction


def exact_iou(a, b, side):
    def area(left, top, right, bottom):
        return Fraction(right - left + side) * Fraction(bottom - top + side)

    width = min(a[2], b[2]) - max(a[0], b[0]) + side
    height = min(a[3], b[3]) - max(a[1], b[1]) + side
    shared = Fraction(width) * Fraction(height) if width > 0 and height > 0 else Fraction(0)
    union = area(*a) + area(*b) - shared
    return shared / union if union else Fraction(0)


def verdicts(objects, detections, name, threshold, side):
    """("TP" | "FP" | "-") of each detection of the class, in the order of processing.

    ``objects``: image -> [(class, corners, difficult)] and ``detections``: image -> [(class,
    confidence, corners)], both in file order.
    """
    ranked = [
        (-confidence, image, line, corners)
        for image, lines in detections.items()
        for line, (label, confidence, corners) in enumerate(lines)
        if label == name
    ]
    ranked.sort(key=lambda row: row[:3])
    used = set()
    result = []
    for _, image, _, corners in ranked:
        best, best_overlap, best_difficult = None, Fraction(0), False
        for place, (label, box, difficult) in enumerate(objects[image]):
            if label != name:
                continue
            overlap = exact_iou(corners, box, side)
            if overlap > best_overlap:
                best, best_overlap, best_difficult = (image, place), overlap, difficult
        if best is None or best_overlap < Fraction(str(threshold)):
            result.append("FP")
        elif best_difficult:
            result.append("-")
        elif best in used:
            result.append("FP")
        else:
            used.add(best)
            result.append("TP")
    return result


def average_precision(outcome, n_objects):
    """Sum over recall steps of the highest precision at that recall or above."""
    points = []
    true_positives = false_positives = 0
    for verdict in outcome:
        true_positives += verdict == "TP"
        false_positives += verdict == "FP"
        if verdict != "-":
            points.append(
                (
                    Fraction(true_positives, n_objects),
                    Fraction(true_positives, true_positives + false_positives),
                )
            )
    total = Fraction(0)
    for step in range(1, n_objects + 1):
        recall = Fraction(step, n_objects)
        total += max((p for r, p in points if r >= recall), default=Fraction(0)) / n_objects
    return total


def log_average_miss_rate(outcome, n_objects, n_images):
    logs = []
    for place in range(9):
        allowed = 10 ** (-2 + place / 4)
        miss_rate = 1.0
        true_positives = false_positives = 0
        for verdict in outcome:
            true_positives += verdict == "TP"
            false_positives += verdict == "FP"
            if false_positives / n_images > allowed:
                break
            miss_rate = 1 - true_positives / n_objects
        logs.append(math.log(max(miss_rate, 1e-10)))
    return math.exp(sum(logs) / 9)


def reference(objects, detections, *, thresholds=None, default=0.5, ignore=(), side=1):
    """mAP and, per class of the ground truth, (AP, TP, FP, not counted, miss rate)."""
    classes = {}
    names = {label for lines in objects.values() for label, *_ in lines}
    for name in sorted(names - set(ignore)):
        threshold = (thresholds or {}).get(name, default)
        outcome = verdicts(objects, detections, name, threshold, side)
        n = sum(
            label == name and not difficult
            for lines in objects.values()
            for label, _, difficult in lines
        )
        classes[name] = (
            average_precision(outcome, n) if n else None,
            outcome.count("TP"),
            outcome.count("FP"),
            outcome.count("-"),
            log_average_miss_rate(outcome, n, len(objects)) if n else None,
        )
    aps = [row[0] for row in classes.values() if row[0] is not None]
    return (sum(aps) / len(aps) if aps else None), classes
