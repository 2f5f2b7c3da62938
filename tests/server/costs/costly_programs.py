"""The bytes of programs that take a server long, each in a number of versions that differ in a dim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import MAX_RANK
from fusewire_protos.programs.parts import Parts, pack
from tests.server.costs import collisions

_FLOAT = dtypes.float32.code
_UNKNOWN_OP = 65535
_LARGE_DIM = 1 << 20
_RANK = MAX_RANK


def _code(name: str) -> int:
    return BY_NAME[name].code


def _packed(  # noqa: PLR0917 - the parts of a program
    inputs: Sequence[int],
    scalars: Sequence[int],
    specs: Sequence[Any],
    signatures: Sequence[Any],
    ops: Sequence[int],
    operands: Sequence[int],
    live: Sequence[int],
    carried: Sequence[int] = (),
) -> bytes:
    return pack(
        Parts(inputs, scalars, specs, signatures, np.array(ops, np.int64), np.array(operands, np.int64), live, carried)
    )


def _creations(specs: Sequence[Sequence[int]], last: int | None = None) -> bytes:
    """One creating op for each shape, of a scalar. `last` replaces the code of the last op."""
    count = len(specs)
    signatures: list[list[Any]] = [[_code("full"), [0], list(shape)] for shape in specs]
    if last is not None:
        signatures[-1][0] = last
    return _packed([], [0], [[_FLOAT]], signatures, range(count), [0] * count, [count - 1])


def distinct_ops(count: int, version: int) -> bytes:
    return _creations([[1, 1 + index, 1 + version] for index in range(count)])


def distinct_ops_and_an_unknown_one(count: int, version: int) -> bytes:
    return _creations([[1, 1 + index, 1 + version] for index in range(count)], _UNKNOWN_OP)


def too_large_ops(count: int, version: int) -> bytes:
    return _creations([[_LARGE_DIM, 1000 + index, 1 + version % 64] for index in range(count)])


def equal_ops(count: int, version: int, live: Sequence[int] | None = None) -> bytes:
    """A chain of one op on a vector."""
    spec, last = [_FLOAT, 4 + version], [count - 1]
    signatures = [[_code("negative"), [0]]]
    return _packed([0], [], [spec], signatures, [0] * count, range(count), last if live is None else live)


def distinct_inputs(count: int, version: int) -> bytes:
    """Inputs of specs that all differ, and one op."""
    specs = [[_FLOAT, *[1] * (_RANK - 2), 1 + index, 1 + version] for index in range(count)]
    return _packed(range(count), [], specs, [[_code("negative"), [0]]], [0], [0], [0])


def one_op_of_many_operands(count: int, version: int) -> bytes:
    vector = [_FLOAT, 4 + version]
    return _packed([0], [], [vector], [[_code("concat"), [0] * count, 0]], [0], [0] * count, [0])


def one_long_attribute(count: int, version: int) -> bytes:
    return _packed([], [0], [[_FLOAT]], [[_code("full"), [0], [version, *[1] * count]]], [0], [0], [0])


def attribute_of_empty_lists(count: int, version: int) -> bytes:
    return _packed([], [0], [[_FLOAT]], [[_code("full"), [0], [version, *[[]] * count]]], [0], [0], [0])


def deep_attribute(count: int, version: int) -> bytes:
    """A list in a list, and so on."""
    nested: list[Any] = [version]
    for _ in range(count):
        nested = [nested]
    return _packed([], [0], [[_FLOAT]], [[_code("full"), [0], nested]], [0], [0], [0])


def colliding_specs(count: int, version: int) -> bytes:
    """Specs that are not legal, and have one hash."""
    specs = [[first, second] for first, second in collisions.pairs(count)]
    return _packed([0] * count, [], specs, [[_code("negative"), [0]]], [0], [version % count], [0])


def colliding_signatures(count: int, version: int) -> bytes:
    """Signatures whose attributes are not legal, and have one hash."""
    signatures = [[_code("full"), [0], [first, second]] for first, second in collisions.pairs(count)]
    return _packed([], [0], [[_FLOAT]], signatures, range(count), [0] * count, [version % count])


def many_inputs(count: int, _version: int) -> bytes:
    """Inputs of one spec."""
    return _packed([0] * count, [], [[_FLOAT, 4]], [[_code("negative"), [0]]], [0], [0], [0])


def many_scalars(count: int, _version: int) -> bytes:
    return _packed([], [0] * count, [[_FLOAT]], [[_code("negative"), [0]]], [0], [0], [0])


def many_starts(count: int, _version: int) -> bytes:
    """Slices of every axis of an array."""
    axes = [*range(_RANK)]
    sliced = [_code("slice"), [0], axes, [1] * _RANK, [1] * _RANK, []]
    return _packed([0], [], [[_FLOAT, *[2] * _RANK]], [sliced], [0] * count, [0] * count, [count - 1])


def many_strided(count: int, _version: int) -> bytes:
    """Views of as many axes as there may be, each of one element."""
    strided = [_code("strided"), [0], [1] * _RANK, [2**40] * _RANK]
    return _packed([0], [], [[_FLOAT, 4]], [strided], [0] * count, [0] * count, [count - 1])


def many_carried(count: int, version: int) -> bytes:
    """The body of a loop each of whose inputs takes the one result."""
    carried = [number for each in range(count) for number in (each, count)]
    return _packed([0] * count, [], [[_FLOAT, 4 + version]], [[_code("negative"), [0]]], [0], [0], [0], carried)
