"""The price of training data: of an image, and of an annotated specimen."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmark_eval.core.errors import UsageError

MAX_PRICE = 1e12
"""Largest price, so that the price of a budget cannot overflow."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of the configuration, in any currency; None if not set.

    Raises
    ------
    UsageError
        A price is not a number from 0 to ``MAX_PRICE``.
    """

    per_image: float | None = None
    per_specimen: float | None = None

    def __post_init__(self) -> None:
        given = {"price_per_image": self.per_image, "price_per_specimen": self.per_specimen}
        for name, value in given.items():
            if value is not None and not 0 <= value <= MAX_PRICE:
                raise UsageError(
                    f"{name}: found {value!r}; expected a number from 0 to {MAX_PRICE:g}"
                )

    @property
    def options(self) -> dict[str, float]:
        """The prices that are set, by the name of their option."""
        named = {"price_per_image": self.per_image, "price_per_specimen": self.per_specimen}
        return {name: float(value) for name, value in named.items() if value is not None}

    def of(self, n_images: float | None, n_specimens: float | None) -> float | None:
        """The price of a budget; None without prices, or if what costs something is not known.

        Examples
        --------
        >>> Prices(per_image=0.5, per_specimen=2).of(100, 150)
        350.0
        >>> Prices(per_image=0.5).of(100, None)
        50.0
        >>> print(Prices().of(100, 150))
        None
        """
        parts = []
        for price, n in ((self.per_image, n_images), (self.per_specimen, n_specimens)):
            if price is None:
                continue
            if n is None:
                return None
            parts.append(price * n)
        return math.fsum(parts) if parts else None
