"""Checks a segment's bindings against its program, before anything is allocated. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from operator import ge
from reprlib import repr as shortened

import numpy as np

from fusewire_protos.errors import ArgumentError, CaseError
from fusewire_protos.frames import Scalar, Segment, repeat_period
from fusewire_protos.ops import inference
from fusewire_protos.ops.dtypes import SIGNED, UNSIGNED, DType, bool_
from fusewire_protos.programs.program import Program

_RANGES = {dtype: (np.iinfo(dtype.name).min, np.iinfo(dtype.name).max) for dtype in (*SIGNED, *UNSIGNED)}
_RANGES[bool_] = (0, 1)


def scalars_of(program: Program, period: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Returns all scalars of a segment. `period` repeats until the program has a value for each of its scalars.

    Raises CaseError if the number or the values of the scalars do not fit the program.
    """
    scalars = repeat_period(period, len(program.scalars), "scalars")
    for position, (dtype, value) in enumerate(zip(program.scalars, scalars, strict=True)):
        if not fits(dtype, value):
            raise CaseError("bad_binding", f"scalar {position} is {value!r}, which {dtype.name} does not hold")
    return scalars


def starts_of(program: Program, period: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the starts of all NumPy slices in a segment. `period` repeats until each start has a value.

    Raises CaseError if the number of starts does not fit the program, or if a start is outside its axis.
    """
    starts = repeat_period(period, program.starts, "starts")
    if starts:
        check_starts(program, starts)
    return starts


def check_uploaded(dtype: DType, data: bytes | memoryview) -> None:
    """Raises CaseError if uploaded bytes are not values of `dtype`. Only bool can fail: its bytes must be 0 or 1."""
    if dtype.is_boolean and len(data) and int(np.frombuffer(data, np.uint8).max()) > 1:
        raise CaseError("upload_failed", "the byte of a bool must be 0 or 1; the upload has other bytes")


def dying_handles(segment: Segment) -> tuple[int, ...]:
    """Returns the handles that die with a segment. Raises CaseError unless it names ascending positions of inputs."""
    dying, handles = segment.dying, segment.all_inputs
    if dying and (dying[0] < 0 or dying[-1] >= len(handles) or any(map(ge, dying, dying[1:]))):
        text = f"dying positions {shortened(dying)} are not ascending positions of {len(handles)} inputs"
        raise CaseError("undecodable_frame", text)
    return tuple([handles[position] for position in dying])


def fits(dtype: DType, value: Scalar) -> bool:
    """Returns whether a scalar of this dtype can have this value."""
    if dtype.is_floating:
        return True
    if type(value) is float:
        return False
    low, high = _RANGES[dtype]
    return low <= value <= high


def check_starts(program: Program, starts: Sequence[int]) -> None:
    """Raises CaseError if the start of a slice is outside its axis. `starts` are those of all slices.

    Checks equal slices once, because a few starts that repeat may be those of very many slices.
    """
    checked: set[tuple[int, tuple[int, ...]]] = set()
    position = 0
    for index, signature in program.sliced:
        own = tuple(starts[position : position + signature.starts])
        position += len(own)
        if (id(signature), own) in checked:
            continue
        try:
            inference.check_starts(signature.op, signature.operands[0].shape, signature.attributes, own)
        except ArgumentError as error:
            raise CaseError("bad_binding", f"op {index} {signature.op.name}: {error}") from None
        checked.add((id(signature), own))
