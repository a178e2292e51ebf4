"""Slow reference implementation of our own metrics, in exact fractions.

Box coordinates are integers, so that every IoU is a fraction and rounding affects no match. A
specimen is (image, category, box, crowd), a detection (image, category, box, score).
"""

from fractions import Fraction
from statistics import median

STRATA = {
    "1": lambda n: n == 1,
    "2 to 10": lambda n: 2 <= n <= 10,
    ">10": lambda n: n > 10,
    ">1": lambda n: n > 1,
}
BANDS = ("near_genus", "mid_tribe", "far_tribe")


def overlap(a, b):
    """Intersection of two boxes in pixels."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return max(width, 0) * max(height, 0)


def iou(a, b):
    shared = overlap(a, b)
    together = a[2] * a[3] + b[2] * b[3] - shared
    return Fraction(shared, together) if together else Fraction(0)


def localise(truth, rows, threshold):
    """{detection: specimen} of the true positives, and the false positives."""
    true_positives, false_positives = {}, []
    for image in {row[0] for row in rows}:
        mine = [i for i, row in enumerate(rows) if row[0] == image]
        for i in sorted(mine, key=lambda i: -rows[i][3]):
            reached = [
                j
                for j, specimen in enumerate(truth)
                if specimen[0] == image and iou(rows[i][2], specimen[2]) >= threshold
            ]
            free = [j for j in reached if not truth[j][3] and j not in true_positives.values()]
            if free:
                true_positives[i] = max(free, key=lambda j: (iou(rows[i][2], truth[j][2]), -j))
            elif not any(truth[j][3] for j in reached):
                false_positives.append(i)
    return true_positives, false_positives


def fraction(part, whole):
    return Fraction(part, whole) if whole else None


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


class Slow:
    """All metrics of one split."""

    def __init__(self, truth, rows, images, taxa, threshold=Fraction(1, 2)):
        # taxa: objects with genus, tribe and band, by category
        self.truth, self.rows, self.images, self.taxa = truth, rows, images, taxa
        self.threshold = threshold
        self.true_positives, self.false_positives = localise(truth, rows, threshold)
        self.scored = [j for j, specimen in enumerate(truth) if not specimen[3]]

    def correct(self, i, j):
        """Whether detection ``i`` identifies specimen ``j`` correctly."""
        return self.rows[i][1] == self.truth[j][1]

    def same(self, rank, a, b):
        """Whether two categories agree at a rank; blank ranks never match."""
        value = getattr(self.taxa[a], rank)
        return value != "" and value == getattr(self.taxa[b], rank)

    def decomposition(self):
        n_correct = sum(self.correct(i, j) for i, j in self.true_positives.items())
        recall = fraction(len(self.true_positives), len(self.scored))
        ious = [iou(self.rows[i][2], self.truth[j][2]) for i, j in self.true_positives.items()]
        return {
            "n_gt": len(self.scored),
            "n_matched_tp": len(self.true_positives),
            "detection_recall": recall,
            "localisation_loss": None if recall is None else 1 - recall,
            "species_recall": fraction(n_correct, len(self.scored)),
            "classification_given_detection_acc": fraction(n_correct, len(self.true_positives)),
            "mean_confidence_matched": mean(self.rows[i][3] for i in self.true_positives),
            "median_iou_matched": median(ious) if ious else None,
        }

    def per_species(self, listed):
        def row(number):
            mine = {i: j for i, j in self.true_positives.items() if self.truth[j][1] == number}
            return {
                "n_gt": sum(self.truth[j][1] == number for j in self.scored),
                "n_matched_tp": len(mine),
                "n_correct_species": sum(self.correct(i, j) for i, j in mine.items()),
                "n_correct_genus": sum(self.same("genus", self.rows[i][1], number) for i in mine),
            }

        return {str(number): row(number) for number in listed}

    def density(self, *, by_band):
        bands = {}
        for band in BANDS if by_band else ():
            members = {n for n, taxon in self.taxa.items() if taxon.band == band}
            if any(specimen[1] in members for specimen in self.truth):
                bands[band] = self._strata(members)
        return {"strata": self._strata(set(self.taxa)), "by_band": bands}

    def _strata(self, members):
        return {name: self._stratum(inside, members) for name, inside in STRATA.items()}

    def _stratum(self, inside, members):
        per_image = []
        for image in self.images:
            if not inside(sum(specimen[0] == image for specimen in self.truth)):
                continue
            mine = [j for j in self.scored if self.truth[j][0] == image]
            mine = [j for j in mine if self.truth[j][1] in members]
            found = {i: j for i, j in self.true_positives.items() if j in mine}
            n_correct = sum(self.correct(i, j) for i, j in found.items())
            if mine:
                per_image.append((len(mine), len(found), n_correct))
        n_gt, n_matched, n_correct = (
            (sum(column) for column in zip(*per_image, strict=True)) if (per_image) else (0, 0, 0)
        )
        return {
            "n_images": len(per_image),
            "n_images_with_tp": sum(matched > 0 for _, matched, _ in per_image),
            "n_gt": n_gt,
            "n_matched_tp": n_matched,
            "recall": fraction(n_matched, n_gt),
            "classification_given_detection_acc": fraction(n_correct, n_matched),
            "species_recall": fraction(n_correct, n_gt),
            "image_mean_recall": mean(fraction(h, n) for n, h, _ in per_image),
            "image_mean_classification_given_detection_acc": mean(
                fraction(r, h) for _, h, r in per_image if h
            ),
            "image_mean_species_recall": mean(fraction(r, n) for n, _, r in per_image),
        }

    def chance(self):
        labels = [self.rows[i][1] for i in self.true_positives]
        f = {t: Fraction(labels.count(t), len(labels)) for t in set(labels)}
        wrong = [(self.rows[i][1], self.truth[j][1]) for i, j in self.true_positives.items()]
        wrong = [(named, true) for named, true in wrong if named != true]
        out = {"n_misidentified": len(wrong)}
        for rank in ("genus", "tribe"):
            observed = fraction(sum(self.same(rank, a, b) for a, b in wrong), len(wrong))
            expected = mean(
                sum(f_t for t, f_t in f.items() if t != true and self.same(rank, t, true))
                / (1 - f.get(true, 0))
                for _, true in wrong
            )
            out[f"observed_{rank}"] = observed
            out[f"expected_{rank}"] = expected
            out[f"enrichment_{rank}"] = observed / expected if expected else None
        return out

    def at(self, threshold):
        """All values from the detections with at least this confidence."""
        kept = Slow(
            self.truth,
            [row for row in self.rows if row[3] >= threshold],
            self.images,
            self.taxa,
            self.threshold,
        )
        n, n_matched, n_gt = (
            len(kept.true_positives) + len(kept.false_positives),
            len(kept.true_positives),
            len(self.scored),
        )
        precision, recall = fraction(n_matched, n), fraction(n_matched, n_gt)
        f1 = None
        if recall is not None:
            # the harmonic mean; 0 if either is 0
            f1 = 2 * precision * recall / (precision + recall) if n_matched else Fraction(0)
        return {
            "confidence": threshold,
            "n_detections": n,
            "precision": precision,
            "recall": recall,
            "F1": f1,
            "species_recall": fraction(
                sum(kept.correct(*pair) for pair in kept.true_positives.items()), n_gt
            ),
            "false_positives_per_image": fraction(len(kept.false_positives), len(self.images)),
        }

    def best(self):
        """The confidence threshold with the best F1; on ties, the highest."""
        judged = [*self.true_positives, *self.false_positives]
        if not judged or not self.scored:
            return None
        return max(
            (self.at(self.rows[i][3]) for i in judged), key=lambda x: (x["F1"], x["confidence"])
        )

    def detection_cap(self):
        over = [max(sum(row[0] == image for row in self.rows) - 100, 0) for image in self.images]
        return {
            "n_images_over_100": sum(n > 0 for n in over),
            "n_detections_over_100": sum(over),
            "AR_100": self.average_recall(100),
            "AR_300": self.average_recall(300),
            "AR_uncapped": self.average_recall(len(self.rows)),
        }

    def average_recall(self, cap):
        """Class-agnostic, over ten thresholds; detections match the best unmatched specimen."""
        if not self.scored:
            return None
        found = 0
        thresholds = [Fraction(50 + 5 * step, 100) for step in range(10)]
        for threshold in thresholds:
            taken = set()
            for image in self.images:
                mine = [row for row in self.rows if row[0] == image]
                for row in sorted(mine, key=lambda row: -row[3])[:cap]:
                    free = [
                        (iou(row[2], self.truth[j][2]), j)
                        for j in self.scored
                        if self.truth[j][0] == image
                        and j not in taken
                        and iou(row[2], self.truth[j][2]) >= threshold
                    ]
                    if free:
                        taken.add(max(free)[1])
            found += len(taken)
        return Fraction(found, len(thresholds) * len(self.scored))
