"""Makes the parameters of an op's function from the op's attributes, and converts users' arguments to attributes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from numbers import Real
from typing import Any, NamedTuple

from fusewire._api.ops import operations
from fusewire._errors import ArgumentError
from fusewire_protos.ops.attributes import is_legal
from fusewire_protos.ops.op import Attribute, AttributeKind, Attributes, Op


class _Kind(NamedTuple):
    """How attributes of one kind become parameters, and how arguments become attributes of that kind."""

    annotation: str
    legal: str  # the legal attributes, in words for error messages
    read: Callable[[Any, int], Any]  # (argument, rank of the first operand) → attribute


def _float_of(given: Any, rank: int) -> float:
    """Returns the attribute for a number; −0.0 gives 0.0. Raises TypeError for an array: its value is on the server."""
    if not isinstance(given, Real):
        raise TypeError(f"a number is required, not {type(given).__name__}")
    return float(given) + 0.0


_KINDS: dict[AttributeKind, _Kind] = {
    AttributeKind.AXES: _Kind("Axis", "axes", operations.axes_of),
    AttributeKind.AXIS: _Kind("int", "an axis", operations.axis_of),
    AttributeKind.DIM: _Kind("int", "a length", lambda given, _: operator.index(given)),
    AttributeKind.FLAG: _Kind("bool", "a flag", lambda given, _: bool(given)),
    AttributeKind.FLOAT: _Kind("float", "a finite number", _float_of),
    AttributeKind.INTEGER: _Kind("int", "an integer", lambda given, _: operator.index(given)),
}

PARAMETER_KINDS = frozenset(_KINDS)  # the kinds of attributes that become parameters without code by hand


def parameters_of(op: Op) -> Signature:
    """Returns the parameters of an op's function: first the arrays, then the attributes, and flags last."""
    names = ["x"] if op.least_operands == 1 else [f"x{number + 1}" for number in range(op.least_operands)]
    arrays = [Parameter(name, Parameter.POSITIONAL_ONLY, annotation="Any") for name in names]
    attributes = sorted(map(_parameter, op.attributes), key=lambda parameter: parameter.kind)
    return Signature([*arrays, *attributes], return_annotation="Array")


def attributes_of(op: Op, given: Mapping[str, Any], rank: int) -> Attributes:
    """Converts the arguments `given`, keyed by parameter, to attributes.

    Raises ArgumentError, ShapeError or TypeError.
    """
    return tuple([_read(op, attribute, given[_name_of(attribute)], rank) for attribute in op.attributes])


def _name_of(attribute: Attribute) -> str:
    return "axis" if attribute.kind is AttributeKind.AXES else attribute.name


def _parameter(attribute: Attribute) -> Parameter:
    kind = Parameter.KEYWORD_ONLY if attribute.kind is AttributeKind.FLAG else Parameter.POSITIONAL_OR_KEYWORD
    is_required = attribute.default is None and attribute.kind is not AttributeKind.AXES  # for axes None means all
    default = Parameter.empty if is_required else attribute.default
    return Parameter(_name_of(attribute), kind, default=default, annotation=_KINDS[attribute.kind].annotation)


def _read(op: Op, attribute: Attribute, given: Any, rank: int) -> Any:
    _, legal, read = _KINDS[attribute.kind]
    try:
        value = read(given, rank)
    except TypeError as error:
        raise TypeError(f"{op.name}: {attribute.name}: {error}") from None
    if not is_legal(attribute.kind, value):
        raise ArgumentError(f"{op.name}: {attribute.name} = {value!r} is not {legal} that can be sent")
    return value
