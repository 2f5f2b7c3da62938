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

_FORM = (bytes, bytes, tuple, tuple, bytes, bytes, bytes)


Numbers = npt.NDArray[np.integer[Any]]


class Arrays(NamedTuple):
    """The parts of a program as they are in its fields. They are not checked, and may be longer than any limit."""

    inputs: Numbers
    scalars: Numbers
    specs: tuple[Any, ...]
    signatures: tuple[Any, ...]
    ops: Numbers
    operands: Numbers
    live: Numbers
    carried: Numbers


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


def arrays_of(fields: tuple[Any, ...]) -> Arrays:
    """Returns the parts in the fields that `unpacked` returned. Raises CaseError if the fields have another form.

    Copies nothing, however long the fields are.
    """
    if tuple(map(type, fields)) not in {_FORM, (*_FORM, bytes)} or fields[7:] == (b"",):
        raise CaseError(
            "undecodable_frame", "a program is not a list of two arrays, two lists and three or four arrays"
        )
    inputs, scalars, specs, listed, ops, operands, live, *carried = fields
    input_numbers, scalar_numbers = _unpacked(inputs, len(specs)), _unpacked(scalars, len(specs))
    op_numbers = _unpacked(ops, len(listed))
    values = len(input_numbers) + len(scalar_numbers) + len(op_numbers)
    indices, pairs = _unpacked(live, len(op_numbers)), _unpacked(b"".join(carried), values)
    return Arrays(input_numbers, scalar_numbers, specs, listed, op_numbers, _unpacked(operands, values), indices, pairs)


def parts_of(arrays: Arrays) -> Parts:
    """Returns the parts as lists, which are fast to read one by one, and as arrays of equal types."""
    inputs, scalars, specs, listed, ops, operands, live, carried = arrays
    return Parts(
        inputs.tolist(),
        scalars.tolist(),
        specs,
        listed,
        ops.astype(np.int64),
        operands.astype(np.int64),
        live.tolist(),
        carried.tolist(),
    )


def carried_pairs(parts: Parts) -> list[tuple[int, int]]:
    """The carried inputs, each with the operand number that it takes. Raises CaseError if a number is left over."""
    numbers = parts.carried
    if len(numbers) % 2:
        raise CaseError("undecodable_frame", f"{len(numbers)} numbers of carried inputs are not pairs")
    return [*zip(numbers[::2], numbers[1::2], strict=True)]


def _type_below(count: int) -> str:
    """NumPy's name for the narrowest integers that hold the numbers below `count`."""
    if count <= 1 << 8:
        return "<u1"
    return "<u2" if count <= 1 << 16 else "<u4"


def _packed(numbers: Sequence[int] | Integers, count: int) -> bytes:
    return np.asarray(numbers, _type_below(count)).tobytes()


def _unpacked(raw: bytes, count: int) -> Numbers:
    try:
        return np.frombuffer(raw, _type_below(count))
    except ValueError:
        text = f"{len(raw)} bytes are not an array of numbers below {count}"
        raise CaseError("undecodable_frame", text) from None
