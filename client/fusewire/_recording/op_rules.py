"""Applies the shape and dtype rules to an op that has not been recorded on operands of these specs before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fusewire._recording.signature import ArraySpec, OperandSpec, Signature, intern_signature
from fusewire_protos.frames import Scalar
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op

PYTHON_SCALARS = (bool, int, float)

Canonical = Callable[[Any], Scalar]
Checked = Callable[[DType, Canonical], Canonical]


class Learnt(NamedTuple):
    """What recording an op needs once the rules have been applied to the op and the specs of its arrays."""

    signature: int  # its number
    result: ArraySpec


class LearntBeside(NamedTuple):
    """The same for an op of an array and a Python scalar."""

    signature: int
    result: ArraySpec
    canonical: Canonical  # converts the scalar to the value that is sent


class LearntOp(NamedTuple):
    """The same for an op of any number of arrays and scalars."""

    signature: int
    result: ArraySpec
    canonicals: tuple[Canonical, ...]  # for each scalar


# By the op, its attributes, and for each operand the spec of an array or the type of a scalar, Python's or NumPy's.
# `record_known` finds in it what `record_op.apply` has learnt. It drops no entry, as the registry of signatures.
known_ops: dict[tuple[Op, Attributes, tuple[ArraySpec | type, ...]], LearntOp] = {}


def learn(op: Op, specs: tuple[ArraySpec, ...]) -> Learnt:
    """Applies the rules to an op of arrays without attributes. Raises what `intern_signature` raises."""
    signature = intern_signature(op, specs, ())
    return Learnt(signature.number, signature.result)


def learn_beside(op: Op, spec: ArraySpec, kind: type, checked: Checked | None, *, is_reflected: bool) -> LearntBeside:
    """Applies the rules to an op of an array and a Python scalar of type `kind`: bool, int or float.

    `checked` is given for an op that refuses some Python scalars. It takes a dtype and the function that converts
    scalars to this dtype. It returns a function that does the same, but raises for scalars that the op refuses.
    Raises what `intern_signature` raises.
    """
    dtype = dtypes.of_scalar(kind(), spec.dtype)
    signature = _signature_beside(op, spec, dtype, is_reflected=is_reflected)
    computed = signature.result.dtype
    if dtype.is_integer and computed.is_floating:  # as in a division, where the integer need not fit `dtype`
        dtype = computed
        signature = _signature_beside(op, spec, dtype, is_reflected=is_reflected)
    canonical = canonical_of(dtype)
    return LearntBeside(signature.number, signature.result, canonical if checked is None else checked(dtype, canonical))


def canonical_of(dtype: DType) -> Canonical:
    """Returns the function that converts a Python scalar to the value of `dtype` that is sent.

    This function raises OverflowError if the scalar is out of range for `dtype`.
    """
    if dtype.is_floating:
        return float
    return bool if dtype.is_boolean else _INTEGERS[dtype]


def _signature_beside(op: Op, spec: ArraySpec, scalar: DType, *, is_reflected: bool) -> Signature:
    operands: tuple[OperandSpec, ...] = (scalar, spec) if is_reflected else (spec, scalar)
    return intern_signature(op, operands, ())


def _integer_of(dtype: DType) -> Canonical:
    limits = np.iinfo(dtypes.to_numpy(dtype))
    least, most = int(limits.min), int(limits.max)

    def canonical(value: Any) -> int:
        if not least <= value <= most:
            raise OverflowError(f"{value} is out of range for {dtype.name}")
        return int(value)

    return canonical


_INTEGERS = {dtype: _integer_of(dtype) for dtype in dtypes.ALL if dtype.is_integer}
