"""Records ops in Python: the tape of a thread, the objects of results, and the functions that operators call.

`compiled_recorder` does the same in C, and `implementation` chooses one of the two. This module defines what both do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import get_ident
from types import EllipsisType, FrameType, NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fusewire._recording.op_rules import (
    PYTHON_SCALARS,
    Checked,
    Learnt,
    LearntBeside,
    known_items,
    known_ops,
    learn,
    learn_beside,
)
from fusewire._recording.pinned_handles import ForeignHandles
from fusewire._recording.places import NOT_KNOWN, OPS_WITH_PLACES, OpPlaces, place_of
from fusewire._recording.signature import ArraySpec, Signature
from fusewire._recording.tape import Integers, Record, Tape, flatten
from fusewire_protos.frames import Scalar
from fusewire_protos.ops.catalogue import Attributes, Op

if TYPE_CHECKING:
    from fusewire._recording.recorder import Recorder


_PLAIN = frozenset((int, NoneType, EllipsisType))


class ThreadTape:
    """The ops that one thread has recorded, and the deaths of their results. `Recorder` inherits from it.

    The owning thread records and trims, any thread reads, and finalisers of any thread report deaths. The methods
    `trim` and `take_deaths` are called by the holder of the recorder's lock.
    """

    __slots__ = ("_dead_handles", "_op_places", "_tape", "checkpoint", "foreign", "thread")

    def __init__(self, thread: int, first: int, checkpoint: int) -> None:
        self.thread = thread  # its identifier
        self.checkpoint = checkpoint  # every op with this number or a higher one calls `on_checkpoint`
        self.foreign = ForeignHandles()  # only the compiled recorder finds them here
        self._tape = Tape(first - 1, [], 0, [])
        self._dead_handles: list[int] = []
        self._op_places = OpPlaces()

    def on_checkpoint(self, number: int) -> None:
        """Is called when op `number` is on the tape and its result exists, if `number` is `checkpoint` or more."""
        raise NotImplementedError

    @property
    def next_number(self) -> int:
        """Returns the number of the next op."""
        return self._tape.end

    @property
    def records_kept(self) -> int:
        """Returns how many ops are on the tape. Sent ops are dropped from it now and then."""
        return len(self._tape.records)

    @property
    def deaths(self) -> int:
        """Returns how many handles of dead objects wait to be taken."""
        return len(self._dead_handles)

    def between(self, first: int, end: int) -> Integers:
        """Returns the records of the ops numbered first..end−1, one behind the other (see `tape`).

        Raises IndexError if not all of them are on the tape.
        """
        return flatten(self._tape.between(first, end))

    def values_of(self, flat: Integers) -> list[Scalar]:
        """Returns the values to which the negative integers of `flat` refer, in order. `flat` holds unsent records."""
        return self._tape.values_of(flat)

    def note_death(self, handle: int) -> None:
        """Notes that no object has `handle` any more."""
        self._dead_handles.append(handle)

    def take_deaths(self, count: int) -> Integers:
        """Removes the first `count` handles of dead objects, and returns them."""
        taken = np.array(self._dead_handles[:count], np.int64)
        del self._dead_handles[:count]
        return taken

    def place_of_op(self, number: int) -> int:
        """Returns the number of the place that recorded op `number`, or NOT_KNOWN, as for all but the last ops."""
        end = self.next_number
        return self._op_places.find(number) if end - OPS_WITH_PLACES <= number < end else NOT_KNOWN

    def put_places(self, first: int, numbers: Sequence[int]) -> None:
        """Notes the places of ops that are numbered from `first` on."""
        for index, number in enumerate(numbers):
            self._op_places.put(first + index, number)

    def trim(self, first: int, unsent: int) -> None:
        """Drops the records of ops before number `first`, and the values of ops before number `unsent`.

        Called in the owning thread. Does nothing if the caller has interrupted this thread in recording another op.
        """
        tape = self._tape
        count, dropped = len(tape.records), first - tape.origin - 1
        if dropped <= 0 or _is_interrupting():
            return
        trimmed = tape.without(dropped, unsent=unsent)
        if len(tape.records) == count:  # else a signal handler has recorded meanwhile
            self._tape = trimmed

    def pass_over(self, ops: int) -> None:
        """Drops all records and values. The number of the next op grows by `ops`. Called in the owning thread."""
        tape = self._tape
        self._tape = Tape(tape.end + ops - 1, [], tape.value_origin + len(tape.values), [])


class Recorded:
    """A value of a session, named by its handle. When the object is deleted, its recorder is told that the handle died.

    The class has no constructor: `adopt` and the functions that record make objects.
    """

    __slots__ = ("__weakref__", "_handle", "_recorder", "_spec")

    _handle: int
    _spec: ArraySpec
    _recorder: Recorder  # the recorder of the thread that made the value; it reports the handle's death

    def __del__(self) -> None:
        try:  # noqa: SIM105  # `suppress` runs Python code, in which a signal handler may raise
            self._recorder._dead_handles.append(self._handle)
        except AttributeError:
            pass  # a signal handler raised before the fields were set


R = TypeVar("R", bound=Recorded)


def light(kind: type[R]) -> type[R]:
    """Makes the objects of `kind`, the class of arrays, as cheap to allocate as possible. Returns `kind`."""
    return kind


def adopt(kind: type[R], recorder: Recorder, handle: int, spec: ArraySpec) -> R:
    """Makes a new object of class `kind` for a handle."""
    result = adopt_without_handle(kind, recorder, spec)
    result._handle = handle
    return result


def adopt_without_handle(kind: type[R], recorder: Recorder, spec: ArraySpec) -> R:
    """Makes a new object for a value that gets its handle later. If the object dies before, no death is reported."""
    result = object.__new__(kind)
    result._spec = spec
    result._recorder = recorder
    return result


def record(
    kind: type[R], recorder: Recorder, signature: Signature, handles: Sequence[int], values: Sequence[Scalar]
) -> R:
    """Records an op, and returns an object of class `kind` for its result. Called in the recorder's own thread."""
    return _record(kind, recorder, (signature.number, *handles), signature.result, values)


