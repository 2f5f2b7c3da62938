"""Keeps a session's answers until the client has taken them. No I/O, no clock.

The server numbers the frames that carry answers, and keeps each frame until the client acknowledges it. Answers that
the client has not taken bound its fetches: beyond `limits.unread_bytes` values stay on the device until the client
takes some. With nothing untaken, one value of any size may go.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.programs.failure import Failure

MOST_DOWNLOADS = 4  # the most calls that carry one answer at once, because each call holds a chunk of its own
_ANSWER_BYTES = 64  # size of an answer in a frame without the value or the text of its failure


class Answer(NamedTuple):
    """The outcome of a fetch: the value's bytes, the number of bytes that travel beside the stream, or the failure."""

    fetch: int
    data: memoryview | None
    failure: Failure | None
    beside_bytes: int = 0  # the size of a value that is too large for a frame, else 0


@dataclass(slots=True)
class Beside:
    """A value on the host that travels beside the stream, kept for the client and for the calls that carry it."""

    data: memoryview
    is_wanted: bool = True  # whether the client has neither taken nor abandoned it
    calls: int = 0  # number of downloads that carry it now


class Answers:
    """The answers of one session. Owned by the loop thread."""

    def __init__(self, most_unread_bytes: int) -> None:
        self.most_unread_bytes = most_unread_bytes
        self.last_frame = 0
        self.unsent: list[Answer] = []
        self.unacknowledged: deque[tuple[int, list[Answer]]] = deque()
        self.beside: dict[int, Beside] = {}  # answers that Download calls carry, by fetch
        self.untaken: dict[int, int] = {}  # host bytes held until the answer is acknowledged, by fetch
        self.unread_bytes = 0  # the sum of these and of the values in `beside`

    def owe_again(self) -> None:
        """Queues all unacknowledged answers again for a new stream, whose client expects their first number next."""
        owed = [answer for _, answers in self.unacknowledged for answer in answers]
        self.last_frame -= len(self.unacknowledged)
        self.unacknowledged.clear()
        self.unsent[:0] = owed

    def acknowledge(self, number: int) -> None:
        """Drops frames up to `number`, which the client has seen. Raises CaseError for a number that was never sent."""
        if number > self.last_frame:
            raise CaseError("undecodable_frame", f"frame {number} is acknowledged; the last sent is {self.last_frame}")
        while self.unacknowledged and self.unacknowledged[0][0] <= number:
            _, answers = self.unacknowledged.popleft()
            for answer in answers:
                self.unread_bytes -= self.untaken.pop(answer.fetch, 0)

    def may_read(self, size_bytes: int) -> bool:
        """Returns whether the host may hold that many more bytes that the client has not taken."""
        return self.unread_bytes == 0 or self.unread_bytes + size_bytes <= self.most_unread_bytes

    def begin_read(self, fetch: int, size_bytes: int) -> None:
        """Counts a fetched value that is on its way to the host."""
        self.untaken[fetch] = size_bytes
        self.unread_bytes += size_bytes

    def drop_read(self, fetch: int) -> None:
        """Drops a value that has come to the host after the client abandoned it."""
        self.unread_bytes -= self.untaken.pop(fetch, 0)

    def add(self, fetch: int, data: memoryview) -> None:
        """Queues the value of a fetch as an answer."""
        if len(data) <= INLINE_BYTES:
            self.unsent.append(Answer(fetch, data, None))
            return
        self.beside[fetch] = Beside(data)
        self.untaken[fetch] = 0  # its bytes are counted in `beside`
        self.unsent.append(Answer(fetch, None, None, len(data)))

    def add_failure(self, fetch: int, failure: Failure) -> None:
        """Queues a failure as the answer to a fetch."""
        self.untaken.setdefault(fetch, 0)
        self.unsent.append(Answer(fetch, None, failure))

    def tell_again(self, fetch: int) -> bool:
        """Answers a fetch again if its answer was acknowledged and its bytes still wait beside the stream.

        Returns whether so.
        """
        beside = self.beside.get(fetch)
        if beside is None or not beside.is_wanted:
            return False
        self.untaken[fetch] = 0
        self.unsent.append(Answer(fetch, None, None, len(beside.data)))
        return True

    def begin_download(self, fetch: int) -> Beside | None:
        """Returns the value that a call carries; None if there is none. Raises CaseError if enough calls carry it."""
        beside = self.beside.get(fetch)
        if beside is None or not beside.is_wanted:
            return None
        if beside.calls >= MOST_DOWNLOADS:
            raise CaseError("too_many_calls", f"{MOST_DOWNLOADS} calls carry the answer to fetch {fetch}; no more may")
        beside.calls += 1
        return beside

    def end_download(self, fetch: int, beside: Beside, *, is_complete: bool) -> None:
        """Ends a call. The bytes are dropped when the client has them and no other call carries them."""
        beside.calls -= 1
        if is_complete:
            beside.is_wanted = False
        self._drop_unwanted(fetch, beside)

    def forget_beside(self, fetch: int) -> None:
        """Drops an answer that the client does not want.

        An answer inside a frame stays until the frame is acknowledged.
        """
        beside = self.beside.get(fetch)
        if beside is not None:
            beside.is_wanted = False
            self._drop_unwanted(fetch, beside)

    def forget_all(self) -> None:
        """Drops all answers of a session that has ended, because nobody will take them."""
        self.unsent.clear()
        self.unacknowledged.clear()
        self.unread_bytes -= sum(self.untaken.values())
        self.untaken.clear()
        for fetch in list(self.beside):
            self.forget_beside(fetch)

    def take(self, most_bytes: int) -> tuple[int, list[Answer]]:
        """Takes the answers to send now. Returns the number of the frame that carries them (0 if none), and them.

        A frame takes answers until their size exceeds `most_bytes`; the rest go in the next frame.
        """
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
    """Returns the number of answers in a frame: at least one, and just so many that they exceed `most_bytes`."""
    frame_bytes = 0
    for count, answer in enumerate(answers, 1):
        frame_bytes += _ANSWER_BYTES
        if answer.data is not None:
            frame_bytes += len(answer.data)
        elif answer.failure is not None:
            frame_bytes += len(answer.failure.text)
        if frame_bytes > most_bytes:
            return count
    return len(answers)
