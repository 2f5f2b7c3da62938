"""What all draws share: the key and the counters of a generator, random bits, and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from threading import Lock
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import add, multiply
from fusewire._api.functions.arrangement.places import take_along_axis
from fusewire._api.functions.reduction.reductions import argmax
from fusewire._api.ops.operands import session_of
from fusewire._api.ops.operations import astype, dtype_of, shape_of
from fusewire._api.random.keys import Key, check_key, key_number, random_bits
from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire._recording.bodies.body import check_may_draw
from fusewire._recording.record_op import apply_to_one
from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape

Size = int | Sequence[int] | None

_COUNTERS = 2**64
_NUMBERS = (int, float)  # NumPy takes microseconds for what Python finds at once
# Bits of a significand: a float below 1 that has so many random bits is exact.
_SIGNIFICAND_BITS = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


class Draws:
    """Draws bits and the numbers that are made of them. Each element takes one counter of Philox, from 0 on."""

    def __init__(self, seed: Any = None) -> None:
        if isinstance(seed, Array):
            check_key(seed)
        self._key: Key = seed if isinstance(seed, Array) else key_number(seed)
        self._next_counter = 0
        self._lock = Lock()

    def __getstate__(self) -> tuple[Key, int]:
        """Returns what determines the next draws, so that a copy or a pickle draws the same ones."""
        with self._lock:
            return self._key, self._next_counter

    def __setstate__(self, state: tuple[Key, int]) -> None:
        self._lock = Lock()
        self._key, self._next_counter = state

    def _upper_bits(self, shape: Shape, count: int, beside: Sequence[Any]) -> Array:
        bits = self._bits(shape, beside)
        return bits if count == 64 else bits >> (64 - count)

    def _bits(self, shape: Shape, beside: Sequence[Any] = ()) -> Array:
        """Returns random bits at the next counters, in the session of the arrays that are drawn for."""
        known = self._key if isinstance(self._key, Array) else None
        session = session_of(beside if known is None else [known])  # may connect: other threads draw meanwhile
        check_may_draw(session.recorder(), known)
        with self._lock:
            key, start = self._key, self._next_counter
            self._next_counter = (start + prod(shape)) % _COUNTERS
        return random_bits(session, key, shape, start)

    def _random(self, shape: Shape, dtype: DType, beside: Sequence[Any]) -> Array:
        count = _SIGNIFICAND_BITS[dtype]
        return astype(self._upper_bits(shape, count, beside), dtype) * 2.0**-count

    def _transformed(self, name: str, shape: Shape, dtype: Any, beside: Sequence[Any]) -> Array:
        wanted = float_dtype(dtype)
        return astype(apply_to_one(BY_NAME[name], self._bits(shape, beside), ()), wanted, copy=False)

    def _scaled(self, name: str, loc: Any, scale: Any, size: Size, dtype: Any) -> Array:
        wanted, shape = float_dtype(dtype), drawn_shape(size, loc, scale)
        check_not_negative("scale", scale)
        return moved(self._transformed(name, shape, wanted, (loc, scale)), loc, scale, wanted)


def drawn_shape(size: Size, *parameters: Any) -> Shape:
    """Returns the shape of what is drawn."""
    ranked = [each for each in map(_shape_of_parameter, parameters) if each]
    of_parameters = shapes.broadcast(*ranked) if ranked else ()
    if size is None:
        return of_parameters
    wanted = shape_of(size)
    if ranked and shapes.broadcast(wanted, of_parameters) != wanted:
        raise ShapeError(f"the size {wanted} does not take parameters of shape {of_parameters}")
    return wanted


def _shape_of_parameter(given: Any) -> Shape:
    if isinstance(given, _NUMBERS):
        return ()
    return given.shape if isinstance(given, Array) else np.shape(given)


def parameter(given: Any) -> Any:
    """Returns a parameter as an operand: what is neither an array nor a scalar becomes an array of NumPy's."""
    return given if isinstance(given, Array | float | int | np.generic) else np.asarray(given)


def float_dtype(dtype: Any) -> DType:
    wanted = dtypes.float64 if dtype is None else dtype_of(dtype)
    if not wanted.is_floating:
        raise DtypeError(f"random floats have a float dtype, not {wanted.name}")
    return wanted


def moved(drawn: Array, loc: Any, scale: Any, dtype: DType) -> Array:
    """Returns loc + scale · drawn in the dtype of what is drawn."""
    moved = drawn
    if not (isinstance(scale, _NUMBERS) and scale == 1):
        moved = multiply(moved, parameter(scale))
    if not (isinstance(loc, _NUMBERS) and loc == 0):
        moved = add(moved, parameter(loc))
    return astype(moved, dtype, copy=False)


def first_accepted(accepted: Array, numbers: Array) -> Array:
    """Returns for each element the number of the first try along the first axis that is accepted, or of the first."""
    first = argmax(accepted, axis=0, keepdims=True)
    return take_along_axis(numbers, first, axis=0).reshape(numbers.shape[1:])


def check_not_negative(name: str, given: Any) -> None:
    """Raises ArgumentError for a number below 0 that this machine knows."""
    is_negative = given < 0 if isinstance(given, _NUMBERS) else not isinstance(given, Array) and np.less(given, 0).any()
    if is_negative:
        raise ArgumentError(f"{name} < 0: {given}")


def check_positive(name: str, given: Any) -> None:
    """Raises ArgumentError for a number that is not above 0 and that this machine knows."""
    if not isinstance(given, Array) and not np.all(np.asarray(given) > 0):
        raise ArgumentError(f"{name} <= 0: {given}")


def check_probability(p: Any) -> None:
    if not isinstance(p, Array) and not np.all((np.asarray(p) >= 0) & (np.asarray(p) <= 1)):
        raise ArgumentError(f"a probability is from 0 to 1, not {p}")
