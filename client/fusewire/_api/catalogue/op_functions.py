"""Makes public functions from the entries of the catalogue.

An entry is enough to make a function if its op takes a fixed number of arrays, and its attributes are numbers, lengths,
flags or axes. The attributes become parameters behind the arrays, with the defaults of the entry. The docstring is the
entry's summary.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.op_attributes import PARAMETER_KINDS, attributes_of, parameters_of
from fusewire._api.ops import masked, operations
from fusewire._api.ops.operands import apply_to_any, asarray
from fusewire._api.ops.operations import Axis
from fusewire._api.protocols.numpy_parameters import with_numpys_parameters
from fusewire._api.protocols.outputs import write_as_called
from fusewire._recording.record_op import apply, apply_to_one
from fusewire._recording.recorded_ops import known_call
from fusewire_protos.ops.op import AttributeKind, Category, Op

_Function = Callable[..., Array]

# The functions of these ops have other parameters than the operands and attributes of the entry, such as a dtype.
# `functions` defines them, or uses them in others.
_WRITTEN_BY_HAND = frozenset(
    (
        *(
            "argmax",
            "argmin",
            "argsort",
            "clip",
            "cumulative_max",
            "cumulative_min",
            "cumulative_prod",
            "cumulative_sum",
        ),
        *("layer_norm", "mean", "prod", "round", "std", "sum", "take", "take_along_axis", "var", "where"),
        *("segment_max", "segment_min", "segment_prod", "segment_sum"),
        *("bits_of_float", "exponential_of_bits", "float_of_bits", "normal_of_bits"),
    )
)


def functions_of(ops: tuple[Op, ...]) -> dict[str, _Function]:
    """Makes all functions that can be made from entries, and returns them by name.

    Those of library ops are in namespaces of their own, written by hand.
    """
    made = [op for op in ops if op.name not in _WRITTEN_BY_HAND and op.category is not Category.LIBRARY]
    formed = {op: _form_of(op) for op in made}
    named = {op.name: _named(form(op), op) for op, form in formed.items() if form is not None}
    return {name: known_call(with_numpys_parameters(function)) for name, function in named.items()}


def _named(function: _Function, op: Op) -> _Function:
    function.__module__, function.__name__, function.__qualname__ = "fusewire", op.name, op.name
    function.__doc__ = op.summary
    return function


def _of_one(op: Op) -> _Function:
    def function(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
        recorded: Array = apply(op, (asarray(x),))
        return recorded if out is None and where is True else write_as_called(op.name, out, where, recorded)

    return function


def _of_two(op: Op) -> _Function:
    def function(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
        recorded = apply_to_any(op, x1, x2)
        return recorded if out is None and where is True else write_as_called(op.name, out, where, recorded)

    return function


def _of_three(op: Op) -> _Function:
    def function(x1: Any, x2: Any, x3: Any, /) -> Array:
        return apply_to_any(op, x1, x2, x3)

    return function


def _reduction(op: Op) -> _Function:
    if op.reduction is None:

        def composite(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
            return operations.reduce(op.name, asarray(x), axis, keepdims=keepdims)

        return composite

    def function(
        x: Any, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Array:
        return masked.reduce(op.name, asarray(x), axis, keepdims=keepdims, initial=initial, where=where)

    return function


def _along_axes(op: Op) -> _Function:
    def function(x: Any, /, axis: Axis = -1) -> Array:
        return operations.along(op.name, asarray(x), axis)

    return function


def _power(op: Op) -> _Function:
    def function(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
        if not isinstance(x2, Array):
            operations.check_exponent(x1, x2)
        recorded = apply_to_any(op, x1, x2)
        return recorded if out is None and where is True else write_as_called(op.name, out, where, recorded)

    return function


def _logsumexp(op: Op) -> _Function:
    def function(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
        array = asarray(x)
        if 0 in array.shape:
            return operations.reduce_nothing(op, array, axis, -inf, keepdims=keepdims)
        return operations.reduce(op.name, array, axis, keepdims=keepdims)

    return function


def _with_attributes(op: Op) -> _Function:
    """Makes the function of an op with attributes. Users give flags by name, and others by position or name."""
    parameters, arrays = parameters_of(op), op.least_operands

    def function(*given: Any, **named: Any) -> Array:
        bound = parameters.bind(*given, **named)
        bound.apply_defaults()
        operands = given[:arrays]
        attributes = attributes_of(op, bound.arguments, np.ndim(operands[0]))
        if arrays == 1:
            return apply_to_one(op, asarray(operands[0]), attributes)
        return apply_to_any(op, *operands, attributes=attributes)

    function.__signature__ = parameters  # type: ignore[attr-defined]  # for `inspect`, and so for the stub
    return function


def _form_of(op: Op) -> _Form | None:
    """Returns the maker of an op's function, or None if the entry is not enough to make the function."""
    kinds = tuple(attribute.kind for attribute in op.attributes)
    known = _OWN_FORMS.get(op.name) or _FORMS.get((op.most_operands, kinds))
    if known is not None:
        return known
    suffices = op.most_operands == op.least_operands > 0 and kinds and PARAMETER_KINDS.issuperset(kinds)
    return _with_attributes if suffices else None


_Form = Callable[[Op], _Function]

_FORMS: dict[tuple[int | None, tuple[AttributeKind, ...]], _Form] = {
    (1, ()): _of_one,
    (2, ()): _of_two,
    (3, ()): _of_three,
    (1, (AttributeKind.AXES, AttributeKind.FLAG)): _reduction,
    (1, (AttributeKind.AXES,)): _along_axes,
}

# Ops with the usual parameters. The function of each handles a case that the op itself does not handle.
_OWN_FORMS: dict[str, _Form] = {"logsumexp": _logsumexp, "power": _power}
