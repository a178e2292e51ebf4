"""Names that the benchmark fixes: splits, bands, regimes and files. Imports nothing."""

from __future__ import annotations

from pathlib import Path

ANNOTATIONS = Path("detection") / "annotations_coco"
IMAGES = Path("detection") / "images"
"""Folder with one subfolder of image files per split."""
KNOWN_SPLITS = ("iid_test", "inat_test", "semantic_ood", "train")
TEST_SPLITS = ("iid_test", "inat_test", "semantic_ood")
"""The splits that models are scored on, in table order."""
SPECIES_SPLITS = ("iid_test", "inat_test")
"""Splits of trained species: only here can a species be identified correctly."""
TAXONOMY = "species_taxonomy.csv"
FILE_LIST = "MANIFEST.csv"
"""The benchmark's list of its files, with their SHA-256."""
LICENCES = "image_licences.csv"
RANKS = ("subfamily", "tribe", "genus")
REGIMES = ("global_uniform", "incremental_natural", "incremental_uniform_targets")
"""The three ways to spend an annotation budget, in table order."""
ALL = "all"
"""``k_or_p`` of global_uniform for all training images."""
OOD_BANDS = ("near_genus", "mid_tribe", "far_tribe")
"""Taxonomic distance of a held-out species from the training species, nearest first."""


def file_names(split: str) -> tuple[str, str]:
    """The two names that a split's prediction file can have."""
    return f"{split}_predictions.json", f"{split}_predictions.json.gz"
