"""The invented species: counts and ranks as in the benchmark's dataset card, with made-up names.

70 genera in 21 tribes. Training covers 17 tribes, 38 genera and 65 species. The 110 held-out
species are 59 in 23 trained genera (near_genus, 13 tribes), 43 in 27 new genera of 9 trained
tribes (mid_tribe) and 8 in 5 genera of 4 untrained tribes (far_tribe). The names are Latin for
"invented", "nowhere", "imagined" and the like, so that none is mistaken for a real beetle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

FAMILY = "Imaginaridae"
SUBFAMILIES = ("Fabulosinae", "Irrealinae")
BANDS = ("near_genus", "mid_tribe", "far_tribe")

# the stem of a tribe's name and of all its genera
_TRIBES = (
    "Fict", "Nusquam", "Chimer", "Mendac", "Comment", "Utop", "Phantasm", "Somni", "Simulacr",
    "Fabul", "Nihil", "Umbr", "Vacu", "Absent", "Mirag", "Quasin", "Nemin", "Oblivi", "Enigmat",
    "Apocryph", "Spectr",
)  # fmt: skip
_SECOND_SUBFAMILY = frozenset({"Umbr", "Vacu", "Mirag", "Nemin", "Spectr"})
_GENUS_ENDINGS = (
    "oborus", "olytus", "otomus", "oplax", "onodus", "otrypus", "oscapus",
    "odendrus", "ophilus", "ocleptes", "ogramma", "oxenus", "opulvis",
)  # fmt: skip
_EPITHETS = (
    "inventus", "commenticius", "simulatus", "nusquamensis", "absens", "somniatus", "irrealis",
    "fabulosus", "utopicus", "umbratilis", "chimaericus", "nullius", "imaginatus", "vanescens",
)  # fmt: skip

# Species per genus, in the order of _GENUS_ENDINGS; one row per tribe, in the order of _TRIBES.
_TRAINED = (
    (5, 3, 2, 1, 1, 1), (4, 3, 2, 1, 1), (4, 2, 1, 1), (3, 2, 1), (2, 2, 1), (3, 1), (2, 1), (2, 1),
    (1, 1), (1, 1), (2,), (1,), (1,), (1,), (1,), (1,), (1,),
)  # fmt: skip
_NEAR = (
    (9, 6, 3, 2), (6, 4, 2), (4, 3, 1), (3, 2), (2, 1), (2, 1), (2,), (1,), (1,), (1,), (1,), (1,),
    (1,),
)  # fmt: skip
_MID = (
    (4, 3, 2, 2, 1, 1, 1), (4, 2, 2, 1, 1), (2, 2, 1, 1), (2, 1, 1), (1, 1), (1, 1), (2,),
    (), (), (), (), (), (), (1, 1), (1,), (), (),
)  # fmt: skip
_FAR = ((2, 2), (2,), (1,), (1,))

# The target species of incremental_uniform_targets, as (tribe, genus, species) indices of trained
# species. Among the 53 other trained species, the first four have a congener, the next four a
# species of their tribe but no congener, the last four neither. The two mid_tribe targets of one
# genus are congeners of each other, so their target_band and distance_band_vs_trainable differ.
_TARGETS = {
    "near_genus": ((0, 0, 1), (1, 0, 1), (2, 0, 0), (3, 0, 0)),
    "mid_tribe": ((3, 1, 0), (3, 1, 1), (4, 2, 0), (5, 1, 0)),
    "far_tribe": ((13, 0, 0), (14, 0, 0), (15, 0, 0), (16, 0, 0)),
}

# Species with field photographs: all in the first subfamily, two of them targets.
_IN_FIELD = (
    (0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0), (2, 1, 0), (5, 0, 0), (3, 0, 0), (4, 2, 0),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Species:
    """One species: ranks, role and two bands (``target_band`` is "" unless it is a target)."""

    category_id: int
    name: str
    subfamily: str
    tribe: str
    genus: str
    trainable: bool
    target_band: str
    distance_band: str
    in_field: bool

    @property
    def valid_name_id(self) -> int:
        """The ``depicts_valid_name_id`` of its annotations."""
        return 900_000 + self.category_id


@dataclass(frozen=True, slots=True)
class _Draft:
    index: tuple[int, int, int]
    name: str
    tribe: int
    genus: str
    trainable: bool


def _drafts() -> list[_Draft]:
    drafts: list[_Draft] = []

    def add(tribe: int, genus: int, first: int, n: int, trainable: bool) -> None:
        name = _TRIBES[tribe] + _GENUS_ENDINGS[genus]
        drafts.extend(
            _Draft((tribe, genus, i), f"{name} {_EPITHETS[i]}", tribe, name, trainable)
            for i in range(first, first + n)
        )

    for tribe, sizes in enumerate(_TRAINED):
        for genus, n in enumerate(sizes):
            add(tribe, genus, 0, n, True)
    for tribe, sizes in enumerate(_NEAR):
        for genus, n in enumerate(sizes):
            add(tribe, genus, _TRAINED[tribe][genus], n, False)
    for tribe, sizes in enumerate(_MID):
        for genus, n in enumerate(sizes):
            add(tribe, len(_TRAINED[tribe]) + genus, 0, n, False)
    for tribe, sizes in enumerate(_FAR):
        for genus, n in enumerate(sizes):
            add(len(_TRAINED) + tribe, genus, 0, n, False)
    return drafts


def invented_species() -> tuple[Species, ...]:
    """The 175 species by category id (1..175, in alphabetical order); the same for every seed.

    ``distance_band`` is the distance to the nearest *other* trained species, so trained species
    have it too; ``target_band`` is the distance to the trained species that are not targets.
    """
    drafts = sorted(_drafts(), key=lambda draft: draft.name)
    trained_genera = Counter(draft.genus for draft in drafts if draft.trainable)
    trained_tribes = Counter(draft.tribe for draft in drafts if draft.trainable)
    target_bands = {index: band for band, indices in _TARGETS.items() for index in indices}
    species = []
    for category_id, draft in enumerate(drafts, start=1):
        itself = int(draft.trainable)
        if trained_genera[draft.genus] > itself:
            band = "near_genus"
        elif trained_tribes[draft.tribe] > itself:
            band = "mid_tribe"
        else:
            band = "far_tribe"
        stem = _TRIBES[draft.tribe]
        species.append(
            Species(
                category_id=category_id,
                name=draft.name,
                subfamily=SUBFAMILIES[stem in _SECOND_SUBFAMILY],
                tribe=f"{stem}ini",
                genus=draft.genus,
                trainable=draft.trainable,
                target_band=target_bands.get(draft.index, "") if draft.trainable else "",
                distance_band=band,
                in_field=draft.trainable and draft.index in _IN_FIELD,
            )
        )
    return tuple(species)
