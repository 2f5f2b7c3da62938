"""Keeps a session's answers until the client has taken them. No I/O, no clock.

The server numbers the frames that carry answers, and keeps each frame until the client acknowledges it. A number names
the same answers for ever, because streams of the same client may be seen in the wrong order: if a frame were made anew
for a stream that is older than it seems, the client would take it for the one that it has. The values that
a client has asked for and not yet received hold at most `limits.unread_bytes` of host memory. Further values that it
asks for stay on the device until it has received some. If the client has received all values, one value of any size may
come to the host.
"""

from __future__ import annotations

from builtins import memoryview  # noqa: A004 - mypyc looks for types of fields in the module
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.tables.salted_table import SaltedTable

MOST_READ_AT_ONCE = 512  # values on their way to the host, however small, so that no turn of the event loop is long
MOST_DOWNLOADS = 4  # the most calls that carry one answer at once, because each call holds a copy of a part of it
MOST_ANSWERS = 512  # of a frame, however short, because a frame is made in one step
_ANSWER_BYTES = 64  # what an answer adds to a frame, not counting its value or the text of its failure


class Answer(NamedTuple):
    """The outcome of a fetch: the bytes of a small value, the size of a large value, or the failure.

    A frame does not carry a large value; the client gets it by a Download call.
    """

    fetch: int
    data: memoryview | None
    failure: Failure | None
    beside_bytes: int = 0  # the size of a value that is too large for a frame, else 0


@dataclass(slots=True)
class Beside:
    """A value on the host for Download calls. It is kept while the client or a Download call needs it."""

    data: memoryview
    is_wanted: bool = True  # whether the client has not yet said that it has it, or does not want it
    calls: int = 0  # number of downloads that carry it now


