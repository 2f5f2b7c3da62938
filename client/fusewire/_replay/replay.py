"""Sends the frames of a recording in a new session, and compares the answers with the recorded answers.

A frame is sent when its time has come and the server has completed as much as it had when the frame was recorded. So a
replay keeps to the credit that the recorded session had. Values that the recording does not hold are drawn at random.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from math import isinf
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from fusewire._errors import ConfigurationError, FusewireError, WaitTimeout
from fusewire._replay.records import Answer, LargeUpload, Outcome, Record, Recording, SentFrame
from fusewire._stream.credit import amount_of
from fusewire._stream.frames import ClientStream, Outgoing
from fusewire._transport.interface import ConnectionCut, Transport
from fusewire._transport.local_channel import LocalOffer
from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError, exception_of
from fusewire_protos.frames import (
    Abandon,
    Entry,
    Explain,
    Fetch,
    NewProgram,
    Profile,
    Segment,
    Upload,
    decode_entries,
    decode_programs,
)
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.v1 import fusewire_pb2 as wire

_HEARTBEAT_S = 1.0
_LEAST_INTEGER, _MOST_INTEGER = 0, 8  # drawn integers are 0 to 7, so that they can be indices of small arrays
_MOST_NAMED = 5

OnAnswer = Callable[[int, int], None]  # takes when a fetch was to be sent, and when its answer came (monotonic, ns)


class Replayed(NamedTuple):
    """What a replay has done.

    `answered` holds for each answered fetch the time at which the fetch was to be sent, and the time at which its
    answer came, in ns of the monotonic clock.
    """

    segments: int
    ops: int
    duration_s: float
    answered: tuple[tuple[int, int], ...]
    compared: int  # answers that were compared with kept values
    differences: tuple[str, ...]  # a sentence for each answer that differs from the recorded one


class Replay:
    """One replay of a recording, over a transport of its own. `run` is called once.

    `on_answer` is called in the I/O thread, as soon as a fetch has been answered.
    """

    def __init__(
        self,
        transport: Transport,
        recording: Recording,
        *,
        speed: float,
        seed: int,
        client: str,
        on_answer: OnAnswer | None = None,
    ) -> None:
        self._transport = transport
        self._recording = recording
        self._speed = speed
        self._seed = seed
        # Used by the calling thread only.
        self._declared: set[int] = set()  # handles of large uploads whose bytes have not been read from the file yet
        self._values: dict[int, bytes] = {}  # bytes of large uploads that no sent frame has declared yet
        self._segments = 0
        self._on_answer = on_answer
        self._changed = threading.Condition()
        # Guarded by the condition.
        self._stream = ClientStream(client)
        self._is_welcome = False
        self._chunk_bytes = 0  # the longest chunk of a large upload
        self._owes_heartbeat = False
        self._completed = Amount()
        self._lost: FusewireError | None = None
        self._intended_ns: dict[int, int] = {}  # fetch without an answer -> when it was to be sent
        self._recorded: dict[int, Outcome] = {}  # fetch without an answer -> its recorded answer
        self._answers: dict[int, Outcome] = {}  # fetch -> its answer, while the recorded one has not been read
        self._answered: list[tuple[int, int]] = []
        self._compared = 0
        self._differences: list[str] = []
        self._is_stopping = False

    def run(self, timeout_s: float) -> Replayed:
        """Replays the recording, unless `stop` is called. Raises the error that ended the session, or WaitTimeout."""
        ends_at_s = time.monotonic() + timeout_s
        self._transport.open(self)
        try:
            self._wait(lambda: self._is_welcome, ends_at_s)
            began_ns = time.monotonic_ns()
            for record in self._recording.records():
                self._replay(record, began_ns, ends_at_s)
            self._wait(lambda: not self._intended_ns, ends_at_s)
            duration_s = (time.monotonic_ns() - began_ns) / 1e9
            with self._changed:
                farewell = self._stream.goodbye()
        except BaseException:
            self._transport.close(None)
            raise
        self._transport.close(farewell)
        self._transport.wait_closed(_HEARTBEAT_S)
        return self._replayed(duration_s)

    def stop(self) -> None:
        """Makes `run` send no more frames, and return once all that was sent has been answered. Any thread may call."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def missing(self) -> str:
        """Says which fetches have no answer yet."""
        with self._changed:
            fetches = sorted(self._intended_ns)
        more = f" and {len(fetches) - _MOST_NAMED} more" if len(fetches) > _MOST_NAMED else ""
        named = ", ".join(map(str, fetches[:_MOST_NAMED]))
        return f"fetch {named}{more} has no answer" if fetches else "all fetches that were sent have answers"

    # ---- the thread that replays ----

    def _replay(self, record: Record, began_ns: int, ends_at_s: float) -> None:
        if isinstance(record, Answer):
            self._compare(self._recorded, self._answers, record.fetch, record.value)
        elif isinstance(record, LargeUpload):
            self._values[record.handle] = record.value
            self._upload_values()
        else:
            intended_ns = self._due(record, began_ns, ends_at_s)
            if not self._is_stopping:
                self._send(record, intended_ns)

    def _due(self, record: SentFrame, began_ns: int, ends_at_s: float) -> int:
        """Waits until a frame may be sent. Returns the time at which the frame was to be sent."""
        intended_ns = began_ns + (0 if isinf(self._speed) else round(record.at_ns / self._speed))
        self._wait_until(intended_ns, ends_at_s)
        self._wait(lambda: self._is_stopping or record.completed.fits(self._completed), ends_at_s)
        return time.monotonic_ns() if isinf(self._speed) else intended_ns

    def _send(self, record: SentFrame, intended_ns: int) -> None:
        with self._changed:
            outgoing = [each for each in self._outgoing(record.raw) if not self._leaves_out(each.entry)]
            for each in outgoing:
                if isinstance(each.entry, Fetch):
                    self._intended_ns[each.entry.fetch] = intended_ns
                elif isinstance(each.entry, Abandon):
                    self._intended_ns.pop(each.entry.fetch, None)
            self._stream.post(*outgoing)
        self._transport.wake()
        for each in outgoing:
            if isinstance(each.entry, Upload) and each.tensor is None:
                self._upload_beside(each.entry)

    def _leaves_out(self, entry: Entry) -> bool:
        """Tells whether an entry says that an answer has been taken that this replay has not had yet.

        A question how programs or segments run is left out too, because its answer differs from server to server.
        """
        return isinstance(entry, Explain | Profile) or (isinstance(entry, Abandon) and entry.fetch in self._recorded)

    def _outgoing(self, raw: bytes) -> Iterator[Outgoing]:
        """Yields the entries of a recorded frame. Each new program goes with the first segment that uses it."""
        try:
            frame = wire.ClientFrame.FromString(raw)
            new = decode_programs(frame.programs) if frame.programs else []
            entries = decode_entries(frame.bindings)
        except (CaseError, DecodeError) as error:
            raise ConfigurationError(f"the recording holds a malformed frame: {error}") from None
        programs = {program.number: program for program in new}
        for entry in entries:
            yield self._of_entry(entry, programs, frame)

    def _of_entry(self, entry: Entry, programs: dict[int, NewProgram], frame: wire.ClientFrame) -> Outgoing:
        if isinstance(entry, Segment):
            self._segments += 1
            return Outgoing(entry, program=programs.pop(entry.program, None))
        if not isinstance(entry, Upload):
            return Outgoing(entry)
        if entry.tensor is None:
            return Outgoing(entry)
        if not self._recording.header.keeps_values:
            return Outgoing(entry, tensor=self._drawn(entry.handle, entry.spec).tobytes())
        if entry.tensor >= len(frame.tensors):
            raise ConfigurationError("the recording holds a malformed frame: it lacks a value that it declares")
        return Outgoing(entry, tensor=frame.tensors[entry.tensor])

    def _upload_beside(self, upload: Upload) -> None:
        """Sends the bytes of a declared upload: drawn bytes at once, kept bytes as soon as they have been read."""
        if self._recording.header.keeps_values:
            self._declared.add(upload.handle)
            self._upload_values()
        else:
            self._send_beside(upload.handle, self._drawn(upload.handle, upload.spec).tobytes())

    def _upload_values(self) -> None:
        for handle in self._declared & self._values.keys():
            self._declared.remove(handle)
            self._send_beside(handle, self._values.pop(handle))

    def _send_beside(self, handle: int, value: bytes) -> None:
        raw, step = memoryview(value), self._chunk_bytes
        chunks = [raw[start : start + step] for start in range(0, len(raw), step)]
        self._transport.upload(self._stream.session_id, handle, chunks)

    def _drawn(self, handle: int, spec: Spec) -> Any:
        """Draws random values of a spec. They depend only on the seed and the handle."""
        random = np.random.default_rng((self._seed, handle))
        dtype = dtypes.to_numpy(spec.dtype)
        if spec.dtype.is_boolean:
            return random.integers(0, 2, spec.shape).astype(dtype)
        if spec.dtype.is_integer:
            return random.integers(_LEAST_INTEGER, _MOST_INTEGER, spec.shape).astype(dtype)
        return random.standard_normal(spec.shape).astype(dtype)

    def _wait_until(self, at_ns: int, ends_at_s: float) -> None:
        while (left_s := (at_ns - time.monotonic_ns()) / 1e9) > 0 and not self._is_stopping:
            self._check(ends_at_s)
            time.sleep(min(left_s, _HEARTBEAT_S))

    def _wait(self, is_so: Callable[[], bool], ends_at_s: float) -> None:
        with self._changed:
            while not is_so():
                self._check(ends_at_s)
                self._changed.wait(_HEARTBEAT_S)

    def _check(self, ends_at_s: float) -> None:
        if self._lost is not None:
            raise self._lost
        if time.monotonic() > ends_at_s:
            raise WaitTimeout(f"the replay did not end in time: {self.missing()}")

    def _replayed(self, duration_s: float) -> Replayed:
        answered, differences = tuple(self._answered), tuple(self._differences)
        return Replayed(self._segments, self._completed.ops, duration_s, answered, self._compared, differences)

    # ---- the I/O thread ----

    def hello(self) -> bytes:
        with self._changed:
            return self._stream.hello()

    def next_frame(self) -> bytes | None:
        with self._changed:
            raw = self._stream.next_frame()
            if raw is not None or not self._owes_heartbeat:
                return raw
            self._owes_heartbeat = False
            return self._stream.heartbeat() if self._stream.owes_acknowledgement else None

    def on_frame(self, raw: bytes) -> bool:
        frame = wire.ServerFrame.FromString(raw)
        with self._changed:
            if frame.HasField("welcome"):
                self._stream.on_welcome(frame.welcome)
                self._chunk_bytes = frame.welcome.limits.chunk_bytes
                self._is_welcome = True
            is_new = self._stream.on_frame(frame)
            if is_new:
                self._stream.took(frame)
            if frame.HasField("completed"):
                self._completed = amount_of(frame.completed)
            if frame.HasField("goodbye"):
                self._lost = exception_of(frame.goodbye.code, frame.goodbye.text) if frame.goodbye.code else None
            self._changed.notify_all()
        for result in frame.results if is_new else ():
            self._on_result(result)
        return self._stream.waiting_entries > 0

    def is_awaited(self) -> bool:
        return True

    def on_tick(self) -> float:
        self._owes_heartbeat = True
        return _HEARTBEAT_S

    def on_download(self, fetch: int, raw: bytearray | memoryview) -> None:
        self._answer(fetch, self._outcome(raw))
        with self._changed:
            self._stream.post(Outgoing(Abandon(fetch)))
        self._transport.wake()

    def on_download_failed(self, fetch: int, reason: Exception) -> None:
        self._answer(fetch, answer=False)

    def on_cut(self, _reason: ConnectionCut) -> None:
        """Resumes nothing, because the time of a pause would be in what the replay measures."""

    def local_offer(self) -> LocalOffer | None:
        return None  # a replay takes the way of a client elsewhere

    def on_lost(self, error: FusewireError) -> None:
        with self._changed:
            self._lost = self._lost or error
            self._changed.notify_all()

    def _on_result(self, result: wire.Result) -> None:
        kind = result.WhichOneof("answer")
        if kind == "beside_bytes":
            self._transport.download(self._stream.session_id, result.fetch, result.beside_bytes)
        else:
            self._answer(result.fetch, self._outcome(result.inline) if kind == "inline" else False)

    def _outcome(self, value: bytes | bytearray | memoryview) -> Outcome:
        return bytes(value) if self._recording.header.keeps_values else True

    def _answer(self, fetch: int, answer: Outcome) -> None:
        now_ns = time.monotonic_ns()
        with self._changed:
            intended_ns = self._intended_ns.pop(fetch, None)
            if intended_ns is None:
                return
            self._answered.append((intended_ns, now_ns))
            self._compare(self._answers, self._recorded, fetch, answer)
            if self._on_answer is not None:
                self._on_answer(intended_ns, now_ns)
            self._changed.notify_all()

    # ---- either thread ----

    def _compare(self, own: dict[int, Outcome], other: dict[int, Outcome], fetch: int, outcome: Outcome) -> None:
        """Compares the two answers of a fetch once both are there, whichever comes first."""
        with self._changed:
            own[fetch] = outcome
            if fetch not in other:
                return
            recorded, answer = self._recorded.pop(fetch), self._answers.pop(fetch)
            self._compared += isinstance(recorded, bytes)
            difference = _difference(recorded, answer)
            if difference is not None:
                self._differences.append(f"fetch {fetch} {difference}")


def _difference(recorded: Outcome, answer: Outcome) -> str | None:
    """Says how an answer differs from the recorded one; None if it is the same, or its value was not kept."""
    if not isinstance(recorded, bytes) or not isinstance(answer, bytes):
        is_same = (answer is not False) == (recorded is not False)
        return None if is_same else f"was {_named(recorded)} and is {_named(answer)}"
    if len(recorded) != len(answer):
        return f"was {len(recorded)} bytes and is {len(answer)}"
    was, now = (np.frombuffer(value, np.uint8) for value in (recorded, answer))
    (places,) = np.nonzero(was != now)
    if not len(places):
        return None
    first = places[0]
    return f"differs in {len(places)} of {len(was)} bytes: byte {first} was {was[first]:#04x} and is {now[first]:#04x}"


def _named(answer: Outcome) -> str:
    return "a failure" if answer is False else "a value"
