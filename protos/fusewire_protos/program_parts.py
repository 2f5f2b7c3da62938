"""The parts of a program's bytes.

Bytes: msgpack with the shortest form of each integer, and no maps, strings or extensions:

    [inputs, scalars, specs, signatures, ops, operands, live]
    inputs      the spec number of each             scalars     likewise; their specs have no dims
    specs       [[dtype code, dim, …], …]           signatures  [[op code, [spec number, …], attribute, …], …]
    ops         the signature number of each        operands    operand numbers of all ops, concatenated
    live        op indices, ascending

Each spec and each signature is listed once. They are numbered in the order of first mention: specs in inputs, scalars
and signatures, in this order; signatures in ops. `inputs`, `scalars`, `ops`, `operands` and `live` are arrays: msgpack
`bin` of little-endian integers. These have one byte if the list that they index has at most 256 items, else two, else
four. So equal programs have equal bytes, and few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np
import numpy.typing as npt

from fusewire_protos.errors import CaseError
from fusewire_protos.program import Integers
from fusewire_protos.unpacking import unpack

_FORM = (bytes, bytes, tuple, tuple, bytes, bytes, bytes)


class Parts(NamedTuple):
    """The decoded parts, not checked."""

    inputs: Sequence[int]
    scalars: Sequence[int]
    specs: Sequence[Any]
    signatures: Sequence[Any]
    ops: Integers  # int64
    operands: Integers  # int64
    live: Sequence[int]


def pack(parts: Parts) -> bytes:
    """The bytes of these parts, which are not checked. They are canonical if the parts are numbered as above."""
    inputs, scalars, specs, listed, ops, operands, live = parts
    packed: bytes = msgpack.packb(
        [
            _packed(inputs, len(specs)),
            _packed(scalars, len(specs)),
            specs,
            listed,
            _packed(ops, len(listed)),
            _packed(operands, len(inputs) + len(scalars) + len(ops)),
            _packed(live, len(ops)),
        ]
    )
    return packed


def parts_of(items: Any) -> Parts:
    """The parts in a value that `unpack` returned. Raises CaseError if it has another form."""
    if type(items) is not tuple or tuple(map(type, items)) != _FORM:
        raise CaseError("undecodable_frame", "a program is not a list of two arrays, two lists and three arrays")
    inputs, scalars, specs, listed, ops, operands, live = items
    input_numbers, scalar_numbers = _unpacked(inputs, len(specs)).tolist(), _unpacked(scalars, len(specs)).tolist()
    op_numbers = _unpacked(ops, len(listed)).astype(np.int64)
    values = len(input_numbers) + len(scalar_numbers) + len(op_numbers)
    operand_numbers = _unpacked(operands, values).astype(np.int64)
    indices = _unpacked(live, len(op_numbers)).tolist()
    return Parts(input_numbers, scalar_numbers, specs, listed, op_numbers, operand_numbers, indices)


def claimed_live(raw: bytes) -> list[int]:
    """The live results of possibly malformed bytes; none if the parts cannot be read."""
    try:
        parts = parts_of(unpack(raw, longest_array=len(raw)))
    except CaseError:
        return []
    return [index for index in parts.live if index < len(parts.ops)]


def _type_below(count: int) -> str:
    """NumPy's name for the narrowest integers that hold the numbers below `count`."""
    if count <= 1 << 8:
        return "<u1"
    return "<u2" if count <= 1 << 16 else "<u4"


def _packed(numbers: Sequence[int] | Integers, count: int) -> bytes:
    return np.asarray(numbers, _type_below(count)).tobytes()


def _unpacked(raw: bytes, count: int) -> npt.NDArray[np.integer[Any]]:
    try:
        return np.frombuffer(raw, _type_below(count))
    except ValueError:
        text = f"{len(raw)} bytes are not an array of numbers below {count}"
        raise CaseError("undecodable_frame", text) from None