class Answers:
    """The answers of one session. The engine thread owns this object."""

    def __init__(self, most_unread_bytes: int) -> None:
        self.most_unread_bytes = most_unread_bytes
        self.last_frame = 0
        self.unsent: list[Answer] = []
        self.unacknowledged: deque[tuple[int, list[Answer]]] = deque()
        self._again: deque[tuple[int, list[Answer]]] = deque()  # those of them that this stream is still to carry
        self.beside: SaltedTable[Beside] = SaltedTable()  # number of the fetch -> a value that Download calls carry
        self.being_read: SaltedTable[int] = (
            SaltedTable()
        )  # number of the fetch -> size of the value on its way to the host
        self.untaken: SaltedTable[int] = (
            SaltedTable()
        )  # number of the fetch -> host bytes held until the answer is acknowledged
        self.unread_bytes = 0  # the sum of `being_read`, `untaken` and the sizes of the values in `beside`

    @property
    def are_owed(self) -> bool:
        """Whether the stream has answers to carry."""
        return bool(self._again or self.unsent)

    def owe_again(self) -> None:
        """Owes all unacknowledged frames to a new stream, as they were."""
        self._again = self.unacknowledged.copy()

    def acknowledge(self, number: int) -> None:
        """Drops the frames up to `number`, because the client has seen them.

        Raises CaseError if frame `number` was never sent.
        """
        if number > self.last_frame:
            raise CaseError("undecodable_frame", f"frame {number} is acknowledged; the last sent is {self.last_frame}")
        while self._again and self._again[0][0] <= number:
            self._again.popleft()
        while self.unacknowledged and self.unacknowledged[0][0] <= number:
            _, answers = self.unacknowledged.popleft()
            for answer in answers:
                self.unread_bytes -= self.untaken.pop(answer.fetch, 0)

    def may_read(self, size_bytes: int) -> bool:
        """Returns whether a value of `size_bytes` may come to the host now."""
        if len(self.being_read) >= MOST_READ_AT_ONCE:
            return False
        return self.unread_bytes == 0 or self.unread_bytes + size_bytes <= self.most_unread_bytes

    def begin_read(self, fetch: int, size_bytes: int) -> None:
        """Counts a fetched value that is on its way to the host."""
        self.being_read[fetch] = size_bytes
        self.unread_bytes += size_bytes

    def drop_read(self, fetch: int) -> None:
        """Drops a value that has come to the host after the client abandoned it."""
        self.unread_bytes -= self.being_read.pop(fetch, 0)

    def add(self, fetch: int, data: memoryview) -> None:
        """Queues the value of a fetch as an answer."""
        size_bytes = self.being_read.pop(fetch, 0)
        if len(data) <= INLINE_BYTES:
            self.untaken[fetch] = size_bytes
            self.unsent.append(Answer(fetch, data, None))
            return
        self.beside[fetch] = Beside(data)
        self.untaken[fetch] = 0  # its bytes are counted in `beside`
        self.unsent.append(Answer(fetch, None, None, len(data)))

    def add_failure(self, fetch: int, failure: Failure) -> None:
        """Queues a failure as the answer to a fetch."""
        self.untaken[fetch] = self.being_read.pop(fetch, 0)
        self.unsent.append(Answer(fetch, None, failure))

    def tell_again(self, fetch: int) -> bool:
        """Answers a fetch again if its answer was acknowledged and its bytes still wait for a Download call.

        Returns whether the fetch was answered again.
        """
        beside = self.beside.get(fetch)
        if beside is None or not beside.is_wanted:
            return False
        self.untaken[fetch] = 0
        self.unsent.append(Answer(fetch, None, None, len(beside.data)))
        return True

    def begin_download(self, fetch: int) -> Beside | None:
        """Returns the value that a new Download call carries, or None if no value waits for the fetch.

        Raises CaseError if `MOST_DOWNLOADS` calls carry the value already.
        """
        beside = self.beside.get(fetch)
        if beside is None or not beside.is_wanted:
            return None
        if beside.calls >= MOST_DOWNLOADS:
            raise CaseError("too_many_calls", f"{MOST_DOWNLOADS} calls carry the answer to fetch {fetch}; no more may")
        beside.calls += 1
        return beside

    def end_download(self, fetch: int, beside: Beside) -> None:
        """Ends a Download call. Drops the bytes if the client wants them no more and no other call carries them.

        That all bytes were sent does not tell that they have arrived: the connection may break.
        """
        beside.calls -= 1
        self._drop_unwanted(fetch, beside)

    def forget_beside(self, fetch: int) -> None:
        """Drops the bytes of a large answer that the client does not want, as soon as no Download call carries them.

        An answer whose bytes are inside a frame stays until the frame is acknowledged.
        """
        beside = self.beside.get(fetch)
        if beside is not None:
            beside.is_wanted = False
            self._drop_unwanted(fetch, beside)

    def forget_all(self) -> None:
        """Drops all answers of a session that has ended, because nobody will take them."""
        self.unsent.clear()
        self.unacknowledged.clear()
        self._again.clear()
        self.unread_bytes -= sum(self.being_read.values()) + sum(self.untaken.values())
        self.being_read.clear()
        self.untaken.clear()
        for fetch in list(self.beside):
            self.forget_beside(fetch)

    def take(self, most_bytes: int) -> tuple[int, list[Answer]]:
        """Takes the answers to send now. Returns the number of the frame that carries them, and the answers.

        Those of frames that are sent again come first.

        The number is 0 if there are no answers. A frame takes answers until their size exceeds `most_bytes`, but no
        more than `MOST_ANSWERS`; the rest go in the next frame.
        """
        if self._again:
            return self._again.popleft()
        if not self.unsent:
            return 0, []
        count = _count_until(self.unsent, most_bytes)
        answers, self.unsent = self.unsent[:count], self.unsent[count:]
        self.last_frame += 1
        self.unacknowledged.append((self.last_frame, answers))
        return self.last_frame, answers

    def _drop_unwanted(self, fetch: int, beside: Beside) -> None:
        if beside.is_wanted or beside.calls:
            return
        if self.beside.get(fetch) is beside:
            del self.beside[fetch]
        self.unread_bytes -= len(beside.data)


def _count_until(answers: list[Answer], most_bytes: int) -> int:
    """Returns the number of answers in a frame: the fewest that exceed `most_bytes`, or as many as a frame may have."""
    frame_bytes = 0
    for count, answer in enumerate(answers, 1):
        frame_bytes += _ANSWER_BYTES
        if answer.data is not None:
            frame_bytes += len(answer.data)
        elif answer.failure is not None:
            frame_bytes += len(answer.failure.text)
        if frame_bytes > most_bytes or count == MOST_ANSWERS:
            return count
    return len(answers)