def record_known(op: Op, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int] = ()) -> Any:
    """Records an op of arrays of this thread and scalars if `known_ops` has it. Returns None if it does not.

    Also returns None for any other operands, and for a scalar that the dtype cannot hold.
    """
    arrays = [each for each in operands if isinstance(each, Recorded)]
    recorder = arrays[0]._recorder if arrays else None
    if recorder is None or recorder.thread != get_ident() or any(each._recorder is not recorder for each in arrays):
        return None
    kinds = tuple([each._spec if isinstance(each, Recorded) else type(each) for each in operands])
    learnt = known_ops.get((op, attributes, kinds))
    if learnt is None:
        return None
    scalars = [each for each in operands if not isinstance(each, Recorded)]
    try:
        values = [canonical(each) for canonical, each in zip(learnt.canonicals, scalars, strict=True)]
    except OverflowError:
        return None
    record = (learnt.signature, *[each._handle for each in arrays])
    return _record(type(arrays[0]), recorder, record, learnt.result, [*values, *starts])


def name_of_key(key: Any) -> tuple[Any, ...] | None:
    """Returns the name of a key of integers, slices, `...` and None, which equal keys share, or None for other keys.

    The integers may be NumPy's.
    """
    name: list[Any] = []
    for item in key if type(key) is tuple else (key,):
        given = [item.start, item.stop, item.step] if type(item) is slice else [item]
        parts = [int(part) if isinstance(part, np.integer) else part for part in given]
        if not _PLAIN.issuperset(map(type, parts)):
            return None
        name += [*parts, slice] if type(item) is slice else parts
    return tuple(name)


def record_item(x: Any, key: Any) -> Any:
    """Records `x[key]` if `known_items` has it. Returns None if it does not, or for an array of another thread."""
    name = name_of_key(key)
    return None if name is None else _record_named(x, name)


def record_call(x: Any, function: str, key: Any) -> Any:
    """Records a call of a function of one array, with `key` as its other argument, if `known_items` has it.

    Returns None if it does not, or for an array of another thread. The argument is an integer, None, or a tuple of
    integers: a shape or axes.
    """
    name = name_of_call(function, key)
    return None if name is None else _record_named(x, name)


def name_of_call(function: str, key: Any) -> tuple[Any, ...] | None:
    """Returns the name of a call, which equal calls share, or None for an argument that is no such key.

    One item and a tuple of it are two arguments: they are one index, but one number has an axis 0 and no axes (0,).
    """
    name = name_of_key(key)
    return None if name is None else (function, type(key) is tuple, name)


