"""Finds out which arrays of a loop's body are computed from its counter alone, as `2 * i + 1` is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fusewire._recording.record_op import Recorded
from fusewire._recording.recorder import Recorder
from fusewire._recording.signature import signature_of
from fusewire._recording.stepped_integer import SteppedInteger
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec

_MOST_OPS = 16  # one after another, between the counter and an integer
_INTEGER = Spec(dtypes.int64, ())


class _Line(NamedTuple):
    """The integers `first + step · iteration`."""

    first: int
    step: int


def stepped_integer(array: Recorded, recorder: Recorder) -> SteppedInteger | None:
    """Returns the integer that an array is in the body of a loop, which the calling thread records with `recorder`.

    Returns None unless the array is the loop's counter, or computed from it and Python integers by +, − and ·.
    """
    counter = recorder.counter
    if counter is None or array._recorder is not recorder:
        return None
    line = _line_of(recorder, array._handle, counter.handle, _MOST_OPS)
    return None if line is None else SteppedInteger(*line, counter.iterations)


def _line_of(recorder: Recorder, handle: int, counter: int, most_ops: int) -> _Line | None:
    if handle == counter:
        return _Line(0, 1)
    if most_ops == 0 or not counter < handle < recorder.next_number:
        return None
    number, *operands = recorder.between(handle, handle + 1).tolist()
    signature = signature_of(number)
    rule = _RULES.get(signature.op.name)
    if rule is None or signature.result.spec != _INTEGER:
        return None
    line_of = {each: _line_of_operand(recorder, each, counter, most_ops - 1) for each in {*operands}}
    lines = [line for cell in signature.cells if (line := line_of[operands[cell]]) is not None]
    return rule(*lines) if len(lines) == len(operands) else None


def _line_of_operand(recorder: Recorder, operand: int, counter: int, most_ops: int) -> _Line | None:
    if operand >= 0:
        return _line_of(recorder, operand, counter, most_ops)
    (value,) = recorder.values_of(np.array([operand], np.int64))
    return _Line(value, 0) if isinstance(value, int) else None


def _sum(a: _Line, b: _Line) -> _Line:
    return _Line(a.first + b.first, a.step + b.step)


def _difference(a: _Line, b: _Line) -> _Line:
    return _Line(a.first - b.first, a.step - b.step)


def _product(a: _Line, b: _Line) -> _Line | None:
    if a.step and b.step:
        return None
    return _Line(a.first * b.first, a.first * b.step + a.step * b.first)


def _negative(a: _Line) -> _Line:
    return _Line(-a.first, -a.step)


_RULES: dict[str, Callable[..., _Line | None]] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "negative": _negative,
}
