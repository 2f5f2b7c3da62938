"""`step`: a training step that is recorded once, and then replayed without running its Python."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

import torch

from fusewire import Session
from fusewire._api.recorded_once.nested import flatten, unflatten
from fusewire_torch.captured.arguments import Arguments
from fusewire_torch.captured.calls import call_plainly, call_recorded
from fusewire_torch.captured.python_state import PythonState
from fusewire_torch.captured.recording import Recording
from fusewire_torch.connection import device_recorder, session
from fusewire_torch.storage import Kernel, is_watched

MOST_KEYS = 64  # of a step; beyond, the recording that was used least recently is dropped
_MOST_DIFFERING = 4  # recordings of a step one after the other, each of which differs from the one before
_PLAIN_CALLS_BEFORE_WARNING = 20

P = ParamSpec("P")
T = TypeVar("T")


class _Case:
    """What is known of the calls with one key."""

    def __init__(self) -> None:
        self.state: PythonState | None = None  # behind the last call that was no replay
        self.recording: Recording | None = None  # the last one
        self.is_confirmed = False  # whether the recording before was equal
        self.differing = 0
        self.is_given_up = False
        self.plain_calls = 0


def step(call: Callable[P, T]) -> Callable[P, T]:
    """Makes a function, which trains or computes on the device, run as a whole instead of op by op.

    The function is called plainly at first, so that optimizers make their state, then recorded at two calls, whose
    recordings are compared, and from then on replayed: its Python does not run. It is recorded anew for tensors of
    other shapes or dtypes, for other values of arguments that are no tensors, and when a setting has changed of an
    optimizer or module that it uses. Of each step, 64 recordings are kept. A step that differs from call to call runs
    plainly, with a warning.

    A replay reads the tensors that the function has from elsewhere, writes those that it writes, and leaves the
    gradients of parameters and what else the function keeps in the same tensor objects as before. Tensors that it
    returns are new, and have no gradient. Random numbers go on as in plain calls.

    The function reads no value, as `.item()` does, and uploads nothing: RequestError is raised. It computes from no
    number that changes from call to call: ArgumentError is raised, as for tensors of the CPU among the arguments.
    Optimizers take `capturable=True`, and `lr` as a tensor of the device if it changes often. A call that raises leaves
    all tensors as they were. Within another step, the function is called as it is.
    """
    cases: OrderedDict[Hashable, _Case] = OrderedDict()
    of_session: list[Session] = []

    def run(*given: P.args, **named: P.kwargs) -> T:
        if is_watched():
            return call(*given, **named)
        if of_session != [session()]:
            cases.clear()
            of_session[:] = [session()]
        arguments = Arguments(given, named)
        key = arguments.key()
        case = cases.pop(key, None) or _Case()
        try:
            returned: T = _call(case, call, arguments)
        finally:
            cases[key] = case
            if len(cases) > MOST_KEYS:
                cases.popitem(last=False)
        return returned

    kernel = Kernel(run)

    @functools.wraps(call)
    def stepped(*given: P.args, **named: P.kwargs) -> T:
        returned: T = kernel(*given, **named)
        return returned

    return stepped


def _call(case: _Case, call: Callable[..., Any], arguments: Arguments) -> Any:
    change = _change(case)
    if change is None and case.is_confirmed:
        assert case.recording is not None, "it was confirmed"
        return case.recording.replay(arguments)
    if change is None and not case.is_given_up and session().index_checks is None:
        return _record(case, call, arguments)
    return _run_plainly(case, call, arguments, change)


def _change(case: _Case) -> str | None:
    """Returns why the next call can be neither replayed nor recorded, as text, or None."""
    if case.is_confirmed and case.recording is not None:
        return case.recording.change()
    return "it is called for the first time" if case.state is None else case.state.change()


def _run_plainly(case: _Case, call: Callable[..., Any], arguments: Arguments, change: str | None) -> Any:
    case.recording, case.is_confirmed, case.differing = None, False, 0
    case.plain_calls += 1
    if change is not None and case.plain_calls == _PLAIN_CALLS_BEFORE_WARNING:
        warnings.warn(f"a step runs plainly at each call, so that nothing is gained: {change}", stacklevel=2)
    returned, case.state = call_plainly(call, arguments)
    leaves, form = flatten(returned)
    return unflatten(form, [each.detach() if isinstance(each, torch.Tensor) else each for each in leaves])


def _record(case: _Case, call: Callable[..., Any], arguments: Arguments) -> Any:
    assert case.state is not None, "the first call runs plainly"
    earlier = case.recording
    case.recording = call_recorded(device_recorder(), call, arguments, case.state, earlier)
    difference = None if earlier is None else earlier.difference(case.recording)
    case.is_confirmed = earlier is not None and difference is None
    case.state = case.recording.state
    case.differing = 0 if difference is None else case.differing + 1
    if case.differing == _MOST_DIFFERING:
        case.is_given_up = True
        warnings.warn(
            f"a step differs from call to call, so that it is run plainly from now on: {difference}; give the tensors "
            "that change as arguments",
            stacklevel=2,
        )
    return case.recording.replay(arguments)
