"""Functions about dtypes: which there are, what they promote to, and the limits of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.ops.operations import dtype_of
from fusewire._errors import DtypeError
from fusewire._recording.record_op import PYTHON_SCALARS
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "promote_types", "result_type"]

_NUMBERS = (*PYTHON_SCALARS, complex)

KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (dtypes.bool_,),
    "signed integer": dtypes.SIGNED,
    "unsigned integer": dtypes.UNSIGNED,
    "integral": (*dtypes.SIGNED, *dtypes.UNSIGNED),
    "real floating": dtypes.FLOATING,
    "complex floating": dtypes.COMPLEX,
    "numeric": (*dtypes.SIGNED, *dtypes.UNSIGNED, *dtypes.FLOATING, *dtypes.COMPLEX),
}

# The bits of the significand, with the leading one, and the greatest exponent of each float.
_FORMATS = {
    dtypes.float16: (11, 15),
    dtypes.bfloat16: (8, 127),
    dtypes.float32: (24, 127),
    dtypes.float64: (53, 1023),
}


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a float dtype, as Python floats. `tiny` is another name of `smallest_normal`."""

    dtype: DType
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float

    @property
    def tiny(self) -> float:
        return self.smallest_normal


@dataclass(frozen=True)
class IntegerLimits:
    """The limits of an integer dtype."""

    dtype: DType
    bits: int
    max: int
    min: int


def isdtype(dtype: Any, kind: Any) -> bool:
    """Returns whether `dtype` is of a kind: another dtype, a name of a kind, or a tuple of these.

    The names are "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" and
    "numeric". Raises DtypeError if `dtype` is no dtype, and ValueError for another name.

        fw.isdtype(fw.float32, "real floating")  # True
    """
    given = dtype_of(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(given, each) for each in kind)
    if not isinstance(kind, str):
        return given is dtype_of(kind)
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of dtypes; the kinds are {', '.join(KINDS)}")
    return given in KINDS[kind]


def can_cast(from_: Any, to: Any, /) -> bool:
    """Returns whether `from_`, a dtype or an array, promotes to the dtype `to` without another dtype.

    Raises TypeError for a Python scalar, whose dtype depends on what it meets.

        fw.can_cast(fw.int32, fw.float32)  # False: they promote to float64
    """
    if isinstance(from_, _NUMBERS):
        raise TypeError("can_cast takes a dtype or an array, and a Python scalar has no dtype")
    wanted = dtype_of(to)
    return dtypes.promote(_dtype_in(from_), wanted) is wanted


def finfo(type_: Any, /) -> FloatLimits:
    """Returns the limits of a float dtype, or of an array's. Raises DtypeError for another dtype.

    Those of a complex dtype are the limits of its parts.

        fw.finfo(fw.float32).eps  # 1.1920928955078125e-07
    """
    given = _dtype_in(type_)
    dtype = dtypes.part_of(given) if given.is_complex else given
    if dtype not in _FORMATS:
        raise DtypeError(f"finfo takes a float dtype, not {dtype.name}; use iinfo")
    digits, exponent = _FORMATS[dtype]
    eps = 2.0 ** (1 - digits)
    most, least_normal = (2.0 - eps) * 2.0**exponent, 2.0 ** (1 - exponent)
    return FloatLimits(dtype, 8 * dtype.itemsize_bytes, eps, most, -most, least_normal, least_normal * eps)


def iinfo(type_: Any, /) -> IntegerLimits:
    """Returns the limits of an integer dtype, or of an array's. Raises DtypeError for another dtype."""
    dtype = _dtype_in(type_)
    if not dtype.is_integer:
        raise DtypeError(f"iinfo takes an integer dtype, not {dtype.name}")
    bits = 8 * dtype.itemsize_bytes
    most = 2 ** (bits - dtype.is_signed) - 1
    return IntegerLimits(dtype, bits, most, -most - 1 if dtype.is_signed else 0)


def result_type(*operands: Any) -> DType:
    """Returns the common dtype of arrays, dtypes and Python scalars. Raises ValueError without any.

    fw.result_type(fw.int32, fw.float32)  # fusewire.float64
    fw.result_type(fw.float16, 1.0)  # fusewire.float16: a Python scalar adapts
    """
    if not operands:
        raise ValueError("result_type takes at least one array or dtype")
    strong = [_dtype_in(operand) for operand in operands if not _is_python_scalar(operand)]
    common = dtypes.promote_all(strong) if strong else dtypes.bool_
    for operand in operands:
        if _is_python_scalar(operand):
            common = dtypes.of_scalar(operand, common)
    return common


def promote_types(type1: Any, type2: Any, /) -> DType:
    """Returns the dtype to which arrays of two dtypes promote."""
    return dtypes.promote(dtype_of(type1), dtype_of(type2))


def _is_python_scalar(operand: Any) -> bool:
    return isinstance(operand, _NUMBERS) and not isinstance(operand, np.generic)  # np.float64 is a float too


def _dtype_in(operand: Any) -> DType:
    """Returns the dtype of an array or NumPy scalar. Any other operand names a dtype."""
    return dtype_of(operand.dtype if isinstance(operand, Array | np.ndarray | np.generic) else operand)
