"""Keeps the handles of results that will never exist, those of a whole segment in one object. Pure.

Neither a fetch nor a segment makes a value of such a handle: a fetch is answered with the failure, and a row that takes
the handle gets a stand-in. So the memory depends on how many segments have failed, and not on how many results they
have. If a failed result has the handle of a value, the value keeps the handle until it is freed.
"""

from __future__ import annotations

from bisect import bisect_right

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import NO_REPETITION, Repetition
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.outline import ONE_RESULT, Outline


class FailedRange:
    """The handles of the results that a client keeps of one segment that failed for one reason.

    If the results of iterations share handles, only the last iteration counts.
    """

    __slots__ = (
        "_base",
        "_failure",
        "_freed",
        "_handle_stride",
        "_iterations",
        "_kept",
        "_origin",
        "_outline",
        "count",
        "first",
    )

    def __init__(
        self, failure: Failure, base: int, outline: Outline = ONE_RESULT, repetition: Repetition = NO_REPETITION
    ) -> None:
        iterations, handle_stride, kept, *_ = repetition
        self._failure = failure  # of the segment; a result's own failure names its op
        self._base = base
        self._origin = base  # of the first iteration that counts
        self._outline = outline
        self._iterations = iterations
        self._handle_stride = handle_stride
        self._kept = None if kept is None else kept[: outline.live.bit_count()]
        self._freed: set[int] | None = None
        if handle_stride < outline.width and iterations > 1:
            self._origin += (iterations - 1) * handle_stride
            self._iterations, self._kept = 1, None if kept is None else tuple([min(each, 1) for each in kept])
        self.count = outline.live.bit_count() if self._kept is None else sum(self._kept)
        most_kept = 1 if self._kept is None else max(self._kept, default=0)
        self.first = self._origin + (self._iterations - most_kept) * handle_stride  # no handle is lower

    @property
    def last(self) -> int:
        """No handle is higher."""
        return self._origin + (self._iterations - 1) * self._handle_stride + self._outline.width - 1

    @property
    def freed(self) -> int:
        """How many of its handles the client has freed."""
        return 0 if self._freed is None else len(self._freed)

    def op_of(self, handle: int) -> int | None:
        """Returns the index of the op whose result has the handle. None: no result has it, or the client freed it."""
        iteration, index = 0, handle - self._origin
        if self._iterations > 1:
            iteration, index = divmod(index, self._handle_stride)
        position = self._outline.position_of(index)
        if position is None or iteration >= self._iterations or (self._freed is not None and handle in self._freed):
            return None
        if self._kept is None:
            return index
        kept = self._kept[position] if position < len(self._kept) else 0
        return index if iteration >= self._iterations - kept else None

    def failure_of(self, op_index: int) -> Failure:
        """Returns the failure of the results of an op."""
        return self._failure.of_result(self._outline, self._base, op_index)

    def free(self, handle: int) -> None:
        """Notes that the client has freed a handle of the range."""
        if self._freed is None:
            self._freed = set()
        self._freed.add(handle)


class FailedHandles:
    """The failed handles of one session. The engine thread owns this object.

    `firsts` has the first handle of each range, ascending. No range begins before the range before it ends.
    """

    __slots__ = ("_ranges", "count", "firsts", "freed")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self._ranges: list[FailedRange] = []
        self.count = 0  # of the handles that the client holds
        self.freed = 0  # how many handles of the ranges the client has freed

    def __len__(self) -> int:
        """Returns how many ranges there are."""
        return len(self.firsts)

    def __contains__(self, handle: int) -> bool:
        return self._found(handle) is not None

    def failure_of(self, handle: int) -> Failure | None:
        """Returns the failure of a handle, or None if the handle is not a failed result that the client holds."""
        found = self._found(handle)
        return None if found is None else self._ranges[found[0]].failure_of(found[1])

    def add(self, failed: FailedRange) -> None:
        """Adds a range. Raises CaseError (a protocol case) if its handles lie among those of another range."""
        if not failed.count:
            return
        position = bisect_right(self.firsts, failed.first)
        before, behind = self._ranges[max(position - 1, 0) : position], self.firsts[position : position + 1]
        if (before and before[0].last >= failed.first) or (behind and behind[0] <= failed.last):
            text = f"handles {failed.first} to {failed.last} lie among those of a segment that failed"
            raise CaseError("reused_handle", text)
        self.firsts.insert(position, failed.first)
        self._ranges.insert(position, failed)
        self.count += failed.count

    def free(self, handle: int) -> None:
        """Frees a handle. Ignores a handle that is not a failed result. Drops a range that has no other handle."""
        found = self._found(handle)
        if found is None:
            return
        failed = self._ranges[found[0]]
        failed.free(handle)
        self.count -= 1
        self.freed += 1
        if failed.freed == failed.count:
            self.freed -= failed.count
            del self.firsts[found[0]], self._ranges[found[0]]

    def _found(self, handle: int) -> tuple[int, int] | None:
        """Returns the position of the handle's range, and the index of its op."""
        position = bisect_right(self.firsts, handle) - 1
        op_index = self._ranges[position].op_of(handle) if position >= 0 else None
        return None if op_index is None else (position, op_index)
