"""Gives the NumPy twin of every op: a plain function that says what the op means. Tests compare kernels with it.

The twin of an exact op gives the same bits that a kernel must give, and runs in NumPy or a library with its interface.
Any other twin runs in NumPy. `twin_rules` says what each op means; here are the conversions of operands and the NaNs.
Every computed NaN is the one NaN of its dtype. No twin warns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusewire_kernels.ops.conversions import cast, scalar
from fusewire_kernels.ops.twin_rules import Prepared, Rule, plain_function, rule_of
from fusewire_kernels.ops.written_parts import Twin
from fusewire_protos.ops import dtypes, nans
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op, passes_bits_on
from fusewire_protos.ops.shapes import Spec


def twin(op: Op) -> Twin:
    """The twin of `op`. The result of a view shares memory with its operand."""

    @np.errstate(all="ignore")
    def run(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        sources = tuple([dtypes.from_numpy(operand.dtype) for operand in operands])
        specs = tuple(map(Spec, sources, [operand.shape for operand in operands]))
        prepared = prepare(op, library, specs, attributes)
        result = prepared(*operands, starts=starts) if op.takes_starts else prepared(*operands)
        return nans.settle(result) if leaves_nan_open(op, sources, dtypes.from_numpy(result.dtype)) else result

    return run


def prepare(op: Op, library: Any, operands: tuple[Spec, ...], attributes: Attributes) -> Prepared:
    """The twin for operands of these specs, with all that depends on the specs done once.

    It differs from `twin` in two ways, so that callers can handle both once for many calls: the bits of a computed NaN
    are open (see `leaves_nan_open`), and it may warn of floating-point errors.

    Raises LookupError if the op has no twin.
    """
    rule = rule_of(op)
    sources = tuple([spec.dtype for spec in operands])
    targets, result = op.dtype_rule(sources, attributes)
    numbers = [scalar(library, number, targets[-1]) for number in op.numbers(attributes)]
    if numbers:
        rule = _with_numbers(rule, numbers)
    if targets != sources:
        convert = cast if leaves_nan_open(op, sources, result) else _cast_and_settle
        return _casting(rule, library, sources, targets, attributes, convert)
    if not any(target.is_half for target in targets):
        plain = plain_function(rule, library, has_rank=any(spec.shape for spec in operands))
        if plain is not None:
            return plain
    return lambda *operands, starts=(): library.asarray(rule(library, operands, attributes, starts))


def leaves_nan_open(op: Op, operands: tuple[DType, ...], result: DType) -> bool:
    """Whether the bits of a NaN in the result of `prepare`'s function are arbitrary, because the op computes them."""
    return result.is_floating and not passes_bits_on(op, operands, result)


def _cast_and_settle(library: Any, array: Any, source: DType, target: DType) -> Any:
    converted = cast(library, array, source, target)
    return nans.settle(converted) if source.is_floating and target.is_floating else converted


def _casting(
    rule: Rule,
    library: Any,
    sources: Sequence[DType],
    targets: Sequence[DType],
    attributes: Attributes,
    convert: Callable[[Any, Any, DType, DType], Any],
) -> Prepared:
    numbered = enumerate(zip(sources, targets, strict=True))
    casts = [(position, source, target) for position, (source, target) in numbered if source is not target]

    def run(*operands: Any, starts: Sequence[int] = ()) -> Any:
        converted = [*operands]
        for position, source, target in casts:
            converted[position] = convert(library, operands[position], source, target)
        return library.asarray(rule(library, converted, attributes, starts))

    return run


def _with_numbers(rule: Rule, numbers: Sequence[Any]) -> Rule:
    """The rule with the numbers among the attributes passed as further operands."""

    def run(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        return rule(library, [*operands, *numbers], attributes, starts)

    return run
