"""Explains work: asks the server how programs run, and puts the lines of the user's code beside their ops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.explanation import ExplainedOp, Explanation, ProgramExplanation, program_explanation
from fusewire._api.hints import Counted, hints_of
from fusewire._errors import ArgumentError, ProtocolError, RequestError
from fusewire._recording.recorded_ops import Recorded
from fusewire._recording.recorder import Recorder
from fusewire._recording.thread_recorders import ThreadRecorders
from fusewire._stream.fetches import Explained, Fetches
from fusewire._stream.numbered_programs import Programs, Use
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER
from fusewire_protos.programs.explained import ExplainedProgram, decode_explained

MOST_PROGRAMS = 64
MOST_UNSENT = 100

_UPLOADED = "the array was uploaded: no op made it"
_TOO_LONG_AGO = (
    "the program that made the array has been used again since, or was forgotten: explain a newer array, or the session"
)


def explain(array: Any, /, *, timeout: float | None = None) -> Explanation:
    """Explains the work that made an array: ops, the groups and launches that compute them, and the lines beside them.

    Sends no op: what is unsent is said to be unsent. Waits for a round trip. The result has plain data, and prints as
    text for people. `session.explain()` explains all programs that a session has used last.

    Raises ArgumentError for anything but an array, and WaitTimeout after `timeout` seconds.
    """
    if not isinstance(array, Recorded):
        raise ArgumentError(f"explain takes an array on a server, not {type(array).__name__}")
    recorder = array.real_part._recorder if isinstance(array, ComplexArray) else array._recorder
    explanation: Explanation = recorder.owner.explain(array, timeout=timeout)
    return explanation


class Explaining:
    """Explains the work of one session."""

    def __init__(self, fetches: Fetches, recorders: ThreadRecorders) -> None:
        self._fetches = fetches
        self._thread_recorders = recorders

    def explain(self, array: Recorded | None, timeout: float | None, counted: Counted) -> Explanation:
        """Explains the work that made an array; None: all of the session."""
        if array is None:
            unsent = self._unsent(self._thread_recorders.all())  # first, so that nothing is sent and told by neither
            answers = self._fetches.explain(lambda programs: [*islice(programs.last_uses(), MOST_PROGRAMS)], timeout)
            return self._explanation(answers, (), unsent, [], counted)
        parts = (array.real_part, array.imag_part) if isinstance(array, ComplexArray) else (array,)
        computed = [part for part in parts if not _is_upload(part._handle)]
        waiting = [part for part in computed if part._recorder.is_unsent(part._handle)]
        unsent = self._unsent([*dict.fromkeys([part._recorder for part in waiting])])
        made = [part._handle for part in computed if part not in waiting]
        answers = self._fetches.explain(lambda programs: _uses_of(programs, made), timeout)
        notes = [] if computed else [_UPLOADED]
        if not all(any(_is_of(use, handle) for use, _ in answers) for handle in made):
            notes.append(_TOO_LONG_AGO)
        return self._explanation(answers, made, unsent, notes, counted)

    def _explanation(
        self,
        answers: Sequence[Explained],
        handles: Sequence[int],
        unsent: tuple[int, tuple[ExplainedOp, ...]],
        notes: list[str],
        counted: Counted,
    ) -> Explanation:
        programs = []
        for use, answer in answers:
            if isinstance(answer, RequestError):
                notes.append(f"a program was rejected: {answer}")
            else:
                programs.append(self._program(_decoded(answer), use, handles))
        hints = hints_of(counted, [program.explained for program in programs])
        return Explanation(tuple(programs), *unsent, tuple(dict.fromkeys(notes)), tuple(hints))

    def _program(self, explained: ExplainedProgram, use: Use, handles: Sequence[int]) -> ProgramExplanation:
        """Explains a program by the iteration that made one of `handles`, or by the last one."""
        made = next((handle for handle in handles if _is_of(use, handle)), None)
        iteration = (use.ops - 1 if made is None else made - use.first) // explained.op_count
        first = use.first + iteration * explained.op_count
        lines = [self._line(first + index) for index in range(len(explained.names))]
        return program_explanation(explained, lines, None if made is None else made - first)

    def _unsent(self, recorders: Sequence[Recorder]) -> tuple[int, tuple[ExplainedOp, ...]]:
        """Returns how many ops are unsent, and the last of them."""
        count, ops = 0, []
        for recorder in recorders:
            own, last = recorder.unsent_ops(MOST_UNSENT)
            count += own
            ops += [ExplainedOp(name, "unsent", line=self._line(number)) for name, number in last]
        return count, tuple(ops[-MOST_UNSENT:])

    def _line(self, number: int) -> str:
        line = self._thread_recorders.source_line(number)
        return "" if line is None else f"{line.file}:{line.line}"


def _uses_of(programs: Programs, handles: Sequence[int]) -> list[Use]:
    return [use for use in programs.last_uses() if any(_is_of(use, handle) for handle in handles)]


def _is_of(use: Use, handle: int) -> bool:
    return use.first <= handle < use.first + use.ops


def _is_upload(handle: int) -> bool:
    return handle % HANDLES_PER_RECORDER >= FIRST_UPLOAD


def _decoded(raw: bytes) -> ExplainedProgram:
    try:
        return decode_explained(raw)
    except (TypeError, ValueError) as reason:
        raise ProtocolError(f"the server sent an explanation that is none: {reason}") from None
