"""Bytes as a program of any parts would have them, whether they are of one or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np

from fusewire_protos.programs.parts import Parts, pack


def program_bytes(
    inputs: Sequence[Any], scalars: Sequence[Any], ops: Sequence[Sequence[Any]], live: Sequence[int]
) -> bytes:
    """`inputs`: [[dtype code, dim, …], …]; `scalars`: [dtype code, …];
    `ops`: [[op code, [operand, …], attribute, …], …].

    Whatever an op takes beside inputs and scalars is said to be of the first spec.
    """
    specs = _Numbered()
    leaves = [*map(specs.number, inputs), *[specs.number([dtype]) for dtype in scalars]]
    signatures = _Numbered()
    numbers = []
    for code, operands, *attributes in ops:
        claimed = [leaves[operand] if operand < len(leaves) else 0 for operand in operands]
        numbers.append(signatures.number([code, claimed, *attributes]))
    return pack(
        Parts(
            leaves[: len(inputs)],
            leaves[len(inputs) :],
            specs.items,
            signatures.items,
            _array(numbers),
            _array([operand for _, operands, *_ in ops for operand in operands]),
            live,
        )
    )


class _Numbered:
    """Items of any kind, each once."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, item: Any) -> int:
        key = msgpack.packb(item)
        if key not in self._numbers:
            self._numbers[key] = len(self.items)
            self.items.append(item)
        return self._numbers[key]


def _array(numbers: Sequence[int]) -> Any:
    return np.array(numbers, np.int64)
