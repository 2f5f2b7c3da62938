"""Looks up the parts of an op that are written by hand, and names a part that is missing and its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fusewire_protos.ops.op import Attributes

Part = TypeVar("Part")

# (array library, operands, attributes, slice starts) → the result. Operands may have any dtypes that the op accepts.
Twin = Callable[[Any, Sequence[Any], Attributes, Sequence[int]], Any]


def part_of(op: str, parts: Mapping[str, Part], what: str) -> Part:
    """Returns the part of an op in a table. Raises LookupError if it is missing; `what` says the part and its place."""
    found = parts.get(op)
    if found is None:
        raise LookupError(f"{op} has no {what}")
    return found
