"""Finds indices on the server that are out of range, for a session that debugs; elsewhere they are clamped.

Each use of such an index records ops beside it. They keep one number for each thread: that of the first place in the
program that used an index out of range, or 0. The next read of the session fetches the numbers together with its value.
Within the body of a loop or function the number is one more value that the body takes or returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from fusewire._recording.record_op import Recorded, apply, create
from fusewire._recording.recorder import Recorder
from fusewire._recording.source_lines import user_source_line
from fusewire._stream.receivers import UserFuture
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME


class IndexChecks:
    """The checks of one session. Each recording thread writes its own entries, and a read of any thread takes them."""

    def __init__(self) -> None:
        self._number_of: dict[str, int] = {}  # of each place that used an index; from 1
        self._found: dict[Recorder, Any] = {}  # arrays: int64, rank 0
        self._found_in_body: dict[Recorder, Any] = {}  # the same, of the body that the thread records

    def check(self, indices: Any, length: int) -> None:
        """Records the check that the array `indices` lies in an axis of `length`."""
        place = f"an index on the server is out of range for an axis of length {length} ({user_source_line()})"
        number = self._number_of.setdefault(place, len(self._number_of) + 1)
        is_outside = ((indices < -length) | (indices >= length)).any()
        self.note(apply(BY_NAME["where"], (is_outside, number, 0)))

    def note(self, found: Recorded) -> None:
        """Keeps a number behind the earlier ones of the calling thread."""
        recorder = found._recorder.owner.recorder()
        numbers = self._found_in_body if recorder.is_in_body else self._found
        earlier = numbers.get(recorder)
        numbers[recorder] = found if earlier is None else _first_of(earlier, found)

    def note_loop(self, of_function: Recorded | None, found: Recorded) -> None:
        """Keeps the number of a loop behind that of the function in which it stands, if it stands in one."""
        if of_function is not None:
            self.note(of_function)
        self.note(found)

    def nothing(self, kind: type[Recorded], recorder: Recorder) -> Recorded:
        """Returns the number 0 on the server."""
        return create(kind, recorder, BY_NAME["full"], ((dtypes.int64, 0),), ((), dtypes.int64.code))

    def begin_body(self, recorder: Recorder, found: Recorded | None) -> None:
        """Begins a body that takes the number `found`, or none."""
        self._found_in_body.pop(recorder, None)
        if found is not None:
            self._found_in_body[recorder] = found

    def end_body(self, recorder: Recorder) -> Any:
        """Returns the number of the body, or None if nothing was checked."""
        return self._found_in_body.pop(recorder, None)

    def take(self) -> list[Recorded]:
        """Returns the numbers of all threads and forgets them."""
        return [found for recorder in [*self._found] if (found := self._found.pop(recorder, None)) is not None]

    def error_of(self, numbers: Sequence[Future[Any]], timeout: float | None = None) -> IndexError | None:
        """Returns the error that fetched numbers tell of, or None. A number that failed tells of none."""
        places = [*self._number_of]
        for fetched in numbers:
            number = 0 if fetched.exception(timeout) else int(fetched.result())
            if number:
                return IndexError(places[number - 1])
        return None

    def guarded(self, value: UserFuture, numbers: Sequence[UserFuture]) -> UserFuture:
        """Returns a future of the value that fails if the numbers tell of an error."""
        guarded = UserFuture()

        def settle() -> None:
            if not guarded.set_running_or_notify_cancel():
                return
            error = value.exception() or self.error_of(numbers)
            if error is None:
                guarded.set_result(value.result())
            else:
                guarded.set_exception(error)

        _when_all_are_done([value, *numbers], settle)
        return guarded


def _first_of(earlier: Any, later: Recorded) -> Any:
    return apply(BY_NAME["where"], (earlier == 0, later, earlier))


def _when_all_are_done(futures: Sequence[UserFuture], then: Callable[[], None]) -> None:
    if not futures:
        then()
        return
    futures[0].when_done(lambda _: _when_all_are_done(futures[1:], then))
