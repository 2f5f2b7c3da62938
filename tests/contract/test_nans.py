"""Which NaN a NaN is: the one of its dtype where it is computed, the one that came where it is moved or selected.

In every manner, and by the twins alone, which are all there is where nothing can be compiled.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_protos.errors import DtypeError
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category, Op
from fusewire_protos.ops.shapes import Shape
from tests.attributes import sample_attributes
from tests.contract.harness import Runner, assert_one_meaning
from tests.contract.service import Service
from tests.kernels.programs import Writer, meaning
from tests.strategies import Work
from tests.tolerances import assert_same_bytes

Array = npt.NDArray[Any]

pytestmark = pytest.mark.timeout(300)  # while nothing is in the cache, all of it is compiled

_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_THE_ONE = {dtypes.float16: 0x7E00, dtypes.bfloat16: 0x7FC0, dtypes.float32: 0x7FC00000, dtypes.float64: 0x7FF8 << 48}
_SHAPE = (3, 41)  # rows of some vectors and a rest
_ROWS, _COLUMNS = _SHAPE
# Bits of the double that a binding carries: without payload, quiet with one, signalling with one. Either sign.
_SCALARS = (0xFFF8 << 48, 0x7FF8_1234_5678_9ABC, 0x7FF1_2345_6789_ABCD, 0xFFF0_0000_0000_0001)


class _Asked(NamedTuple):
    """A row, and the bits that it gives."""

    work: Work
    expected: Sequence[Array]


def _assert_bits(runner: Runner, asked: Sequence[_Asked]) -> None:
    """Every manner gives these bits, and so do the twins. Compiles what all of them need at once."""
    assert_one_meaning(runner, [each.work for each in asked])
    for work, expected in asked:
        for results in (runner.run(work), meaning(*work)):
            for result, wanted in zip(results, expected, strict=True):
                assert_same_bytes(result, wanted)


def _unsigned(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def _given(dtype: DType, shape: Shape = _SHAPE, *, first: int = 0) -> Array:
    """NaNs of either sign, quiet and signalling, with payload and without; from the `first` on, over and over."""
    infinity = int(_unsigned(np.array(np.inf, dtypes.to_numpy(dtype))))
    quiet = _THE_ONE[dtype] - infinity
    fractions = (quiet, 1, quiet + 1, quiet - 1, 2 * quiet - 1)
    sign = 1 << (8 * dtype.itemsize_bytes - 1)
    patterns = [infinity + fraction + negative for fraction in fractions for negative in (sign, 0)]
    bits = np.array(patterns, f"u{dtype.itemsize_bytes}")
    return np.resize(np.roll(bits, -first), shape).view(dtypes.to_numpy(dtype))


def _the_one(dtype: DType, shape: Shape = _SHAPE) -> Array:
    return np.full(shape, _THE_ONE[dtype], f"u{dtype.itemsize_bytes}").view(dtypes.to_numpy(dtype))


def _mask() -> Array:
    return np.resize(np.array([True, False, False]), _SHAPE)


def _selected(mask: Array, x: Array, y: Array) -> Array:
    """The bits of x or y, which NumPy moves as integers."""
    return np.where(mask, _unsigned(x), _unsigned(y)).view(x.dtype)


# ---- what is computed ----


def _computing(dtype: DType) -> Iterator[tuple[Op, Attributes]]:
    """The ops that compute a float of floats, in each form."""
    for op in catalogue.OPS:
        if op.category in _FORMS and not op.selects:
            for axes, keepdims in _FORMS[op.category]:
                form = sample_attributes(op, axes, keepdims=keepdims)
                if _is_float(op, dtype, form):
                    yield op, form


_FORMS: dict[Category, tuple[tuple[Shape, bool], ...]] = {  # axes, and whether they are kept
    Category.POINTWISE: (((), False),),
    Category.REDUCTION: (((1,), False), ((0,), True)),
    Category.COMPOSITE: (((1,), False), ((0,), True)),
}


def _is_float(op: Op, dtype: DType, attributes: Attributes) -> bool:
    if op.name == "astype":
        return False
    try:
        return op.dtype_rule((dtype,) * op.least_operands, attributes).result.is_floating
    except DtypeError:
        return False


@pytest.mark.parametrize("dtype", _FLOATS, ids=lambda dtype: dtype.name)
def test_whatever_an_op_computes_of_nans_is_the_one_nan(runner: Runner, dtype: DType) -> None:
    """Every op at once; which of its operands is taken for the result is seen from none."""
    writer = Writer()
    operands = [writer.input(*_SHAPE, dtype=dtype) for _ in range(3)]
    setting = writer.scalar(dtype)
    results = []
    for op, attributes in _computing(dtype):
        behind = [setting] if op.category is Category.COMPOSITE else operands[1:]
        results.append(writer.op(op.name, *[operands[0], *behind][: op.least_operands], attributes=attributes))
    results += [writer.astype(operands[0], dtype=other.code) for other in _FLOATS if other is not dtype]
    program = writer.program(*results)
    inputs = tuple(_given(dtype, first=first) for first in (0, 1, 5))
    specs = [program.result_spec(index) for index in program.live]
    expected = [_the_one(spec.dtype, spec.shape) for spec in specs]
    _assert_bits(runner, [_Asked(Work(program, inputs, (0.5,), ()), expected)])


def _product(dtype: DType, a: Shape, b: Shape) -> _Asked:
    writer = Writer()
    program = writer.program(writer.matmul(writer.input(*a, dtype=dtype), writer.input(*b, dtype=dtype)))
    spec = program.result_spec(0)
    return _Asked(Work(program, (_given(dtype, a), _given(dtype, b)), (), ()), [_the_one(dtype, spec.shape)])


# A few rows, one, a lone element, more than are read where they lie, a batch.
_PRODUCTS = (((3, 5), (5, 41)), ((1, 5), (5, 41)), ((5,), (5,)), ((40, 300), (300, 9)), ((2, 3, 5), (2, 5, 7)))


def test_every_element_of_a_product_of_nans_is_the_one_nan(runner: Runner) -> None:
    _assert_bits(runner, [_product(dtype, a, b) for dtype in _FLOATS for a, b in _PRODUCTS])


def _powers_of_one(dtype: DType) -> _Asked:
    """Of NaNs as they come, and of NaNs that an op before left as it found them."""
    writer = Writer()
    x, zero, one = (writer.input(*_SHAPE, dtype=dtype) for _ in range(3))
    found = writer.abs(x)
    results = [writer.power(x, zero), writer.power(one, x), writer.power(found, zero), writer.power(one, found)]
    zeros, ones = (np.full(_SHAPE, number, dtypes.to_numpy(dtype)) for number in (0, 1))
    return _Asked(Work(writer.program(*results), (_given(dtype), zeros, ones), (), ()), [ones] * len(results))


def test_the_power_0_of_any_nan_is_1_and_so_is_1_to_the_power_of_one(runner: Runner) -> None:
    """A platform's power tells signalling NaNs from quiet ones, and whether one is quiet is left open."""
    _assert_bits(runner, [_powers_of_one(dtype) for dtype in _FLOATS])


