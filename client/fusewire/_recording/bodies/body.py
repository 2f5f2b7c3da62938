"""Records the body of a loop or of a function: ops that are sent as a whole, and whose operands each use binds anew.

Before a body is recorded, all earlier ops are sent. A *parameter* is an array that stands for a value which is bound
when the body is used. Its handle is never sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusewire._errors import RequestError
from fusewire._recording.record_op import R, Recorded, recorded_of_handle
from fusewire._recording.recorded_ops import records_no_body
from fusewire._recording.recorder import Counter, Recorder
from fusewire._recording.signature import ArraySpec


class BodyRecording:
    """A body that is being recorded by the calling thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.first = recorder.next_number

    def parameter(self, kind: type[R], spec: ArraySpec) -> R:
        """Returns an array that stands for a value of this spec."""
        return recorded_of_handle(kind, self._recorder, self._recorder.mint_parameter(), spec)

    def computes(self, array: Recorded) -> bool:
        """Returns whether an op of the body has computed the array."""
        return array._recorder is self._recorder and self.first <= array._handle < self._recorder.next_number

    def count_by(self, index: Recorded, iterations: int) -> None:
        """Tells the recorder which array is the counter of the loop."""
        self._recorder.counter = Counter(index._handle, iterations)

    def drop_unused_first(self, handle: int) -> bool:
        """Leaves the first op out of the body if no other op takes its result `handle`. Returns whether it did."""
        is_dropped = handle == self.first and self._recorder.drop_first_of_body()
        self.first += is_dropped
        return is_dropped


def check_may_assign(array: Recorded) -> None:
    """Raises RequestError if the calling thread records a body and `array` is from outside.

    The body runs later and any number of times, so that the array would have no value now.
    """
    if records_no_body(array):
        return
    recorder = array._recorder.owner.recorder()
    if recorder.is_in_body and not _is_of_body(array, recorder):
        raise RequestError("the body of a loop or function cannot assign to an array from outside; assign to a copy")


def check_may_draw(recorder: Recorder, key: Recorded | None) -> None:
    """Raises RequestError if a body is recorded and the key of random numbers is from outside, or known as a number.

    Each use of the body would draw the same numbers.
    """
    if recorder.is_in_body and (key is None or not _is_of_body(key, recorder)):
        raise RequestError(
            "the body of a loop or function is recorded once, so that a generator from outside would draw the same "
            "numbers each time: make one in the body, fw.random.Generator(fw.random.fold_in(key, i)), of the counter i "
            "and a key = fw.random.key(seed) from outside, or of a key that is an argument"
        )


def _is_of_body(array: Recorded, recorder: Recorder) -> bool:
    return array._recorder is recorder and recorder.is_of_body(array._handle)


@contextmanager
def recording_body(recorder: Recorder) -> Iterator[BodyRecording]:
    """Records what the `with` body records as a body. Its ops are given up if they are not sent within the `with` body.

    Raises RequestError within another body.
    """
    if recorder.is_in_body:
        raise RequestError("fori_loop cannot be recorded within the body of another loop; a loop in Python can")
    recorder.owner.flush_all(recorder)
    recorder.begin_body()
    try:
        yield BodyRecording(recorder)
    finally:
        recorder.end_body()
