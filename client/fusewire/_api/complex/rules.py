"""Says how each op is recorded of complex numbers, as ops of their parts. An op without a rule is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.complex import arithmetic, exponentials, hyperbolics, inverses, matrices, moves, reductions
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.complex.operands import array_pairs_of, complex_array, is_not_zero
from fusewire._api.functions.dtypes import result_type
from fusewire._api.ops.float_operands import complex_functions
from fusewire._errors import DtypeError
from fusewire._recording.record_op import apply, recording_of_types
from fusewire_protos.ops.op import Attributes, Op

# Records an op of these operands, attributes and starts. One operand is complex, or a real array becomes complex.
Rule = Callable[[Op, Sequence[Any], Attributes, Sequence[int]], Any]


def _elementwise(formula: Callable[..., Any]) -> Rule:
    """Returns the rule of a formula of parts, real and imaginary of each operand in turn.

    The formula returns the two parts of the result, or a real array.
    """

    def rule(_op: Op, operands: Sequence[Any], _attributes: Attributes, _starts: Sequence[int]) -> Any:
        pairs = array_pairs_of(operands, result_type(*operands))
        found = formula(*[part for pair in pairs for part in pair])
        return complex_array(*found) if isinstance(found, tuple) else found

    return rule


def _of_truth(op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records an op that asks of each number only whether it is 0."""
    return apply(op, [is_not_zero(each) for each in operands], attributes)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(moves.OF_ALL, moves.move_all),
    **dict.fromkeys(moves.OF_FIRST, moves.move_first),
    **dict.fromkeys(moves.ASSIGNING, moves.assign),
    "where": moves.where,
    "astype": moves.astype,
    **dict.fromkeys(("add", "subtract"), arithmetic.by_part),
    "multiply": arithmetic.multiply,
    "power": arithmetic.power,
    "matmul": matrices.matmul,
    "solve": matrices.solve,
    "inv": matrices.inv,
    "svdvals": matrices.svdvals,
    "eigvalsh": matrices.eigvalsh,
    "det": matrices.det,
    **dict.fromkeys(("cholesky", "slogdet", "qr", "eigh", "svd"), matrices.decomposed),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not", "any", "all"), _of_truth),
    "prod": reductions.prod,
    "cumulative_prod": reductions.cumulative_prod,
    "var": reductions.var,
    "std": reductions.std,
    "divide": _elementwise(arithmetic.divide),
    "equal": _elementwise(arithmetic.equal),
    "not_equal": _elementwise(arithmetic.not_equal),
    "isfinite": _elementwise(arithmetic.isfinite),
    "isinf": _elementwise(arithmetic.isinf),
    "isnan": _elementwise(arithmetic.isnan),
    "square": _elementwise(arithmetic.square),
    "abs": _elementwise(exponentials.size),
    "sign": _elementwise(exponentials.sign),
    "sqrt": _elementwise(exponentials.sqrt),
    "exp": _elementwise(exponentials.exp),
    "expm1": _elementwise(exponentials.expm1),
    "log": _elementwise(exponentials.log),
    "log1p": _elementwise(exponentials.log1p),
    "log2": _elementwise(exponentials.log2),
    "log10": _elementwise(exponentials.log10),
    "sin": _elementwise(hyperbolics.sin),
    "cos": _elementwise(hyperbolics.cos),
    "tan": _elementwise(hyperbolics.tan),
    "tanh": _elementwise(hyperbolics.tanh),
}

# Functions that are no ops, by name.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": inverses.acos,
    "acosh": inverses.acosh,
    "asin": inverses.asin,
    "asinh": inverses.asinh,
    "atan": inverses.atan,
    "atanh": inverses.atanh,
    "cosh": hyperbolics.cosh,
    "reciprocal": arithmetic.reciprocal,
    "sinh": hyperbolics.sinh,
}


def record_complex(op: Op, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    """Records an op of complex numbers. Raises DtypeError for an op that has no rule."""
    rule = _RULES.get(op.name)
    if rule is None:
        raise DtypeError(
            f"{op.name} is not defined for complex numbers; take their parts, x.real and x.imag, or give "
            "NumPy's functions their values, x.numpy()"
        )
    return rule(op, operands, attributes, starts)


def _of_arrays(formula: Callable[..., Any]) -> Callable[..., Any]:
    def function(*given: ComplexArray) -> Array:
        return complex_array(*formula(*[part for each in given for part in each.parts]))

    return function


for _kind in (ComplexArray, complex, np.complex64, np.complex128):
    recording_of_types[_kind] = record_complex
complex_functions.update({name: _of_arrays(formula) for name, formula in _FUNCTIONS.items()})
