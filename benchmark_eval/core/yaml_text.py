"""Decoding YAML with plain values, in which every key is unique."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

MAX_ALIASES = 20
"""Maximum number of aliases (``*name``) in a YAML text. Nested aliases expand exponentially: 20
give at most 1,500 values, a hundred give more than fit in memory."""


class RepeatedKeyError(ValueError):
    """A key occurs more than once in a mapping."""


def parse_yaml(text: str) -> object:
    """Decode YAML with plain values only; raises ``ValueError`` for any other text.

    The ``RepeatedKeyError`` names the lines of every key that occurs more than once in a mapping,
    of which YAML libraries silently keep the last value.
    """
    import yaml

    try:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        if sum(isinstance(event, yaml.AliasEvent) for event in events) > MAX_ALIASES:
            raise ValueError(f"more than {MAX_ALIASES} aliases (*name)")
        repeated = list(_repeated_keys(text))
        if repeated:
            raise RepeatedKeyError("; ".join(repeated))
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _repeated_keys(text: str) -> Iterator[str]:
    """A description of each key that occurs more than once in a mapping."""
    import yaml

    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        pending: list[tuple[str, Any]] = [] if root is None else [("", root)]
        seen: set[int] = set()
        while pending:
            place, node = pending.pop(0)
            if id(node) in seen:  # an alias
                continue
            seen.add(id(node))
            if isinstance(node, yaml.SequenceNode):
                pending += [(place, item) for item in node.value]
            if not isinstance(node, yaml.MappingNode):
                continue
            lines: dict[Hashable, list[int]] = {}
            for key, value in node.value:
                # equal keys may be written in two ways: 1 and 0x1
                merges = key.tag == "tag:yaml.org,2002:merge"
                name = "<<" if merges else loader.construct_object(key, deep=True)
                if isinstance(name, Hashable):
                    lines.setdefault(name, []).append(key.start_mark.line + 1)
                pending.append((f"{place}{name}.", value))
            for name, found in lines.items():
                if len(found) > 1:
                    *first, last = map(str, found)
                    yield (
                        f"the key {f'{place}{name}'!r} {len(found)} times, in lines "
                        f"{', '.join(first)} and {last}"
                    )
    finally:
        loader.dispose()
