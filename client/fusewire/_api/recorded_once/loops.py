"""A loop whose body is recorded once: `fori_loop`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.ops.operands import asarray, session_of
from fusewire._api.recorded_once.nested import Form, flatten, unflatten
from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire._recording.bodies.body import BodyRecording
from fusewire._recording.bodies.function_body import FunctionRecording, recording_loop
from fusewire._recording.notes import NotedLoop, Notes
from fusewire._recording.record_op import create, operand_handle
from fusewire._recording.recorder import Recorder
from fusewire_protos.frames import MAX_ITERATIONS
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME


def fori_loop(n: int, body: Callable[[Array, Any], Any], carry: Any, /) -> Any:
    """Returns the carry after `n` iterations of `carry = body(i, carry)`.

    `body` is called once, to record its ops, unless `n` is 0 or less. The loop then runs on the server, and costs the
    client one small message however many iterations it has. `carry` is an array, a number, or nested tuples, lists and
    dicts of these. The body returns a carry of the same form, dtypes and shapes. It may use other arrays, which are the
    same in each iteration. It cannot read values, so that a Python `if` on them raises RequestError; nor can it hold
    another `fori_loop`. Within a `function` the loop is recorded with it.

    `i` is an int64 array of rank 0: 0, 1, …, n − 1. What is computed from it and integers by +, − and · may be an
    index, or both bounds of a slice that always has the same length.

    Raises ArgumentError for more than 2^32 iterations or a carry of another form, ShapeError or DtypeError for a carry
    of other shapes or dtypes, and QuotaExceeded for a body of more ops than `limits.program_ops`.
    """
    count = operator.index(n)
    if count > MAX_ITERATIONS:
        raise ArgumentError(f"fori_loop of {count} iterations; the most is {MAX_ITERATIONS}")
    leaves, form = flatten(_without_complex_scalars(carry))
    arrays = _arrays(leaves)
    if count <= 0:
        return unflatten(form, [array.copy() for array in arrays])
    recorder = arrays[0]._recorder.owner.recorder()
    checks = recorder.owner.index_checks
    of_function = None  # what the checks of the function have found in which the loop stands
    if checks is not None:
        of_function = checks.end_body(recorder)
        arrays.append(checks.nothing(Array, recorder))
    try:
        initial, carried = _record(recorder, body, arrays, form, count)
    except BaseException:
        if checks is not None:  # the function may catch the error, and goes on with what it had found
            checks.begin_body(recorder, of_function)
        raise
    results = [carried[each] if each in carried else array.copy() for each, array in initial.items()]
    if checks is not None:
        checks.note_loop(of_function, results.pop())
    return unflatten(form, results)


def _record(
    recorder: Recorder, body: Callable[[Array, Any], Any], arrays: Sequence[Array], form: Form, count: int
) -> tuple[dict[int, Array], dict[int, Array]]:
    """Records a loop of `count` iterations, and sends it or leaves it to the function in which it stands.

    Returns for each parameter the array that it is in the first iteration, and what is carried: the result that it is
    in the next, if it changes.
    """
    notes, function, checks = recorder.notes, recorder.function, recorder.owner.index_checks
    with recording_loop(recorder) as recording:
        before = _place_in(notes)
        index = create(Array, recorder, BY_NAME["full"], ((dtypes.int64, 0),), ((), dtypes.int64.code))
        recording.count_by(index, count)
        number = index._handle
        parameters = [recording.parameter(Array, array._spec) for array in arrays]
        initial = {parameter._handle: array for parameter, array in zip(parameters, arrays, strict=True)}
        if checks is not None:
            checks.begin_body(recorder, parameters[-1])
        returned, returned_form = flatten(body(index, unflatten(form, parameters)))
        if checks is not None:
            returned.append(checks.end_body(recorder))
        carried = _carried(recording, returned, returned_form, initial, form)
        _note(notes, before, recording, (count, number), initial, carried)
        del index, parameters, returned
        is_carried = any(each._handle == number for each in carried.values())
        index_steps = is_carried or not recording.drop_unused_first(number)
        if carried:
            _end_loop(recorder, function, initial, carried, count, index_steps=index_steps)
    return initial, carried


def _without_complex_scalars(carry: Any) -> Any:
    """Returns the carry with arrays in place of complex scalars, which have two parts as their arrays."""
    leaves, form = flatten(carry)
    if not any(isinstance(leaf, complex | np.complexfloating) for leaf in leaves):
        return carry
    own = session_of(leaves)
    return unflatten(
        form, [own.array(leaf) if isinstance(leaf, complex | np.complexfloating) else leaf for leaf in leaves]
    )


def _arrays(leaves: Sequence[Any]) -> list[Array]:
    if not leaves:
        raise ArgumentError("the carry of fori_loop holds no array")
    if any(leaf is None for leaf in leaves):
        raise ArgumentError("the carry of fori_loop holds None; it may hold arrays and numbers")
    own = next((leaf._recorder.owner for leaf in leaves if isinstance(leaf, Array)), None)
    return [asarray(leaf) if own is None else own.array(leaf) for leaf in leaves]


def _carried(
    recording: BodyRecording, returned: list[Any], returned_form: Form, initial: Mapping[int, Array], form: Form
) -> dict[int, Array]:
    """Returns the results that are carried to the next iteration, by the handles of the parameters that take them.

    What the body has not computed is copied; but what it returns as it got it is the same in each iteration. `initial`
    holds for each parameter the array that it is in the first one.
    """
    if any(leaf is None for leaf in returned):
        raise ArgumentError("the body of fori_loop returns None; it must return the next carry")
    if returned_form != form:
        raise ArgumentError(f"the body of fori_loop gets a carry of the form {form}, but returns {returned_form}")
    firsts = [*initial.values()]
    arrays = [leaf if isinstance(leaf, Array) else firsts[0]._recorder.owner.array(leaf) for leaf in returned]
    for position, (array, first) in enumerate(zip(arrays, firsts, strict=True)):
        if array.dtype != first.dtype:
            text = f"carry {position} is {first.dtype.name} at first, and {array.dtype.name} after the body"
            raise DtypeError(f"{text}: the counter is int64, and a float in the carry float64; `astype` converts them")
        if array.shape != first.shape:
            raise ShapeError(f"carry {position} is {first.shape} at first, and {array.shape} after the body")
    return {
        parameter: array if recording.computes(array) else array.copy()
        for parameter, array in zip(initial, arrays, strict=True)
        if array._handle != parameter
    }


def _place_in(notes: Notes | None) -> tuple[int, int]:
    return (0, 0) if notes is None else notes.place


def _note(
    notes: Notes | None,
    before: tuple[int, int],
    recording: BodyRecording,
    counted: tuple[int, int],
    initial: Mapping[int, Array],
    carried: Mapping[int, Array],
) -> None:
    """Notes a loop, if a gradient is wanted, in place of the ops of its body, noted since the place `before`.

    `counted` are the number of iterations and the handle of the counter.
    """
    if notes is None:
        return
    body, arrays = notes.cut(before)
    outside = [each for each in arrays if not recording.computes(each) and each._handle not in initial]
    first, following = ({each: array._handle for each, array in group.items()} for group in (initial, carried))
    ops = [op for op in body if op.result != counted[1]]
    notes.add_loop(NotedLoop(*counted, first, following, ops), [*outside, *initial.values(), *carried.values()])


def _end_loop(
    recorder: Recorder,
    function: FunctionRecording | None,
    initial: Mapping[int, Array],
    carried: Mapping[int, Array],
    iterations: int,
    *,
    index_steps: bool,
) -> None:
    """Sends a recorded loop, or leaves it to the function in which it stands.

    For each parameter, `initial` holds the array that it is in the first iteration, and `carried` the result that it is
    in the next, if it changes.
    """
    pins: list[Any] = []  # keep the handles of other threads' arrays alive until the loop is sent
    bound = {parameter: operand_handle(array, recorder, pins) for parameter, array in initial.items()}
    handles = {parameter: array._handle for parameter, array in carried.items()}
    if function is not None:
        function.add_loop(bound, handles, iterations, index_steps=index_steps)
        return
    recorder.owner.send_body(recorder, lambda: recorder.draft_loop(bound, handles, iterations, index_steps=index_steps))
