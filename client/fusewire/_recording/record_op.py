"""Records an op: appends a record to the tape, and makes an object for the result.

`binary` and `unary` make the functions that operators call. The fast path of such a function applies no shape or dtype
rule. Dict look-ups find the signature by the specs of the operands, one list operation appends the record, and one
comparison with the recorder's checkpoint tells whether the recorder has more to do. Unusual operands (an array of
another thread, data to be uploaded, a NumPy scalar) take a slow path, which ends in `apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, TypeVar

import numpy as np

from fusewire._errors import ArgumentError, QuotaExceeded
from fusewire._recording.pinned_handles import HandlePin
from fusewire._recording.recorder import Recorder
from fusewire._recording.signature import ArraySpec, OperandSpec, Signature, intern_creation, intern_signature
from fusewire._recording.tape import Tape
from fusewire_protos import dtypes
from fusewire_protos.catalogue import Attributes, Op
from fusewire_protos.dtypes import DType
from fusewire_protos.frames import Scalar

PYTHON_SCALARS = (bool, int, float)


class Recorded:
    """A value of a session, named by its handle. When the object is deleted, its recorder is told that the handle died.

    The class has no constructor: the code that creates an object sets all fields.
    """

    __slots__ = ("__weakref__", "_handle", "_recorder", "_spec")

    _handle: int
    _spec: ArraySpec
    _recorder: Recorder  # the recorder of the thread that made the value; it reports the handle's death

    def __del__(self) -> None:
        try:  # noqa: SIM105  # `suppress` would cost time at each death
            self._recorder.bury(self._handle)
        except AttributeError:
            pass  # a signal handler raised before the fields were set


R = TypeVar("R", bound=Recorded)
Operand = Recorded | Scalar | np.generic
Canonical = Callable[[Any], Scalar]

_new = object.__new__


def binary(  # noqa: C901  # the fast path is one function: a further call would add a third to its time
    op: Op,
    slow_path: Callable[[R, Any], R],
    *,
    is_reflected: bool = False,
    checked: Callable[[DType, Canonical], Canonical] | None = None,
) -> Callable[[R, Any], R]:
    """Returns the function that records `op` of two operands. If `is_reflected`, `self` is the right operand.

    `checked` is given for an op that refuses some Python scalars. It takes a dtype and the function that converts
    scalars to this dtype. It returns a function that does the same, but raises for scalars that the op refuses.
    """
    # Keyed by the spec of `self`, then by the spec or type of `other`. Two look-ups take half the time of one
    # look-up of a pair.
    of_arrays: dict[ArraySpec, dict[ArraySpec, tuple[int, ArraySpec]]] = {}
    of_scalars: dict[ArraySpec, dict[type, tuple[int, ArraySpec, Canonical]]] = {}

    def record_binary(self: R, other: Any) -> R:
        recorder = self._recorder
        if recorder.thread != get_ident():
            return slow_path(self, other)
        cls, kind = type(self), type(other)
        tape = recorder.tape
        records = tape.records
        if kind is cls:
            if other._recorder is not recorder:
                return slow_path(self, other)
            try:
                signature, spec = of_arrays[self._spec][other._spec]
            except KeyError:
                learnt = _learn(op, self._spec, other._spec)
                signature, spec = of_arrays.setdefault(self._spec, {})[other._spec] = learnt
            record = (signature, self._handle, other._handle)
        else:
            try:
                signature, spec, canonical = of_scalars[self._spec][kind]
            except KeyError:
                if kind not in PYTHON_SCALARS:
                    return slow_path(self, other)
                weak = _learn_weak(op, self._spec, kind, is_reflected=is_reflected, checked=checked)
                signature, spec, canonical = of_scalars.setdefault(self._spec, {})[kind] = weak
            values = tape.values
            values.append(canonical(other))
            record = (signature, self._handle, -tape.value_origin - len(values))
        result = _new(cls)
        records.append(record)  # no finaliser or signal handler can run between this and `len(records)`
        result._handle = number = tape.origin + len(records)
        result._spec = spec
        result._recorder = recorder
        if number >= recorder.checkpoint:
            recorder.on_checkpoint(number)
        return result

    return record_binary


def unary(op: Op, attributes: Attributes = ()) -> Callable[[R], R]:
    """Returns the function that records `op` of one array, with these attributes."""
    known: dict[ArraySpec, tuple[int, ArraySpec]] = {}

    def record_unary(self: R) -> R:
        recorder = self._recorder
        if recorder.thread != get_ident():
            elsewhere: R = apply(op, (self,), attributes)
            return elsewhere
        try:
            signature, spec = known[self._spec]
        except KeyError:
            signature, spec = known[self._spec] = _learn(op, self._spec, attributes=attributes)
        tape = recorder.tape
        records = tape.records
        record = (signature, self._handle)
        result = _new(type(self))
        records.append(record)
        result._handle = number = tape.origin + len(records)
        result._spec = spec
        result._recorder = recorder
        if number >= recorder.checkpoint:
            recorder.on_checkpoint(number)
        return result

    return record_unary


def apply(op: Op, operands: Sequence[Any], attributes: Attributes = (), starts: Sequence[int] = ()) -> Any:
    """Records an op of arrays and scalars. At least one operand is an array."""
    lead = next(operand for operand in operands if isinstance(operand, Recorded))
    recorder = lead._recorder.owner.recorder()
    _check_count(op, len(operands), recorder.owner.limits.program_operands)
    specs = _operand_specs(op, operands)
    signature = intern_signature(op, specs, attributes)
    pins: list[HandlePin] = []
    handles = [admit(operand, recorder, pins) for operand in operands if isinstance(operand, Recorded)]
    values = [
        canonical_of(spec)(_as_python(operand))
        for operand, spec in zip(operands, specs, strict=True)
        if isinstance(spec, DType)
    ]
    try:
        return record(type(lead), recorder, signature, handles, [*values, *starts])
    finally:
        if pins:
            # The last op of the tape is the op just recorded, or a later op, which is not sent earlier.
            recorder.keep(pins, recorder.tape.end - 1)


def apply_to_one(op: Op, x: R, attributes: Attributes, starts: Sequence[int] = ()) -> R:
    """Does the same as `apply` for one array and no scalar, but faster. Ops with attributes use it."""
    recorder = x._recorder
    if recorder.thread != get_ident():
        elsewhere: R = apply(op, (x,), attributes, starts)
        return elsewhere
    return record(type(x), recorder, intern_signature(op, (x._spec,), attributes), (x._handle,), starts)


def create(
    kind: type[R], recorder: Recorder, op: Op, scalars: Sequence[tuple[DType, Scalar]], attributes: Attributes
) -> R:
    """Records an op that takes no array."""
    signature = intern_creation(op, tuple([dtype for dtype, _ in scalars]), attributes, recorder.array_bytes)
    return record(kind, recorder, signature, (), [canonical_of(dtype)(value) for dtype, value in scalars])


def record(
    kind: type[R], recorder: Recorder, signature: Signature, handles: Sequence[int], values: Sequence[Scalar]
) -> R:
    """Appends one record, and returns an object for its result. Called in the recorder's own thread."""
    tape = recorder.tape
    if values:
        handles = (*handles, *_keep_values(tape, values))
    tape.records.append((signature.number, *handles))
    number = tape.origin + len(tape.records)
    result = adopt(kind, recorder, number, signature.result)
    if number >= recorder.checkpoint:
        recorder.on_checkpoint(number)
    return result


