"""Signatures: an op together with the specs of its operands and result, interned so that equal means identical.

Recording an op that was recorded before with the same kinds of operands finds its signature in a dict and runs no
rule. Signatures are numbered, and a recorded op refers to its own by that number; recorded loops are compared as
lists of such numbers. The registry holds one entry for each op and operand shapes a process ever records, and
never forgets: a number may stand in any recorder's tape.

How large an array may be is a limit of the session, and part of what makes specs equal: what is found here was checked
against the limit of those it is found for, and sessions of different limits share nothing.

There is no lock: a finaliser or signal handler that records may come between anywhere. Of two that intern the same
parts at once, one has its number for nothing.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from fusewire._errors import QuotaExceeded
from fusewire_protos import catalogue
from fusewire_protos.catalogue import Attributes, Category, Op
from fusewire_protos.dtypes import DType
from fusewire_protos.shapes import Shape, Spec


class ArraySpec:
    """The spec of an array in sessions of one limit, interned: equal ones are one object, so that it is a fast key."""

    __slots__ = ("dtype", "limit_bytes", "shape", "spec")

    def __init__(self, spec: Spec, limit_bytes: int) -> None:
        self.spec = spec
        self.limit_bytes = limit_bytes  # limits.array_bytes of the sessions that it is of
        self.dtype: DType = spec.dtype
        self.shape: Shape = spec.shape

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


OperandSpec = ArraySpec | DType  # a DType stands for a scalar, whose value is a binding


class Signature(NamedTuple):
    """An op as recorded; `number` is its own among the signatures of this process."""

    number: int
    op: Op
    operands: tuple[OperandSpec, ...]
    specs: tuple[Spec, ...]  # of the operands, of scalars too
    attributes: Attributes
    result: ArraySpec
    scalars: tuple[DType, ...]  # those among the operands
    cells: tuple[int, ...]  # for each operand its place in a record, in which arrays precede scalars
    starts: int  # how many slice starts a use of it takes
    canonical: tuple[object, ...]  # an order among signatures that is the same in every process


_specs: dict[tuple[Spec, int], ArraySpec] = {}
_signatures: dict[int, Signature] = {}  # by number
_by_parts: dict[tuple[Op, tuple[OperandSpec, ...], Attributes], Signature] = {}
_creations: dict[tuple[Op, tuple[DType, ...], Attributes, int], Signature] = {}  # no operand tells their limit
_next_number = count()


def intern_spec(spec: Spec, limit_bytes: int) -> ArraySpec:
    """The one ArraySpec of `spec` in sessions whose arrays may have so many bytes."""
    key = (spec, limit_bytes)
    known = _specs.get(key)
    return known if known is not None else _specs.setdefault(key, ArraySpec(spec, limit_bytes))


def intern_signature(op: Op, operands: tuple[OperandSpec, ...], attributes: Attributes) -> Signature:
    """The one signature of these parts, of which one at least is an array.

    Raises ShapeError, DtypeError or ArgumentError if they do not fit, QuotaExceeded if the result is too large.
    """
    key = (op, operands, attributes)
    known = _by_parts.get(key)
    if known is not None:
        return known
    limit_bytes = next(operand.limit_bytes for operand in operands if isinstance(operand, ArraySpec))
    return _by_parts.setdefault(key, _new_signature(op, operands, attributes, limit_bytes))


def intern_creation(op: Op, scalars: tuple[DType, ...], attributes: Attributes, limit_bytes: int) -> Signature:
    """As `intern_signature`, for an op that takes no array, in sessions whose arrays may have so many bytes."""
    key = (op, scalars, attributes, limit_bytes)
    known = _creations.get(key)
    if known is not None:
        return known
    return _creations.setdefault(key, _new_signature(op, scalars, attributes, limit_bytes))


def signature_of(number: int) -> Signature:
    """The signature with this number."""
    return _signatures[number]


def _new_signature(op: Op, operands: tuple[OperandSpec, ...], attributes: Attributes, limit_bytes: int) -> Signature:
    specs = tuple(Spec(operand, ()) if isinstance(operand, DType) else operand.spec for operand in operands)
    inferred = catalogue.infer(op, specs, attributes)
    if inferred.size_bytes > limit_bytes:
        raise QuotaExceeded(catalogue.too_large(op, specs, inferred, limit_bytes)) from None  # no word of a cache
    signature = _signature(next(_next_number), op, operands, specs, attributes, intern_spec(inferred, limit_bytes))
    _signatures[signature.number] = signature  # before anybody finds it
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
    return Signature(number, op, operands, specs, attributes, result, scalars, cells, op.starts(attributes), canonical)


def _canonical_operand(operand: OperandSpec) -> tuple[object, ...]:
    if isinstance(operand, DType):
        return (operand.code,)
    return (operand.dtype.code, operand.shape)
