"""A signature is an op with the specs of its operands and its result. Equal signatures are one object.

If an op was recorded before on operands of the same specs, its signature is found in a dict, and no shape or dtype rule
is applied. Signatures are numbered. A recorded op holds the number of its signature, and loops are found by comparing
lists of these numbers. The registry gets one entry for each op and operand specs that the process records. It drops no
entry, because any recorder's tape may hold the number.

The limit on an array's bytes belongs to a session and is part of the key of a spec. So a signature that is found here
was checked against the limit of the session that asks, and sessions of different limits share no signature.

There is no lock, because a finaliser or signal handler that records may interrupt this code anywhere. When two threads
intern the same parts at once, one of the two numbers stays unused.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple
from zlib import crc32

from fusewire._errors import QuotaExceeded
from fusewire_protos.ops import inference
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category, Op
from fusewire_protos.ops.shapes import Shape, Spec


class ArraySpec:
    """The spec of an array in sessions with one limit. Equal specs are one object, which makes a fast key."""

    __slots__ = ("dtype", "limit_bytes", "shape", "size_bytes", "spec")

    def __init__(self, spec: Spec, limit_bytes: int) -> None:
        self.spec = spec
        self.limit_bytes = limit_bytes  # limits.array_bytes of these sessions
        self.dtype: DType = spec.dtype
        self.shape: Shape = spec.shape
        self.size_bytes = spec.size_bytes

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


OperandSpec = ArraySpec | DType  # a DType stands for a scalar, whose value is a binding


class Signature(NamedTuple):
    """An op as recorded; `number` is unique among the signatures of this process."""

    number: int
    op: Op
    operands: tuple[OperandSpec, ...]
    specs: tuple[Spec, ...]  # of all operands, also of scalars
    attributes: Attributes
    result: ArraySpec
    scalars: tuple[DType, ...]  # the dtypes of the scalars among the operands
    cells: tuple[int, ...]  # the index of each operand among the operands of a record, where arrays precede scalars
    starts: int  # how many slice starts a record takes
    canonical: tuple[object, ...]  # a sort key; it gives the same order in every process
    checksum: int  # of the sort key: the same in every process


_specs: dict[tuple[Spec, int], ArraySpec] = {}
_signatures: dict[int, Signature] = {}  # by number
_by_parts: dict[tuple[Op, tuple[OperandSpec, ...], Attributes], Signature] = {}
# Signatures of ops without array operands. The key ends with the limit in bytes, which array operands would bring.
_creations: dict[tuple[Op, tuple[DType, ...], Attributes, int], Signature] = {}
_next_number = count()


def intern_spec(spec: Spec, limit_bytes: int) -> ArraySpec:
    """Returns the one ArraySpec of `spec` in sessions whose arrays may have `limit_bytes`."""
    key = (spec, limit_bytes)
    known = _specs.get(key)
    return known if known is not None else _specs.setdefault(key, ArraySpec(spec, limit_bytes))


def intern_signature(op: Op, operands: tuple[OperandSpec, ...], attributes: Attributes) -> Signature:
    """Returns the one signature of these parts. At least one operand is an array.

    Raises ShapeError, DtypeError or ArgumentError if the parts do not fit, QuotaExceeded if the result is too large.
    """
    key = (op, operands, attributes)
    known = _by_parts.get(key)
    if known is not None:
        return known
    limit_bytes = next(operand.limit_bytes for operand in operands if isinstance(operand, ArraySpec))
    return _by_parts.setdefault(key, _new_signature(op, operands, attributes, limit_bytes))


def intern_creation(op: Op, scalars: tuple[DType, ...], attributes: Attributes, limit_bytes: int) -> Signature:
    """Does the same as `intern_signature` for an op without array operands. Arrays may have `limit_bytes`."""
    key = (op, scalars, attributes, limit_bytes)
    known = _creations.get(key)
    if known is not None:
        return known
    return _creations.setdefault(key, _new_signature(op, scalars, attributes, limit_bytes))


def signature_of(number: int) -> Signature:
    return _signatures[number]


def _new_signature(op: Op, operands: tuple[OperandSpec, ...], attributes: Attributes, limit_bytes: int) -> Signature:
    specs = tuple(Spec(operand, ()) if isinstance(operand, DType) else operand.spec for operand in operands)
    inferred = inference.infer(op, specs, attributes)
    if inferred.size_bytes > limit_bytes:
        raise QuotaExceeded(inference.too_large(op, specs, inferred, limit_bytes)) from None  # hides the failed look-up
    signature = _signature(next(_next_number), op, operands, specs, attributes, intern_spec(inferred, limit_bytes))
    _signatures[signature.number] = signature  # before another thread can find it
    return signature


def _signature(
    number: int,
    op: Op,
    operands: tuple[OperandSpec, ...],
    specs: tuple[Spec, ...],
    attributes: Attributes,
    result: ArraySpec,
) -> Signature:
    scalars = tuple(operand for operand in operands if isinstance(operand, DType))
    arrays, values = count(), count(len(operands) - len(scalars))
    cells = tuple([next(values if isinstance(operand, DType) else arrays) for operand in operands])
    canonical_operands = tuple(_canonical_operand(operand) for operand in operands)
    canonical = (op.category is not Category.PRODUCT, op.code, canonical_operands, repr(attributes))
    starts, checksum = op.starts(attributes), crc32(repr(canonical).encode())
    return Signature(number, op, operands, specs, attributes, result, scalars, cells, starts, canonical, checksum)


def _canonical_operand(operand: OperandSpec) -> tuple[object, ...]:
    if isinstance(operand, DType):
        return (operand.code,)
    return (operand.dtype.code, operand.shape)
