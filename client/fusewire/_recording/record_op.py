"""Records an op of any operands: arrays of any thread, Python and NumPy scalars, starts of slices.

`recorded_ops` records the usual operands faster: arrays of the thread that records, and scalars that are known beside
them. What is new, and an array of another thread, ends in `apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from fusewire._errors import ArgumentError, FusewireError
from fusewire._recording.bodies.recorded_body import RecordedBody
from fusewire._recording.op_rules import PYTHON_SCALARS, LearntOp, canonical_of, known_ops
from fusewire._recording.pinned_handles import HandlePin
from fusewire._recording.recorded_ops import Recorded, record, record_body, record_known, recorded_of_handle
from fusewire._recording.recorder import Owner, Recorder
from fusewire._recording.signature import OperandSpec, intern_creation, intern_signature
from fusewire_protos.frames import Scalar
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Op

__all__ = [
    "PYTHON_SCALARS",
    "R",
    "Recorded",
    "apply",
    "apply_of_one",
    "apply_to_one",
    "create",
    "recorded_of_handle",
    "repeat",
]

R = TypeVar("R", bound=Recorded)
Operand = Recorded | Scalar | np.generic

# What records an op of an operand that no op takes, by the type of the operand. `_api.complex` adds complex numbers.
recording_of_types: dict[type, Callable[[Op, Sequence[Any], Attributes, Sequence[int]], Any]] = {}


def apply(op: Op, operands: Sequence[Any], attributes: Attributes = (), starts: Sequence[int] = ()) -> Any:
    """Records an op of arrays and scalars. At least one operand is an array."""
    recorded = record_known(op, operands, attributes, starts)
    return _apply_any(op, operands, attributes, starts) if recorded is None else recorded


def _apply_any(op: Op, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    """Records an op by the rules of dtypes and shapes, and keeps what `record_known` needs for the next such op."""
    for operand in operands:
        record_other = recording_of_types.get(type(operand))
        if record_other is not None:
            return record_other(op, operands, attributes, starts)
    lead = next(operand for operand in operands if isinstance(operand, Recorded))
    recorder = lead._recorder.owner.recorder()
    specs = _operand_specs(op, operands)
    signature = intern_signature(op, specs, attributes)
    canonicals = tuple([canonical_of(spec) for spec in specs if isinstance(spec, DType)])
    pins: list[HandlePin] = []
    handles = [operand_handle(operand, recorder, pins) for operand in operands if isinstance(operand, Recorded)]
    scalars = [_as_python(operand) for operand in operands if not isinstance(operand, Recorded)]
    values = [canonical(scalar) for canonical, scalar in zip(canonicals, scalars, strict=True)]
    kinds = tuple([operand._spec if isinstance(operand, Recorded) else type(operand) for operand in operands])
    known_ops[op, attributes, kinds] = LearntOp(signature.number, signature.result, canonicals)
    try:
        return record(type(lead), recorder, signature, handles, [*values, *starts], tuple(operands))
    finally:
        if pins:
            # The last op of the tape is the op just recorded, or a later op, which is not sent earlier.
            recorder.keep(pins, recorder.next_number - 1)


def apply_of_one(op: Op) -> Callable[[R], R]:
    """Returns the function that calls `apply_to_one`."""
    return partial(apply_to_one, op, attributes=())


def apply_to_one(op: Op, x: R, attributes: Attributes, starts: Sequence[int] = ()) -> R:
    """Calls `apply` for one array, of any thread."""
    result: R = apply(op, (x,), attributes, starts)
    return result


def create(
    kind: type[R], recorder: Recorder, op: Op, scalars: Sequence[tuple[DType, Scalar]], attributes: Attributes
) -> R:
    """Records an op that takes no array."""
    signature = intern_creation(op, tuple([dtype for dtype, _ in scalars]), attributes, recorder.array_bytes)
    return record(kind, recorder, signature, (), [canonical_of(dtype)(value) for dtype, value in scalars])


def repeat(
    kind: type[R],
    recorder: Recorder,
    body: RecordedBody,
    inputs: Sequence[int],
    values: Sequence[Scalar],
    pins: list[HandlePin],
) -> list[R]:
    """Records the ops of a body again. Returns its live results.

    `inputs` are handles that `operand_handle` has returned, with these `pins`.
    """
    try:
        return record_body(kind, recorder, body, inputs, values)
    finally:
        if pins:
            recorder.keep(pins, recorder.next_number - 1)


def _operand_specs(op: Op, operands: Sequence[Operand]) -> tuple[OperandSpec, ...]:
    beside = _dtype_beside(op, operands)
    return tuple(
        operand._spec if isinstance(operand, Recorded) else _scalar_dtype(operand, beside) for operand in operands
    )


def _dtype_beside(op: Op, operands: Sequence[Operand]) -> DType:
    """Returns the dtype to which Python scalars among the operands adapt."""
    if op.name == "where":
        operands = operands[1:]
    elif op.takes_starts:  # what is assigned is cast to the dtype of the array
        operands = operands[:1]
    strong = [_strong_dtype(operand) for operand in operands if isinstance(operand, Recorded | np.generic)]
    return dtypes.promote_all(strong) if strong else dtypes.bool_


def _strong_dtype(operand: Recorded | np.generic) -> DType:
    return operand._spec.dtype if isinstance(operand, Recorded) else dtypes.from_numpy(operand.dtype)


def _scalar_dtype(operand: Scalar | np.generic, beside: DType) -> DType:
    if isinstance(operand, np.generic):
        return dtypes.from_numpy(operand.dtype)
    return dtypes.of_scalar(operand, beside)


def _as_python(operand: Scalar | np.generic) -> Any:
    return operand.item() if isinstance(operand, np.generic) else operand


def _of_different_sessions(*owners: Owner) -> ArgumentError:
    """Returns the error of an op whose operands belong to these sessions. Arrays of an ended one cannot be fetched."""
    for owner in owners:
        try:
            owner.check_open()
        except FusewireError as reason:
            return ArgumentError(
                f"the arrays belong to different sessions, one of which has ended, with its arrays: {reason}"
            )
    return ArgumentError(
        "the arrays belong to different sessions; fetch one array and upload it to the session of the other"
    )


def operand_handle(array: Recorded, recorder: Recorder, pins: list[HandlePin]) -> int:
    """Returns an operand's handle. If another thread made the operand, pins the handle and sends the operand's op."""
    while True:
        producer, handle = array._recorder, array._handle
        if producer is recorder:
            return handle
        if producer.owner is not recorder.owner:
            raise _of_different_sessions(producer.owner, recorder.owner)
        pin = producer.pin(handle)
        pins.append(pin)
        producer.owner.publish(producer, handle)
        # If the handles differ, `x[i] = v` gave the array another handle before the pin, and `handle` may be dead.
        if array._handle == handle:
            recorder.foreign.add(handle, producer, pin)
            return handle
