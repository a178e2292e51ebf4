"""The benchmark index: all ground truth in one ``.npz`` file, loaded by every job.

The same benchmark gives the same bytes, on any machine and in any folder. No pickle is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmark_eval.core.atomic_write import atomic_writer
from benchmark_eval.core.errors import InputError
from benchmark_eval.core.first_bytes import SNIFFED, ZIP
from benchmark_eval.core.npz import BROKEN, load_npz
from benchmark_eval.core.problems import Problem
from benchmark_eval.core.safe_read import (
    ForeignContentError,
    absent,
    open_input,
    require_own_content,
    unreadable,
)
from benchmark_eval.inputs.benchmark import Benchmark, Categories, SplitTruth, TrainIncidence
from benchmark_eval.inputs.benchmark_reader import load_benchmark

INDEX_VERSION = 4

_CATEGORY_ARRAYS = (
    "ids",
    "name_code",
    "subfamily_code",
    "tribe_code",
    "genus_code",
    "n_train_images",
    "n_train_objects",
)
_CATEGORY_TEXTS = ("names", "genera", "distance_band", "target_band")
_SPLIT_ARRAYS = (
    *("image_ids", "sizes", "listed", "image", "category", "boxes", "area", "crowd"),
    *("file_order", "name_order", "name_number"),
)


def _texts(values: Sequence[str]) -> NDArray[np.uint8]:
    """Texts as the bytes of a JSON list (numpy's string arrays drop trailing NULs)."""
    return np.frombuffer(msgspec.json.encode(list(values)), np.uint8)


def write_index(benchmark_dir: str | Path, path: str | Path) -> None:
    """Read a benchmark folder and write its index."""
    save_index(load_benchmark(benchmark_dir), path)


def save_index(benchmark: Benchmark, path: str | Path) -> None:
    """Write a benchmark as one uncompressed ``.npz``, completely or not at all."""
    arrays: dict[str, NDArray[Any]] = {"version": np.array(INDEX_VERSION)}
    for name in _CATEGORY_ARRAYS:
        arrays[f"categories/{name}"] = getattr(benchmark.categories, name)
    for name in _CATEGORY_TEXTS:
        arrays[f"categories/{name}"] = _texts(getattr(benchmark.categories, name))
    arrays["description"] = _texts([benchmark.description])
    arrays["splits"] = _texts(tuple(benchmark.splits))
    for split in benchmark.splits.values():
        for name in _SPLIT_ARRAYS:
            arrays[f"split/{split.name}/{name}"] = getattr(split, name)
    if benchmark.train is not None:
        arrays["train/n_images"] = np.array(benchmark.train.n_images)
        for name in ("image", "category", "n_objects"):
            arrays[f"train/{name}"] = getattr(benchmark.train, name)
    arrays["digests"] = _texts(
        [part for pair in sorted(benchmark.digests.items()) for part in pair]
    )
    arrays["digest"] = _texts([_digest(arrays)])
    with atomic_writer(path) as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and values, so that any edit of an index is noticed."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """All arrays of an index; raises one of ``BROKEN`` if it is damaged."""
    with open_input(path) as stream:
        start = stream.read(SNIFFED)
        if not start.startswith(ZIP):  # as an index does, even if it is truncated
            require_own_content(start)
        stream.seek(0)
        return load_npz(stream)


def read_index(path: str | Path) -> Benchmark:
    """Load an index. Raises ``InputError`` if it is missing, damaged or of another version."""
    expected = "an index written by the workflow (or pass the benchmark folder)"
    try:
        store = _arrays(path)
        if int(store["version"]) != INDEX_VERSION:
            raise InputError(
                [
                    Problem(
                        "index-version",
                        str(path),
                        f"index version {int(store['version'])}",
                        f"version {INDEX_VERSION}",
                        cause="written by another release; delete it and run again",
                    )
                ]
            )

        def texts(name: str) -> tuple[str, ...]:
            return tuple(msgspec.json.decode(store[name].tobytes(), type=list[str]))

        (recorded,) = texts("digest")
        if recorded != _digest({name: store[name] for name in store if name != "digest"}):
            raise ValueError("content that differs from its own digest")
        columns: dict[str, Any] = {n: store[f"categories/{n}"] for n in _CATEGORY_ARRAYS}
        columns |= {n: texts(f"categories/{n}") for n in _CATEGORY_TEXTS}
        categories = Categories(**columns)
        truths = {
            split: SplitTruth(
                name=split, **{name: store[f"split/{split}/{name}"] for name in _SPLIT_ARRAYS}
            )
            for split in texts("splits")
        }
        train = None
        if "train/n_images" in store:
            train = TrainIncidence(
                int(store["train/n_images"]),
                *(store[f"train/{name}"] for name in ("image", "category", "n_objects")),
            )
        (description,) = texts("description")
        flat = texts("digests")
        digests = dict(zip(flat[::2], flat[1::2], strict=True))
    except FileNotFoundError:
        raise InputError([Problem("missing-file", str(path), absent(path), expected)]) from None
    except ForeignContentError as error:
        raise InputError([unreadable(path, error, expected)]) from None
    except BROKEN as error:
        raise InputError(
            [
                Problem(
                    "index-broken",
                    str(path),
                    f"no array {error}"
                    if isinstance(error, KeyError)
                    else getattr(error, "strerror", None) or str(error) or type(error).__name__,
                    expected,
                    cause="damaged, edited or not an index; delete it and run again",
                )
            ]
        ) from error
    return Benchmark(categories, truths, train, digests, description)


def open_benchmark(source: str | Path | Benchmark) -> Benchmark:
    """A benchmark from its folder or index file; a ``Benchmark`` is returned unchanged."""
    if isinstance(source, Benchmark):
        return source
    path = Path(source)
    return read_index(path) if path.suffix == ".npz" else load_benchmark(path)
