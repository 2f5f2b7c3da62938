"""Signatures: an op together with the specs of its operands and result, interned so that equal means identical.

Recording an op that was recorded before with the same kinds of operands finds its signature in a dict and runs no
rule. Signatures are numbered, and a recorded op refers to its own by that number; recorded loops are compared as
lists of such numbers. The registry holds one entry for each op and operand shapes a process ever records, and
never forgets: a number may stand in any recorder's tape.

There is no lock: a finaliser or signal handler that records may come between anywhere. Of two that intern the same
parts at once, one has its number for nothing.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from fusewire_protos import catalogue
from fusewire_protos.catalogue import Attributes, Category, Op
from fusewire_protos.dtypes import DType
from fusewire_protos.shapes import Shape, Spec


class ArraySpec:
    """The spec of an array, interned: equal specs are one object, so that it is a fast key."""

    __slots__ = ("dtype", "shape", "spec")

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
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
    attributes: Attributes
    result: ArraySpec
    scalars: tuple[DType, ...]  # those among the operands
    starts: int  # how many slice starts a use of it takes
    canonical: tuple[object, ...]  # an order among signatures that is the same in every process


_specs: dict[Spec, ArraySpec] = {}
_signatures: dict[int, Signature] = {}  # by number
_by_parts: dict[tuple[Op, tuple[OperandSpec, ...], Attributes], Signature] = {}
_next_number = count()


def intern_spec(spec: Spec) -> ArraySpec:
    """The one ArraySpec of `spec`."""
    known = _specs.get(spec)
    return known if known is not None else _specs.setdefault(spec, ArraySpec(spec))


def intern_signature(op: Op, operands: tuple[OperandSpec, ...], attributes: Attributes) -> Signature:
    """The one signature of these parts. Raises ShapeError, DtypeError or ArgumentError if they do not fit."""
    key = (op, operands, attributes)
    known = _by_parts.get(key)
    if known is not None:
        return known
    specs = tuple(Spec(operand, ()) if isinstance(operand, DType) else operand.spec for operand in operands)
    result = intern_spec(catalogue.infer(op, specs, attributes))
    signature = _signature(next(_next_number), op, operands, attributes, result)
    _signatures[signature.number] = signature  # before anybody finds it
    return _by_parts.setdefault(key, signature)


def signature_of(number: int) -> Signature:
    """The signature with this number."""
    return _signatures[number]


def _signature(
    number: int, op: Op, operands: tuple[OperandSpec, ...], attributes: Attributes, result: ArraySpec
) -> Signature:
    scalars = tuple(operand for operand in operands if isinstance(operand, DType))
    canonical_operands = tuple(_canonical_operand(operand) for operand in operands)
    canonical = (op.category is not Category.PRODUCT, op.code, canonical_operands, repr(attributes))
    return Signature(number, op, operands, attributes, result, scalars, op.starts(attributes), canonical)


def _canonical_operand(operand: OperandSpec) -> tuple[object, ...]:
    if isinstance(operand, DType):
        return (operand.code,)
    return (operand.dtype.code, operand.shape)
