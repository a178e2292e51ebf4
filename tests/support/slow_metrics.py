"""Our own metric families once more, slowly and plainly, in exact fractions.

Boxes have whole pixels, so that every IoU is a fraction and no rounding decides a match. A
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
    """Pixels that two boxes share."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return max(width, 0) * max(height, 0)


def iou(a, b):
    shared = overlap(a, b)
    together = a[2] * a[3] + b[2] * b[3] - shared
    return Fraction(shared, together) if together else Fraction(0)


def localise(truth, rows, threshold):
    """{detection: specimen} of the hits, and the detections that are false alarms."""
    hits, false_alarms = {}, []
    for image in {row[0] for row in rows}:
        mine = [i for i, row in enumerate(rows) if row[0] == image]
        for i in sorted(mine, key=lambda i: -rows[i][3]):
            reached = [
                j
                for j, specimen in enumerate(truth)
                if specimen[0] == image and iou(rows[i][2], specimen[2]) >= threshold
            ]
            free = [j for j in reached if not truth[j][3] and j not in hits.values()]
            if free:
                hits[i] = max(free, key=lambda j: (iou(rows[i][2], truth[j][2]), -j))
            elif not any(truth[j][3] for j in reached):
                false_alarms.append(i)
    return hits, false_alarms


def share(part, whole):
    return Fraction(part, whole) if whole else None


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


class Slow:
    """All families of one split."""

    def __init__(self, truth, rows, images, taxa, threshold=Fraction(1, 2)):
        # taxa: what has a genus, a tribe and a band, by category
        self.truth, self.rows, self.images, self.taxa = truth, rows, images, taxa
        self.threshold = threshold
        self.hits, self.false_alarms = localise(truth, rows, threshold)
        self.scored = [j for j, specimen in enumerate(truth) if not specimen[3]]

    def right(self, i, j):
        """Whether detection ``i`` names specimen ``j`` rightly."""
        return self.rows[i][1] == self.truth[j][1]

    def same(self, rank, a, b):
        """Whether two categories agree at a rank; blank equals nothing."""
        value = getattr(self.taxa[a], rank)
        return value != "" and value == getattr(self.taxa[b], rank)

    def decomposition(self):
        n_right = sum(self.right(i, j) for i, j in self.hits.items())
        recall = share(len(self.hits), len(self.scored))
        ious = [iou(self.rows[i][2], self.truth[j][2]) for i, j in self.hits.items()]
        return {
            "n_gt": len(self.scored),
            "n_matched_tp": len(self.hits),
            "detection_recall": recall,
            "localisation_loss": None if recall is None else 1 - recall,
            "species_recall": share(n_right, len(self.scored)),
            "classification_given_detection_acc": share(n_right, len(self.hits)),
            "mean_confidence_matched": mean(self.rows[i][3] for i in self.hits),
            "median_iou_matched": median(ious) if ious else None,
        }

    def per_species(self, listed):
        def row(number):
            mine = {i: j for i, j in self.hits.items() if self.truth[j][1] == number}
            return {
                "n_gt": sum(self.truth[j][1] == number for j in self.scored),
                "n_matched_tp": len(mine),
                "n_correct_species": sum(self.right(i, j) for i, j in mine.items()),
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
            found = {i: j for i, j in self.hits.items() if j in mine}
            n_right = sum(self.right(i, j) for i, j in found.items())
            if mine:
                per_image.append((len(mine), len(found), n_right))
        n_gt, n_hits, n_right = (
            (sum(column) for column in zip(*per_image, strict=True)) if (per_image) else (0, 0, 0)
        )
        return {
            "n_images": len(per_image),
            "n_images_with_tp": sum(hits > 0 for _, hits, _ in per_image),
            "n_gt": n_gt,
            "n_matched_tp": n_hits,
            "recall": share(n_hits, n_gt),
            "classification_given_detection_acc": share(n_right, n_hits),
            "species_recall": share(n_right, n_gt),
            "image_mean_recall": mean(share(h, n) for n, h, _ in per_image),
            "image_mean_classification_given_detection_acc": mean(
                share(r, h) for _, h, r in per_image if h
            ),
            "image_mean_species_recall": mean(share(r, n) for n, _, r in per_image),
        }

    def chance(self):
        labels = [self.rows[i][1] for i in self.hits]
        f = {t: Fraction(labels.count(t), len(labels)) for t in set(labels)}
        wrong = [(self.rows[i][1], self.truth[j][1]) for i, j in self.hits.items()]
        wrong = [(named, true) for named, true in wrong if named != true]
        out = {"n_misidentified": len(wrong)}
        for rank in ("genus", "tribe"):
            observed = share(sum(self.same(rank, a, b) for a, b in wrong), len(wrong))
            expected = mean(
                sum(f_t for t, f_t in f.items() if t != true and self.same(rank, t, true))
                / (1 - f.get(true, 0))
                for _, true in wrong
            )
            out[f"observed_{rank}"] = observed
            out[f"expected_{rank}"] = expected
            out[f"enrichment_{rank}"] = observed / expected if expected else None
        return out

    def at(self, cut):
        """Everything again from the detections of at least the confidence ``cut``."""
        kept = Slow(
            self.truth,
            [row for row in self.rows if row[3] >= cut],
            self.images,
            self.taxa,
            self.threshold,
        )
        n, n_hits, n_gt = len(kept.hits) + len(kept.false_alarms), len(kept.hits), len(self.scored)
        precision, recall = share(n_hits, n), share(n_hits, n_gt)
        f1 = None
        if recall is not None:
            # the harmonic mean; 0 where either side is
            f1 = 2 * precision * recall / (precision + recall) if n_hits else Fraction(0)
        return {
            "confidence": cut,
            "n_detections": n,
            "precision": precision,
            "recall": recall,
            "F1": f1,
            "species_recall": share(sum(kept.right(*hit) for hit in kept.hits.items()), n_gt),
            "false_positives_per_image": share(len(kept.false_alarms), len(self.images)),
        }

    def best(self):
        """The cut of the best F1, of equal ones the highest."""
        judged = [*self.hits, *self.false_alarms]
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
        """Class-agnostic, over the ten thresholds; each detection takes the best free specimen."""
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
