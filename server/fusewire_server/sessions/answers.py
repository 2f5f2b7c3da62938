"""Keeps the answers that a session's client is owed or has not taken yet. No I/O, no clock.

The server numbers the frames that carry answers, and keeps each until the client acknowledges it. What bounds fetches
is what the client has not yet taken: beyond `limits.unread_bytes` values stay on the device until it takes some (with
nothing untaken one of any size may go).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES
from fusewire_server.programs.failure import Failure

MOST_DOWNLOADS = 4  # calls that carry one answer at once: each holds a chunk of its own
_ANSWER_BYTES = 64  # what an answer takes in a frame beside its value or the text of its failure


class Answer(NamedTuple):
    """What a fetch came to: the value's bytes, how many of them travel beside the stream, or why there are none."""

    fetch: int
    data: memoryview | None
    failure: Failure | None
    beside_bytes: int = 0  # of a value that is too large for a frame


@dataclass(slots=True)
class Beside:
    """A value on the host that travels beside the stream: kept for the client, and for the calls that carry it."""

    data: memoryview
    is_wanted: bool = True  # the client has not taken it yet, nor abandoned it
    calls: int = 0  # downloads that carry it now


class Answers:
    """Those of one session. Owned by the loop thread."""

    def __init__(self, most_unread_bytes: int) -> None:
        self.most_unread_bytes = most_unread_bytes
        self.last_frame = 0
        self.unsent: list[Answer] = []
        self.unacknowledged: deque[tuple[int, list[Answer]]] = deque()
        self.beside: dict[int, Beside] = {}  # answers that Download carries, by fetch
        self.untaken: dict[int, int] = {}  # by fetch: host bytes held until it is acknowledged
        self.unread_bytes = 0  # of these and of what is beside

    def owe_again(self) -> None:
        """A new stream takes over: the client has seen nothing that is unacknowledged, and expects the next number."""
        owed = [answer for _, answers in self.unacknowledged for answer in answers]
        self.last_frame -= len(self.unacknowledged)
        self.unacknowledged.clear()
        self.unsent[:0] = owed

    def acknowledge(self, number: int) -> None:
        """The client has seen frames up to `number`. Raises CaseError for one that was never sent."""
        if number > self.last_frame:
            raise CaseError("undecodable_frame", f"frame {number} is acknowledged; the last sent is {self.last_frame}")
        while self.unacknowledged and self.unacknowledged[0][0] <= number:
            _, answers = self.unacknowledged.popleft()
            for answer in answers:
                self.unread_bytes -= self.untaken.pop(answer.fetch, 0)

    def may_read(self, size_bytes: int) -> bool:
        """Whether the host may hold that many more bytes for the client to take."""
        return self.unread_bytes == 0 or self.unread_bytes + size_bytes <= self.most_unread_bytes

    def begin_read(self, fetch: int, size_bytes: int) -> None:
        """A fetched value is on its way to the host."""
        self.untaken[fetch] = size_bytes
        self.unread_bytes += size_bytes

    def drop_read(self, fetch: int) -> None:
        """A value has come to the host that the client abandoned meanwhile."""
        self.unread_bytes -= self.untaken.pop(fetch, 0)

    def add(self, fetch: int, data: memoryview) -> None:
        """The client is owed the value of a fetch."""
        if len(data) <= INLINE_BYTES:
            self.unsent.append(Answer(fetch, data, None))
            return
        self.beside[fetch] = Beside(data)
        self.untaken[fetch] = 0  # its bytes are counted with what is beside
        self.unsent.append(Answer(fetch, None, None, len(data)))

    def add_failure(self, fetch: int, failure: Failure) -> None:
        """The client is owed the reason why a fetch has no value."""
        self.untaken.setdefault(fetch, 0)
        self.unsent.append(Answer(fetch, None, failure))

    def tell_again(self, fetch: int) -> bool:
        """Whether a fetch whose answer was acknowledged still has its bytes here; then the client is told once more."""
        beside = self.beside.get(fetch)
        if beside is None or not beside.is_wanted:
            return False
        self.untaken[fetch] = 0
        self.unsent.append(Answer(fetch, None, None, len(beside.data)))
        return True

    def begin_download(self, fetch: int) -> Beside | None:
        """What a call is to carry; None if there is nothing. Raises CaseError if enough calls carry it."""
        beside = self.beside.get(fetch)
        if beside is None or not beside.is_wanted:
            return None
        if beside.calls >= MOST_DOWNLOADS:
            raise CaseError("too_many_calls", f"{MOST_DOWNLOADS} calls carry the answer to fetch {fetch}; no more may")
        beside.calls += 1
        return beside

    def end_download(self, fetch: int, beside: Beside, *, is_complete: bool) -> None:
        """A call carries it no longer; the bytes go when the client has them and no call needs them."""
        beside.calls -= 1
        if is_complete:
            beside.is_wanted = False
        self._drop_unwanted(fetch, beside)

    def forget_beside(self, fetch: int) -> None:
        """The client does not want an answer. One inside a frame is there until that is acknowledged."""
        beside = self.beside.get(fetch)
        if beside is not None:
            beside.is_wanted = False
            self._drop_unwanted(fetch, beside)

    def forget_all(self) -> None:
        """The session has ended: nobody will take what it is owed."""
        self.unsent.clear()
        self.unacknowledged.clear()
        self.unread_bytes -= sum(self.untaken.values())
        self.untaken.clear()
        for fetch in list(self.beside):
            self.forget_beside(fetch)

    def take(self, most_bytes: int) -> tuple[int, list[Answer]]:
        """The answers to send now and the number of the frame that carries them (0 if there are none).

        A frame takes answers until those inside it exceed `most_bytes`; the rest go with the next.
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
    """How many answers make a frame: one at least, and so many that they just exceed `most_bytes`."""
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
