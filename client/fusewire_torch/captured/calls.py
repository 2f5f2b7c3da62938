"""Calls a step: plainly, or so that its ops are recorded as a body that can be used again.

If the step raises, all tensors of the device are as they were. While a step runs, its thread alone uses the device, and
autograd runs its kernels in this thread.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from fusewire import ArgumentError
from fusewire._recording.bodies.body import recording_body
from fusewire._recording.recorder import Recorder
from fusewire_torch import random_state
from fusewire_torch.captured.arguments import Arguments
from fusewire_torch.captured.making import Making
from fusewire_torch.captured.python_state import (
    Gradient,
    PythonState,
    Used,
    check_replayable,
    gradients_of,
    restore,
    without_schedulers,
)
from fusewire_torch.captured.recording import Recording
from fusewire_torch.captured.storage_log import StorageLog
from fusewire_torch.storage import watched_by

Call = Callable[..., Any]


def call_plainly(call: Call, arguments: Arguments) -> tuple[Any, PythonState]:
    """Calls a step as it is. Returns what it returns, and the state of its Python behind it."""
    log, used = StorageLog(), Used()
    with _undone_if_it_raises(log, []), _watched(log, used):
        returned = arguments.called_with(arguments.leaves, call)
    return returned, PythonState(used)


def call_recorded(
    recorder: Recorder, call: Call, arguments: Arguments, before: PythonState, earlier: Recording | None
) -> Recording:
    """Calls a step, and records it. Its first replay is the call: until then, all tensors are as they were.

    `before` is the state of its Python, `earlier` the recording before. Raises ArgumentError if the two are of the same
    ops, but of other scalars.
    """
    gradients, used = gradients_of(before.used), Used()
    with recording_body(recorder) as body, _all_made_stays_young():
        making = Making(recorder, body, arguments)
        with _undone_if_it_raises(making.log, gradients):
            with _watched(making.log, used), without_schedulers():
                returned = arguments.called_with(making.leaves(), call)
            check_replayable(used)
            making.note_end(returned, gradients, used)
            del returned
            recording = making.recording(PythonState(used))
            _check_scalars(earlier, recording)
        making.go_back()
    return recording


def _check_scalars(earlier: Recording | None, recording: Recording) -> None:
    """Raises ArgumentError for a scalar that Python computed anew, and that a replay would not."""
    if earlier is None or earlier.difference(recording) is not None:
        return
    found = earlier.changing_scalar(recording)
    if found is not None:
        raise ArgumentError(
            f"a step that is recorded once computes from a number that changes from call to call: {found}. A replay "
            "would keep the first: make it a tensor of the device (an optimizer's lr=torch.tensor(…), capturable=True) "
            "or an argument of the step"
        )


@contextmanager
def _all_made_stays_young() -> Iterator[None]:
    """Keeps the garbage collector from looking at objects, so that a look at the youngest finds all that are made.

    A look at all objects of a process with PyTorch takes a quarter of a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _undone_if_it_raises(log: StorageLog, gradients: Sequence[Gradient]) -> Iterator[None]:
    random_numbers = random_state.saved()
    try:
        yield
    except BaseException:
        log.undo()
        restore(gradients)
        random_state.restore(random_numbers)
        raise


@contextmanager
def _watched(log: StorageLog, used: Used) -> Iterator[None]:
    with watched_by(log), used.noted(), torch.autograd.set_multithreading_enabled(False):
        yield
