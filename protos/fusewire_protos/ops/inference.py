"""Tells the spec of an op's result, and checks operands, attributes and starts by the op's entry."""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_protos.errors import ArgumentError, DtypeError, ShapeError
from fusewire_protos.ops import shapes, strided
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Region, Shape, Spec
from fusewire_protos.ops.strided import Strided

_MOST_DESCRIBED = 8  # operands that an error message lists


def infer(op: Op, operands: tuple[Spec, ...], attributes: Attributes) -> Spec:
    """Returns the spec of the result.

    Raises ShapeError, DtypeError or ArgumentError, with a message that names the op and its operands.
    """
    check_arity(op, len(operands), attributes)
    try:
        result = op.dtype_rule(tuple(spec.dtype for spec in operands), attributes).result
        shape = op.shape_rule(tuple(spec.shape for spec in operands), attributes)
        return Spec(result, shapes.check(shape))
    except (ShapeError, DtypeError, ArgumentError) as error:
        raise type(error)(f"{op.name}({_described(operands)}): {error}") from None


def too_large(op: Op, operands: tuple[Spec, ...], result: Spec, limit_bytes: int) -> str:
    """Returns the error message for a result that is larger than an array may be. It names the setting of the limit."""
    return f"{op.name}({_described(operands)}): {size_beyond(result, limit_bytes)}"


def size_beyond(spec: Spec, limit_bytes: int) -> str:
    """Returns the part of the message of `too_large` that gives the size and the setting."""
    return f"{_described((spec,))} has {spec.size_bytes} bytes; limits.array_bytes = {limit_bytes}"


def _described(operands: tuple[Spec, ...]) -> str:
    """Returns the specs as text. If there are more than eight, the text has the first eight and the total number."""
    named = [f"{spec.dtype.name}{list(spec.shape)}" for spec in operands[:_MOST_DESCRIBED]]
    more = [f"… {len(operands)} in all"] if len(operands) > _MOST_DESCRIBED else []
    return ", ".join([*named, *more])


def check_arity(op: Op, operands: int, attributes: Attributes) -> None:
    """Raises ArgumentError unless the op takes that many operands and attributes."""
    too_many = op.most_operands is not None and operands > op.most_operands
    if operands < op.least_operands or too_many:
        wanted = op.least_operands if op.most_operands == op.least_operands else f"{op.least_operands} or more"
        raise ArgumentError(f"{op.name} takes {wanted} operands, not {operands}")
    if len(attributes) != len(op.attributes):
        raise ArgumentError(f"{op.name} takes {len(op.attributes)} attributes, not {len(attributes)}")


def check_starts(op: Op, shape: Shape, attributes: Attributes, starts: Sequence[int]) -> None:
    """Raises ArgumentError unless the part of an array of `shape` that begins at `starts` lies inside the array."""
    if op.part is Strided:
        strided.check_start(shape, Strided(*attributes), *starts)
    else:
        shapes.check_starts(shape, Region(*attributes), starts)
