"""Packs the parts of a program into bytes, and unpacks them.

The bytes are msgpack with the shortest form of each integer, and without maps, strings or extensions:

    [inputs, scalars, specs, signatures, ops, operands, live, carried]
    inputs      the spec number of each input       scalars     the spec number of each scalar; such a spec has no dims
    specs       [[dtype code, dim, …], …]           signatures  [[op code, [spec number, …], attribute, …], …]
    ops         the signature number of each op     operands    operand numbers of all ops, concatenated
    live        op indices, ascending               carried     an input, the operand that it takes, the next input, …

A program without carried inputs has no `carried`. Each spec and each signature is listed once. Specs are numbered in
the order in which inputs, scalars and signatures mention them first; signatures in the order in which ops mention them
first. `inputs`, `scalars`, `ops`, `operands`, `live` and `carried` are arrays of little-endian integers, each a msgpack
`bin`. An integer takes one byte if it indexes a list of at most 256 items, two bytes if the list has at most 65,536
items, and four bytes otherwise. So equal programs have equal bytes, and a program takes few bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np
import numpy.typing as npt

from fusewire_protos.errors import CaseError
from fusewire_protos.programs.program import Integers
from fusewire_protos.unpacking import unpack

_FORM = (bytes, bytes, tuple, tuple, bytes, bytes, bytes)


class Parts(NamedTuple):
    """The decoded parts of a program. They are not checked."""

    inputs: Sequence[int]
    scalars: Sequence[int]
    specs: Sequence[Any]
    signatures: Sequence[Any]
    ops: Integers  # int64
    operands: Integers  # int64
    live: Sequence[int]
    carried: Sequence[int] = ()  # for each carried input its number, then the operand number that it takes


def pack(parts: Parts) -> bytes:
    """The bytes of these parts. The bytes are canonical if the parts are numbered as above; this is not checked."""
    inputs, scalars, specs, listed, ops, operands, live, carried = parts
    values = len(inputs) + len(scalars) + len(ops)
    items = [
        _packed(inputs, len(specs)),
        _packed(scalars, len(specs)),
        specs,
        listed,
        _packed(ops, len(listed)),
        _packed(operands, values),
        _packed(live, len(ops)),
    ]
    packed: bytes = msgpack.packb([*items, _packed(carried, values)] if len(carried) else items)
    return packed


def parts_of(items: Any) -> Parts:
    """The parts in a value that `unpack` returned. Raises CaseError if it has another form."""
    if type(items) is not tuple or tuple(map(type, items)) not in {_FORM, (*_FORM, bytes)} or items[7:] == (b"",):
        raise CaseError(
            "undecodable_frame", "a program is not a list of two arrays, two lists and three or four arrays"
        )
    inputs, scalars, specs, listed, ops, operands, live, *carried = items
    input_numbers, scalar_numbers = _unpacked(inputs, len(specs)).tolist(), _unpacked(scalars, len(specs)).tolist()
    op_numbers = _unpacked(ops, len(listed)).astype(np.int64)
    values = len(input_numbers) + len(scalar_numbers) + len(op_numbers)
    operand_numbers = _unpacked(operands, values).astype(np.int64)
    indices = _unpacked(live, len(op_numbers)).tolist()
    pairs = [number for raw in carried for number in _unpacked(raw, values).tolist()]
    return Parts(input_numbers, scalar_numbers, specs, listed, op_numbers, operand_numbers, indices, pairs)


def carried_pairs(parts: Parts) -> list[tuple[int, int]]:
    """The carried inputs, each with the operand number that it takes. Raises CaseError if a number is left over."""
    numbers = parts.carried
    if len(numbers) % 2:
        raise CaseError("undecodable_frame", f"{len(numbers)} numbers of carried inputs are not pairs")
    return [*zip(numbers[::2], numbers[1::2], strict=True)]


def claimed_live(raw: bytes) -> list[int]:
    """The live results that possibly malformed bytes list; an empty list if the parts cannot be read."""
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
