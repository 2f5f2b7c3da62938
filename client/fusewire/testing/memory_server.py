"""Defines a server in memory, for tests. It serves one session in the same process, without a network.

The server decodes frames as a real server does, and computes segments in order with NumPy. It validates nothing and
enforces no quotas. A test can make the server hold credit back until the test calls `complete`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

import numpy as np

from fusewire.testing.interpreter import Execute, Host, interpret
from fusewire_protos import frames
from fusewire_protos.credit import Amount, cost_of
from fusewire_protos.errors import BY_NAME
from fusewire_protos.frames import INLINE_BYTES, Entry, NewProgram, in_iteration, repeat_period
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.profiled import MOST_RUNS, Run, encode_profiled, encode_run
from fusewire_protos.programs import codec as programs
from fusewire_protos.programs.explained import ExplainedProgram, encode_explained
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import Program
from fusewire_protos.programs.records import NO_RECORDS, OpForm, OpRecord
from fusewire_protos.v1 import fusewire_pb2 as wire

CREDIT = Amount(ops=1 << 16, bytes=256 << 20, segments=64)
_MOST_KEPT = 1 << 16  # entries or programs, so that a long test needs no more and more memory
_NOTHING = np.empty(0)  # stands for an input that was not made, because the segment that makes it failed
LIMITS = wire.Limits(
    message_bytes=4 << 20,
    array_bytes=1 << 30,
    programs=1024,
    program_ops=8192,
    program_operands=32768,
    program_bytes=1 << 20,
    chunk_bytes=4096,
)


class MemoryServer:
    """The server of one session, without I/O: it takes frames and returns frames. `session_in_memory` connects to it.

        server = MemoryServer()
        with session_in_memory(server) as session:
            my_program(session)
        assert len(server.programs) <= 4

    `execute` computes programs. The server sends `credit` and `limits` to the client. If `holds_completion` is true,
    credit returns only when the test calls `complete`.
    """

    def __init__(
        self,
        *,
        execute: Execute = interpret,
        credit: Amount = CREDIT,
        limits: wire.Limits = LIMITS,
        holds_completion: bool = False,
    ) -> None:
        self._execute = execute
        self._credit = credit
        self._limits = limits
        self._applied = 0
        self._epoch = 0
        self._sent = 0
        self._unacknowledged: deque[tuple[int, list[wire.Result]]] = deque()  # by frame, answers that may be lost
        self._waiting: deque[Entry] = deque()  # entries in order; the first may wait for the bytes of a large upload
        self._in_flight: deque[Amount] = deque()
        self._runs: deque[Run] = deque(maxlen=MOST_RUNS)
        self._completed = Amount()
        self.holds_completion = holds_completion
        self._numbered: set[int] = set()  # numbers of programs for which no `Forget` entry was received
        self.programs: dict[int, Program] = {}  # number -> program, until a `Forget` entry is applied
        self.values: dict[int, Host] = {}  # handle -> a value that the client holds
        self.awaited: dict[int, Spec] = {}  # handle -> spec of a declared upload that has not arrived
        self.beside: dict[int, bytes] = {}  # number of a fetch -> a large answer that waits for its download
        self.entries: list[Entry] = []  # the last 65,536 entries received, in order
        self.new_programs: list[NewProgram] = []  # the last 65,536 programs received, in order
        self.failing: dict[int, str] = {}  # base handle of a segment that must fail -> name of the error case

    def receive(self, raw: bytes) -> list[bytes]:
        """Applies a frame of the client, unless it was applied before. Returns the frames to be sent back."""
        assert len(raw) <= self._limits.message_bytes, "the client sends no longer frame than the server takes"
        frame = wire.ClientFrame.FromString(raw)
        while self._unacknowledged and self._unacknowledged[0][0] <= frame.acknowledged:
            self._unacknowledged.popleft()
        if frame.HasField("hello"):
            return [each.SerializeToString() for each in self._greeting()]
        if frame.number <= self._applied:
            return []
        assert frame.number == self._applied + 1, "the client leaves no gap"
        self._applied = frame.number
        for new in frames.decode_programs(frame.programs):
            self.new_programs.append(new)
            self._numbered.add(new.number)
            assert len(self._numbered) <= self._limits.programs, "the client keeps to the limit in the midst of a frame"
            self.programs[new.number] = programs.decode(new.raw, self._program_limits())
        for entry in frames.decode_entries(frame.bindings):
            self.entries.append(entry)
            self._waiting.append(entry)
            if isinstance(entry, frames.Forget):
                self._numbered.remove(entry.program)
            if isinstance(entry, frames.Upload) and entry.tensor is not None:
                self.values[entry.handle] = _host(frame.tensors[entry.tensor], entry.spec)
        del self.entries[:-_MOST_KEPT], self.new_programs[:-_MOST_KEPT]
        return self._work()

    def upload(self, handle: int, raw: bytes) -> list[bytes]:
        """Takes the bytes of a large upload and returns the frames to be sent back."""
        self.values[handle] = _host(raw, self.awaited.pop(handle))
        return self._work()

    def complete(self, segments: int | None = None) -> list[bytes]:
        """Returns held credit to the client, for the `segments` oldest segments and uploads together.

        If `segments` is None, returns all held credit.
        """
        held = len(self._in_flight)
        self._return_credit(held if segments is None else min(segments, held))
        return [self._frame([]).SerializeToString()]

    @property
    def segments(self) -> list[frames.Segment]:
        return [entry for entry in self.entries if isinstance(entry, frames.Segment)]

    def program_of(self, segment: frames.Segment) -> Program:
        return self.programs[segment.program]

    def _work(self) -> list[bytes]:
        results: list[wire.Result] = []
        while self._waiting and not self._must_wait(self._waiting[0]):
            self._apply(self._waiting.popleft(), results)
        if not self.holds_completion:
            self._return_credit(len(self._in_flight))
        return [self._frame(results).SerializeToString()]

    def _return_credit(self, count: int) -> None:
        """Counts the `count` oldest segments and uploads in flight as completed."""
        for _ in range(count):
            self._completed = self._completed.plus(self._in_flight.popleft())

    def _must_wait(self, entry: Entry) -> bool:
        if isinstance(entry, frames.Segment):
            return any(handle in self.awaited for handle in entry.all_inputs)
        return isinstance(entry, frames.Fetch) and entry.handle in self.awaited

    def _apply(self, entry: Entry, results: list[wire.Result]) -> None:
        match entry:
            case frames.Segment():
                began_ns = time.monotonic_ns()
                self._run(entry)
                self._note_run(entry, began_ns)
            case frames.Upload(handle, spec, None):
                self.awaited[handle] = spec
            case frames.Upload(_, spec, _):
                self._in_flight.append(Amount(bytes=spec.size_bytes))
            case frames.Free(handles):
                self._free(handles)
            case frames.Fetch():
                results.append(self._answer(entry))
            case frames.Explain() | frames.Profile():
                results.append(wire.Result(fetch=entry.fetch, inline=self._described(entry)))
            case frames.Forget(number):
                del self.programs[number]

    def _run(self, segment: frames.Segment) -> None:
        program, repetition = self.programs[segment.program], segment.repetition
        kept = (1,) * len(program.live) if repetition.kept is None else repetition.kept
        once = Amount(program.op_count, program.live_bytes, 1)
        self._in_flight.append(cost_of(repetition, once, program.live_sizes, self._credit.ops))
        values = {handle: self.values.get(handle, _NOTHING) for handle in segment.all_inputs}
        self._free([segment.all_inputs[position] for position in segment.dying])
        if any(value is _NOTHING for value in values.values()):
            self.failing[segment.base] = "cancelled"
        if segment.base in self.failing:
            return
        scalars = repeat_period(segment.scalars, len(program.scalars), "scalars")
        starts = repeat_period(segment.starts, program.starts, "starts")
        inputs = [values[handle] for handle in segment.inputs]
        for iteration in range(repetition.iterations):
            handles = in_iteration(segment.inputs, repetition.inputs, iteration)
            for number, _ in repetition.inputs:
                inputs[number] = values[handles[number]]
            own_scalars = in_iteration(scalars, repetition.scalars, iteration)
            results = self._execute(program, inputs, own_scalars, in_iteration(starts, repetition.starts, iteration))
            first = segment.base + iteration * repetition.handle_stride
            for index, last in zip(program.live, kept, strict=True):
                if iteration >= repetition.iterations - last:
                    self.values[first + index] = results[index]
            operands = [*inputs, *own_scalars, *results]
            for number, source in program.carried:
                inputs[number] = operands[source]

    def _note_run(self, segment: frames.Segment, began_ns: int) -> None:
        now_ns, live_bytes = time.monotonic_ns(), sum(each.nbytes for each in self.values.values())
        times = began_ns, began_ns, now_ns, now_ns - began_ns
        number = segment.base  # as each segment runs alone
        self._runs.append(Run(number, *times, live_bytes, number, 0, segment.repetition.iterations, 1, 0, 0))

    def _described(self, entry: frames.Explain | frames.Profile) -> bytes:
        """Returns how a program runs, or how segments ran since the last time."""
        if isinstance(entry, frames.Explain):
            return _explained(self.programs[entry.program])
        runs = [encode_run(each) for each in self._runs]
        self._runs.clear()
        return encode_profiled(time.monotonic_ns(), 0, runs)

    def _free(self, handles: Iterable[int]) -> None:
        """Drops values. Only results of a failed segment may be missing."""
        for handle in handles:
            assert handle in self.values or self.failing, f"handle {handle} names nothing"
            self.values.pop(handle, None)

    def _answer(self, fetch: frames.Fetch) -> wire.Result:
        value = self.values.get(fetch.handle)
        if value is None:
            return wire.Result(fetch=fetch.fetch, failure=self._failure(fetch.handle))
        raw = np.ascontiguousarray(value).tobytes()
        if len(raw) <= INLINE_BYTES:
            return wire.Result(fetch=fetch.fetch, inline=raw)
        self.beside[fetch.fetch] = raw
        return wire.Result(fetch=fetch.fetch, beside_bytes=len(raw))

    def _failure(self, handle: int) -> wire.Failure:
        for segment in self.segments:
            if segment.base not in self.failing:
                continue
            op_count, (iterations, handle_stride, *_) = self.programs[segment.program].op_count, segment.repetition
            offset = handle - segment.base
            if 0 <= offset < op_count + (iterations - 1) * handle_stride:
                code = BY_NAME[self.failing[segment.base]].code
                return wire.Failure(code=code, text="it failed", base=segment.base, op_index=offset % op_count)
        return wire.Failure(code=BY_NAME["unknown_handle"].code, text=f"handle {handle} names nothing")

    def _frame(self, results: list[wire.Result]) -> wire.ServerFrame:
        if results:
            self._sent += 1
            self._unacknowledged.append((self._sent, results))
        return self._with(self._sent if results else 0, results)

    def _with(self, number: int, results: list[wire.Result]) -> wire.ServerFrame:
        return wire.ServerFrame(
            number=number,
            acknowledged=self._applied,
            completed=wire.Completed(**self._completed._asdict()),
            results=results,
        )

    def _program_limits(self) -> ProgramLimits:
        limits = self._limits
        return ProgramLimits(limits.program_ops, limits.program_operands, limits.program_bytes, limits.array_bytes)

    def _greeting(self) -> list[wire.ServerFrame]:
        """Returns the welcome to a connection, and if it resumes the session all that the last one may have lost."""
        self._epoch += 1
        if self._epoch == 1:
            return [self._welcome()]
        return [self._welcome(), *[self._with(*each) for each in self._unacknowledged], self._frame([])]

    def _welcome(self) -> wire.ServerFrame:
        return wire.ServerFrame(
            acknowledged=self._applied,
            welcome=wire.Welcome(
                version=frames.PROTOCOL_VERSION,
                server_instance=b"i" * 16,
                session_id=b"s" * 16,
                epoch=self._epoch,
                credit=wire.Credit(**self._credit._asdict()),
                limits=self._limits,
                backend="memory",
            ),
        )


def _explained(program: Program) -> bytes:
    """Returns how a program runs here: op by op."""
    records = NO_RECORDS._replace(ops=(OpRecord(OpForm.OP_BY_OP),) * program.op_count)
    name = programs.digest(programs.encode(program)).hex()
    explained = ExplainedProgram(
        name, False, program.op_count, tuple(program.op_names), "unplanned", "ops", records=records
    )
    return encode_explained(explained)


def _host(raw: bytes, spec: Spec) -> Host:
    return np.frombuffer(raw, dtypes.to_numpy(spec.dtype)).reshape(spec.shape)