def _record_named(x: Any, name: tuple[Any, ...]) -> Any:
    recorder = x._recorder
    learnt = None if recorder.thread != get_ident() else known_items.get((x._spec, name))
    if learnt is None:
        return None
    return _record(type(x), recorder, (learnt.signature, x._handle), learnt.result, learnt.starts)


def binary_operator(
    op: Op, slow_path: Callable[[R, Any], R], *, is_reflected: bool = False, checked: Checked | None = None
) -> Callable[[R, Any], R]:
    """Returns the method of an operator that records `op`. If `is_reflected`, `self` is the right operand.

    The method calls `slow_path` for unusual operands: an array of another thread or class, a scalar that the dtype
    cannot hold, or anything else than an array, bool, int or float. For `checked` see `learn_beside`.
    """
    known: dict[tuple[ArraySpec, ArraySpec], Learnt] = {}
    record_beside = _operator_beside_others(op, slow_path, checked, is_reflected=is_reflected)

    def record_binary(self: R, other: Any) -> R:
        recorder = self._recorder
        if recorder.thread != get_ident():
            return slow_path(self, other)
        if type(other) is not type(self):
            return record_beside(self, other)
        if other._recorder is not recorder:
            return slow_path(self, other)
        specs = (self._spec, other._spec)
        signature, result = known.get(specs) or known.setdefault(specs, learn(op, specs))
        return _record(type(self), recorder, (signature, self._handle, other._handle), result)

    return record_binary


def _operator_beside_others(
    op: Op, slow_path: Callable[[R, Any], R], checked: Checked | None, *, is_reflected: bool
) -> Callable[[R, Any], R]:
    """Returns the function that records `op` of an array of this thread and anything but an array of its class."""
    known: dict[tuple[ArraySpec, type], LearntBeside] = {}

    def record_beside(self: R, other: Any) -> R:
        if type(other) not in PYTHON_SCALARS:
            return slow_path(self, other)
        key = (self._spec, type(other))
        learnt = known.get(key)
        if learnt is None:
            learnt = known.setdefault(key, learn_beside(op, *key, checked, is_reflected=is_reflected))
        signature, result, canonical = learnt
        try:
            value = canonical(other)
        except OverflowError:
            value = None
        if value is None:
            return slow_path(self, other)
        return _record(type(self), self._recorder, (signature, self._handle), result, (value,))

    return record_beside


def unary(op: Op, slow_path: Callable[[Any], R]) -> Callable[[Any], R]:
    """Returns the function that records `op`, which has no attributes, of one array.

    It calls `slow_path` for an array of another thread, and for what is no array.
    """
    known: dict[ArraySpec, Learnt] = {}

    def record_one(x: Any, /) -> Any:
        if not isinstance(x, Recorded):
            return slow_path(x)
        recorder = x._recorder
        if recorder.thread != get_ident():
            return slow_path(x)
        signature, result = known.get(x._spec) or known.setdefault(x._spec, learn(op, (x._spec,)))
        return _record(type(x), recorder, (signature, x._handle), result)

    return record_one


def prefix_operator(op: Op, slow_path: Callable[[R], R]) -> Callable[[R], R]:
    """Returns the method of a prefix operator that records `op`."""
    return unary(op, slow_path)


def _record(kind: type[R], recorder: Recorder, record: Record, spec: ArraySpec, values: Sequence[Scalar] = ()) -> R:
    """Adds a record, which ends with `values`, to the tape. Returns an object for the op's result."""
    tape, result = recorder._tape, object.__new__(kind)
    for value in values:
        tape.values.append(value)  # no finaliser or signal handler can run between this and `len(values)`
        operand = -tape.value_origin - len(tape.values)
        record = (*record, operand)  # allocates, so that a finaliser may run
    tape.records.append(record)  # no finaliser or signal handler can run between this and `len(records)`
    result._handle = number = tape.origin + len(tape.records)
    result._spec = spec
    result._recorder = recorder
    recorder._op_places.put(number, place_of(sys._getframe(1)))
    if number >= recorder.checkpoint:
        recorder.on_checkpoint(number)
    return result


def _is_interrupting() -> bool:
    """Returns whether this code has interrupted this thread in recording another op, which still uses the tape.

    A finaliser or a signal handler that records ops interrupts so.
    """
    frame: FrameType | None = sys._getframe(1)
    recording = 0
    while frame is not None and recording < 2:
        recording += frame.f_code is _record.__code__
        frame = frame.f_back
    return recording > 1
