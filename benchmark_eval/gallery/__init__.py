"""The gallery of failures: a local page with the most telling errors of one or two models."""

from __future__ import annotations

from benchmark_eval.gallery.build import Gallery, write_gallery

__all__ = ["Gallery", "write_gallery"]