def adopt(kind: type[R], recorder: Recorder, handle: int, spec: ArraySpec) -> R:
    """Makes a new object of class `kind` for a handle."""
    result = _new(kind)
    result._handle = handle
    result._spec = spec
    result._recorder = recorder
    return result


def _keep_values(tape: Tape, values: Sequence[Scalar]) -> list[int]:
    """Appends values to the tape. Returns the operands that refer to these values."""
    operands = []
    for value in values:
        tape.values.append(value)
        operands.append(-tape.value_origin - len(tape.values))
    return operands


def canonical_of(dtype: DType) -> Canonical:
    """Returns the function that converts a Python scalar to the value of `dtype` that is sent.

    This function raises OverflowError if the scalar is out of range for `dtype`.
    """
    if dtype.is_floating:
        return float
    return bool if dtype.is_boolean else _INTEGERS[dtype]


def _integer_of(dtype: DType) -> Canonical:
    limits = np.iinfo(dtypes.to_numpy(dtype))
    least, most = int(limits.min), int(limits.max)

    def canonical(value: Any) -> int:
        if not least <= value <= most:
            raise OverflowError(f"{value} is out of range for {dtype.name}")
        return int(value)

    return canonical


_INTEGERS = {dtype: _integer_of(dtype) for dtype in dtypes.ALL if dtype.is_integer}


def _learn(op: Op, *specs: ArraySpec, attributes: Attributes = ()) -> tuple[int, ArraySpec]:
    signature = intern_signature(op, specs, attributes)
    return signature.number, signature.result


def _learn_weak(
    op: Op,
    spec: ArraySpec,
    kind: type,
    *,
    is_reflected: bool,
    checked: Callable[[DType, Canonical], Canonical] | None,
) -> tuple[int, ArraySpec, Canonical]:
    dtype = dtypes.of_scalar(kind(), spec.dtype)
    signature = _signature_beside(op, spec, dtype, is_reflected=is_reflected)
    computed = signature.result.dtype
    if dtype.is_integer and computed.is_floating:  # as in a division, where the integer need not fit `dtype`
        dtype = computed
        signature = _signature_beside(op, spec, dtype, is_reflected=is_reflected)
    canonical = canonical_of(dtype)
    return signature.number, signature.result, canonical if checked is None else checked(dtype, canonical)


def _signature_beside(op: Op, spec: ArraySpec, scalar: DType, *, is_reflected: bool) -> Signature:
    operands: tuple[OperandSpec, ...] = (scalar, spec) if is_reflected else (spec, scalar)
    return intern_signature(op, operands, ())


def _check_count(op: Op, operands: int, most: int) -> None:
    if operands > most:
        raise QuotaExceeded(f"{op.name} of {operands} operands; limits.program_operands = {most}")


def _operand_specs(op: Op, operands: Sequence[Operand]) -> tuple[OperandSpec, ...]:
    beside = _dtype_beside(op, operands)
    return tuple(
        operand._spec if isinstance(operand, Recorded) else _scalar_dtype(operand, beside) for operand in operands
    )


def _dtype_beside(op: Op, operands: Sequence[Operand]) -> DType:
    """Returns the dtype to which Python scalars among the operands adapt."""
    if op.name == "where":
        operands = operands[1:]
    elif op.name == "assign_slice":
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


def admit(array: Recorded, recorder: Recorder, pins: list[HandlePin]) -> int:
    """Returns an operand's handle. If another thread made the operand, pins the handle and sends the operand's op."""
    while True:
        producer, handle = array._recorder, array._handle
        if producer is recorder:
            return handle
        if producer.owner is not recorder.owner:
            raise ArgumentError(
                "the arrays belong to different sessions; fetch one array and upload it to the session of the other"
            )
        pins.append(producer.pin(handle))
        producer.owner.publish(producer, handle)
        # If the handles differ, `x[i] = v` gave the array another handle before the pin, and `handle` may be dead.
        if array._handle == handle:
            return handle