# ---- what is moved ----


def _moves(dtype: DType) -> _Asked:
    writer = Writer()
    mask = writer.input(*_SHAPE, dtype=dtypes.bool_)
    x, y = writer.input(*_SHAPE, dtype=dtype), writer.input(*_SHAPE, dtype=dtype)
    indices = writer.input(4, dtype=dtypes.int64)
    region = {"axes": (1,), "lengths": (7,), "steps": (2,), "dropped": ()}
    moved = [
        writer.reshape(x, shape=(_COLUMNS, _ROWS)),
        writer.transpose(x, permutation=(1, 0)),
        writer.broadcast_to(x, shape=(2, *_SHAPE)),
        writer.slice(x, (1,), (_COLUMNS,), (-1,)),
        writer.concat(x, y, axis=1),
        writer.assign_slice(x, writer.slice(y, (1,), (7,)), **region),
        writer.take(x, indices, axis=1),
        writer.where(mask, x, y),
        writer.astype(x, dtype=dtype.code),
    ]
    given, other, picked = _given(dtype), _given(dtype, first=3), np.array([40, 0, 7, 7])
    replaced = given.copy()
    replaced[:, 1:15:2] = other[:, 5:12]
    expected = [
        given.reshape(_COLUMNS, _ROWS),
        given.T,
        np.broadcast_to(given, (2, *_SHAPE)),
        given[:, ::-1],
        np.concatenate([given, other], axis=1),
        replaced,
        given[:, picked],
        _selected(_mask(), given, other),
        given,
    ]
    program = writer.program(*moved)
    return _Asked(Work(program, (_mask(), given, other, picked), (), (_COLUMNS - 1, 5, 1)), expected)


def test_what_is_moved_or_selected_keeps_the_bits_that_it_has(runner: Runner) -> None:
    _assert_bits(runner, [_moves(dtype) for dtype in _FLOATS])


def test_what_is_uploaded_is_read_again_bit_for_bit(service: Service) -> None:
    with service.connect() as session:
        for dtype in _FLOATS:
            given = _given(dtype)
            assert_same_bytes(session.array(given).numpy(), given)


# ---- where both meet ----


