"""What `x.view(dtype)` returns: the bits of an array's elements as elements of another dtype."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from fusewire._api.array import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.functions.arrangement.joining import stack
from fusewire._api.ops.bits import bits_of, of_bits, unsigned_of
from fusewire._api.ops.operations import dtype_of
from fusewire._errors import ArgumentError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape


def viewed(x: Array, dtype: Any = None) -> Array:
    """Returns the elements whose bits are those of `x`, in little-endian order; without a dtype a copy of `x`.

    The last axis grows or shrinks with the size of an element. The result is a value: writing to it leaves `x` as it
    was. What is not 0 is True, and a NaN of bfloat16 is that of `numpy.nan`. Raises ArgumentError if the last axis is
    no whole number of elements of the dtype, and DtypeError for what is no dtype.
    """
    wanted = x.dtype if dtype is None else dtype_of(dtype)
    if wanted is x.dtype:
        return x.copy()
    shape = _viewed_shape(x, wanted)
    flat = x if x.shape else x.reshape(1)
    parts = _side_by_side(flat) if isinstance(flat, ComplexArray) else flat
    if wanted.is_complex:
        found = _as_real(parts, dtypes.part_of(wanted))
        return ComplexArray(found[..., 0::2], found[..., 1::2]).reshape(shape)
    return _as_real(parts, wanted).reshape(shape)


def _viewed_shape(x: Array, dtype: DType) -> Shape:
    if not x.shape:
        if x.itemsize != dtype.itemsize_bytes:
            raise ArgumentError(
                f"elements of {x.dtype.name} have {x.itemsize} bytes and those of {dtype.name} {dtype.itemsize_bytes}: "
                "an array of rank 0 has no axis that could grow or shrink"
            )
        return ()
    size_bytes = x.shape[-1] * x.itemsize
    if size_bytes % dtype.itemsize_bytes:
        raise ArgumentError(
            f"the last axis has {size_bytes} bytes, which is no multiple of the {dtype.itemsize_bytes} bytes of an "
            f"element of {dtype.name}"
        )
    return (*x.shape[:-1], size_bytes // dtype.itemsize_bytes)


def _side_by_side(x: ComplexArray) -> Array:
    return stack(x.parts, axis=-1).reshape(*x.shape[:-1], 2 * x.shape[-1])


def _as_real(x: Array, dtype: DType) -> Array:
    if x.dtype is dtype:  # a part of complex numbers
        return x
    return of_bits(_regrouped(bits_of(x), dtype.itemsize_bytes), dtype)


def _regrouped(bits: Array, size_bytes: int) -> Array:
    """Returns unsigned integers of this size whose bits are those of others."""
    *rows, length = bits.shape
    given_bytes = bits.itemsize
    if given_bytes > size_bytes:
        places = range(0, 8 * given_bytes, 8 * size_bytes)
        parts = [(bits >> place).astype(unsigned_of(size_bytes)) for place in places]
        return stack(parts, axis=-1).reshape(*rows, length * len(places))
    if given_bytes < size_bytes:
        places = range(0, 8 * size_bytes, 8 * given_bytes)
        wide = bits.astype(unsigned_of(size_bytes)).reshape(*rows, length // len(places), len(places))
        shifted: list[Array] = [wide[..., number] << place for number, place in enumerate(places)]
        return reduce(or_, shifted)
    return bits
