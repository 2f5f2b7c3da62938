"""A function whose ops are recorded once, and then again without a call of it: `function`."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from fusewire._api.array import Array
from fusewire._api.recorded_once.nested import Form, flatten, unflatten
from fusewire._errors import ArgumentError
from fusewire._recording.bodies.body import BodyRecording
from fusewire._recording.bodies.function_body import recording_function
from fusewire._recording.bodies.stages import Stage
from fusewire._recording.default_session import default_session
from fusewire._recording.pinned_handles import HandlePin
from fusewire._recording.record_op import operand_handle
from fusewire._recording.recorded_ops import exchange
from fusewire._recording.recorder import Owner, Recorder

MOST_RECORDINGS = 64  # of a function in a session; beyond, the one that was used least recently is dropped

P = ParamSpec("P")
T = TypeVar("T")


class _Result(NamedTuple):
    """An array that a recorded function returns: the result of one of its ops, by the handle that it had."""

    handle: int


class _Argument(NamedTuple):
    """An array that a recorded function returns: an argument to whose elements it has assigned."""

    place: int


class _Recording(NamedTuple):
    """The ops and loops of a function for arguments of one form.

    `places` holds for the handle of each parameter the index of an argument. `assigned` holds the new values of the
    arguments to whose elements the function assigns, by index. `returned` holds the leaves of what the function
    returns, with a `_Result` or `_Argument` for each array. If `checks_indices`, one more leaf is the number of the
    session's `index_checks`.
    """

    stages: Sequence[Stage]
    places: Mapping[int, int]
    pins: Sequence[HandlePin]  # keep the handles of the surroundings' arrays alive
    assigned: Mapping[int, _Result]
    returned: Sequence[Any]
    form: Form
    checks_indices: bool


class _Recordings(WeakKeyDictionary[Owner, "OrderedDict[Hashable, _Recording]"]):
    """The recordings of a function by session. A pickle, by which joblib sends functions to processes, has none."""

    def __reduce__(self) -> tuple[type[_Recordings], tuple[()]]:
        return _Recordings, ()


def function(call: Callable[P, T]) -> Callable[P, T]:
    """Makes a function whose ops are recorded at its first call, and run again at later calls.

    A later call costs the client some microseconds, however many ops the function has: its Python does not run. Calls
    one after the other, also with other ops between them, are sent as a loop. The function is recorded anew
    for arguments of another form, dtype or shape, for other values of arguments that are no arrays, and in another
    session. Of each session, 64 recordings are kept. Arguments and results are arrays, other values, or nested tuples,
    lists and dicts of these; arguments that are neither must be hashable. NumPy arrays are uploaded at each call. An
    argument to whose elements the function assigns has its new value after each call, but a NumPy array stays as it is.

    What the function does beside ops happens only when it is recorded. An array that it takes from its surroundings is
    the one of that time. It cannot read values, so that a Python `if` on them raises RequestError. A `fori_loop` in it
    is recorded with it; a call is then sent as the loop and what stands before and behind it. Within the body of a loop
    or of another such function, and while `grad` and the like note the ops of their function, the function is called as
    it is.
    """
    recordings = _Recordings()

    @functools.wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        leaves, form = flatten((args, kwargs))
        owner = _owner_of(leaves)
        recorder = owner.recorder()
        if recorder.is_in_body or recorder.notes is not None:
            return call(*args, **kwargs)
        leaves = [owner.array(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        of_session = recordings.setdefault(owner, OrderedDict())
        key = (form, tuple([_key(leaf) for leaf in leaves]))
        try:
            recording = of_session.pop(key, None)
        except TypeError as error:
            raise ArgumentError(
                f"an argument of a recorded function is neither an array nor hashable: {error}"
            ) from None
        if recording is None:
            recording = _record(recorder, call, form, leaves)
        results = _replay(recorder, recording, leaves)
        of_session[key] = recording
        if len(of_session) > MOST_RECORDINGS:
            of_session.popitem(last=False)
        if recording.checks_indices:
            owner.index_checks.note(results.pop())
        returned: T = unflatten(recording.form, results)
        return returned

    return run


def _record(recorder: Recorder, call: Callable[..., Any], form: Form, leaves: Sequence[Any]) -> _Recording:
    """Calls the function with parameters in place of the arrays."""
    with recording_function(recorder) as recording:
        parameters = [recording.parameter(Array, leaf._spec) if isinstance(leaf, Array) else leaf for leaf in leaves]
        places = {each._handle: index for index, each in enumerate(parameters) if isinstance(each, Array)}
        args, kwargs = unflatten(form, parameters)
        checks = recorder.owner.index_checks
        if checks is not None:
            checks.begin_body(recorder, None)
        results, returned_form = flatten(call(*args, **kwargs))
        found = None if checks is None else checks.end_body(recorder)
        results += [] if found is None else [found]
        assigned = _assigned(parameters, recording)
        results = [_returned(each, assigned, recording) for each in results]
        arrays = [*assigned.values(), *(each for each in results if isinstance(each, Array))]
        if not arrays:
            raise ArgumentError("a recorded function returns no array, so that there is nothing to run")
        return _Recording(
            recording.end([each._handle for each in arrays]),
            places,
            recording.pins,
            {index: _as_result(each) for index, each in assigned.items()},
            [_as_result(each) for each in results],
            returned_form,
            found is not None,
        )


def _assigned(parameters: Sequence[Any], recording: BodyRecording) -> dict[int, Array]:
    """Returns the parameters to whose elements the function has assigned, by index."""
    arrays = [(index, each) for index, each in enumerate(parameters) if isinstance(each, Array)]
    return {index: each for index, each in arrays if recording.computes(each)}


def _returned(each: Any, assigned: Mapping[int, Array], recording: BodyRecording) -> Any:
    """Returns what stands for a leaf that the function returns. An array that it has not computed is copied."""
    index = next((index for index, array in assigned.items() if array is each), None)
    if index is not None:
        return _Argument(index)
    return each.copy() if isinstance(each, Array) and not recording.computes(each) else each


def _as_result(each: Any) -> Any:
    return _Result(each._handle) if isinstance(each, Array) else each


def _replay(recorder: Recorder, known: _Recording, leaves: Sequence[Any]) -> list[Any]:
    """Records the ops and loops again. Returns the leaves of the results."""
    pins: list[HandlePin] = []
    handles = {handle: operand_handle(leaves[place], recorder, pins) for handle, place in known.places.items()}
    results: dict[int, Array] = {}
    for stage in known.stages:
        for op, array in zip(stage.body.live, stage.record_again(Array, recorder, handles, pins), strict=True):
            handle = stage.first + op
            results[handle], handles[handle] = array, array._handle
    for index, assigned in known.assigned.items():
        exchange(leaves[index], results[assigned.handle])

    def value(each: Any) -> Any:
        if isinstance(each, _Argument):
            return leaves[each.place]
        return results[each.handle] if isinstance(each, _Result) else each

    return [value(each) for each in known.returned]


def _owner_of(leaves: Sequence[Any]) -> Owner:
    own = next((leaf._recorder.owner for leaf in leaves if isinstance(leaf, Array)), None)
    return default_session() if own is None else own


def _key(leaf: Any) -> Hashable:
    """Returns what must be equal in two calls that share a recording."""
    if isinstance(leaf, Array):
        return leaf._spec
    is_float = isinstance(leaf, float | np.floating)
    return type(leaf), repr(leaf) if is_float else leaf  # 0.0 equals −0.0, but is another scalar; NaN equals no NaN