def _computed_among_given(dtype: DType) -> _Asked:
    """Values that nobody sees but by what selects among them and what is given, or moves them."""
    writer = Writer()
    mask = writer.input(*_SHAPE, dtype=dtypes.bool_)
    x, y = writer.input(*_SHAPE, dtype=dtype), writer.input(*_SHAPE, dtype=dtype)
    column = writer.input(_ROWS, 1, dtype=dtype)
    root, total = writer.sqrt(x), writer.add(x, y)
    greatest = writer.max(x, axes=(1,), keepdims=True)
    sums = writer.sum(x, axes=(0,), keepdims=True)
    rows = {"axes": (0,), "lengths": (1,), "steps": (1,), "dropped": ()}
    results = [
        *[writer.where(mask, computed, y) for computed in (root, total, greatest, sums)],
        writer.where(mask, y, root),
        writer.where(mask, writer.where(mask, y, root), writer.negative(total)),
        writer.concat(root, y, axis=0),
        writer.assign_slice(y, writer.slice(total, (0,), (1,)), **rows),
        writer.take(total, writer.astype(writer.isnan(sums), dtype=dtypes.int64.code), axis=1),
        writer.transpose(writer.abs(root), permutation=(1, 0)),
        writer.broadcast_to(greatest, shape=_SHAPE),
        writer.broadcast_to(writer.where(writer.isnan(greatest), column, greatest), shape=_SHAPE),
    ]
    given, other, one = _given(dtype), _given(dtype, first=3), _the_one(dtype)
    expected = [
        *[_selected(_mask(), one, other) for _ in range(4)],
        _selected(_mask(), other, one),
        _selected(_mask(), other, one),
        np.concatenate([one, other]),
        np.concatenate([one[:1], other[1:]]),
        _the_one(dtype, (_ROWS, 1, _COLUMNS)),
        one.T,
        one,
        np.broadcast_to(other[:, :1], _SHAPE),
    ]
    inputs = (_mask(), given, other, other[:, :1])
    return _Asked(Work(writer.program(*results), inputs, (), (0, 0)), expected)


def test_a_computed_nan_is_the_one_nan_beside_given_ones_that_stay_as_they_are(runner: Runner) -> None:
    _assert_bits(runner, [_computed_among_given(dtype) for dtype in _FLOATS])


def _mixed(first: DType, second: DType) -> _Asked:
    writer = Writer()
    mask = writer.input(*_SHAPE, dtype=dtypes.bool_)
    x, y = writer.input(*_SHAPE, dtype=first), writer.input(*_SHAPE, dtype=second)
    rows = {"axes": (0,), "lengths": (2,), "steps": (1,), "dropped": ()}
    results = [
        writer.where(mask, x, y),
        writer.concat(x, y, axis=0),
        writer.assign_slice(x, writer.slice(y, (0,), (2,)), **rows),
    ]
    program = writer.program(*results)
    given, other = _given(first), _given(second)
    wide = program.result_spec(program.live[0]).dtype
    left, right = [array if dtype is wide else _the_one(wide) for dtype, array in ((first, given), (second, other))]
    assigned = np.concatenate([given[:1], _the_one(first)[1:]])
    expected = [_selected(_mask(), left, right), np.concatenate([left, right]), assigned]
    return _Asked(Work(program, (_mask(), given, other), (), (0, 1)), expected)


def test_only_what_must_be_cast_becomes_the_one_nan_where_dtypes_are_mixed(runner: Runner) -> None:
    _assert_bits(runner, [_mixed(first, second) for first, second in permutations(_FLOATS, 2)])


# ---- scalars ----


def _of_scalar(dtype: DType, value: float) -> _Asked:
    """Selects the scalar, shows it in views, and creates arrays of it."""
    writer = Writer()
    mask, x = writer.input(*_SHAPE, dtype=dtypes.bool_), writer.input(*_SHAPE, dtype=dtype)
    scalar = writer.scalar(dtype)
    program = writer.program(
        writer.where(mask, scalar, x),
        writer.where(mask, x, scalar),
        writer.broadcast_to(scalar, shape=_SHAPE),
        writer.astype(scalar, dtype=dtype.code),
        writer.full(scalar, shape=_SHAPE, dtype=dtype.code),
        writer.where(mask, writer.full(scalar, shape=_SHAPE, dtype=dtype.code), x),
        writer.arange(scalar, scalar, length=_COLUMNS, dtype=dtype.code),
    )
    given, one = _given(dtype), _the_one(dtype)
    selected = [_selected(_mask(), one, given), _selected(_mask(), given, one)]
    expected = [*selected, one, _the_one(dtype, ()), one, selected[0], _the_one(dtype, (_COLUMNS,))]
    return _Asked(Work(program, (_mask(), given), (value,), ()), expected)


def test_a_scalar_that_is_nan_is_the_one_nan_whatever_its_binding_carries(runner: Runner) -> None:
    values = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in _SCALARS]
    _assert_bits(runner, [_of_scalar(dtype, value) for dtype in _FLOATS for value in values])
