"""Applies an entry that asks how a program of the session runs: answers it at once, within a bound. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire_kernels.fusion.reasons import sentences_of
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import Explain
from fusewire_protos.programs.explained import (
    MOST_EXPLAINED,
    ExplainedProgram,
    Launched,
    cut_to_limits,
    encode_explained,
)
from fusewire_protos.programs.records import NO_RECORDS, OpForm, OpRecord
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.entries.fetch import check_takeable
from fusewire_server.sessions.entries.frame import Frame

if TYPE_CHECKING:
    from fusewire_kernels.devices.base import LoadedPlan

MOST_UNTAKEN = 128  # answers of a session that an explanation may join, because a short question has a long answer
_ANSWER_BYTES = 64  # about so many of an answer for each op, by which it is refused before it is made
_OP_BY_OP = OpRecord(OpForm.OP_BY_OP)


def take_explain(frame: Frame, explain: Explain) -> None:
    """Answers with the program's records, or with the reason why it was rejected.

    Raises CaseError if the session has no program of this number, or if it has too many answers to take.
    """
    session, number = frame.session, explain.program
    if explain.fetch in session.answers.untaken:
        return
    check_takeable(frame)
    entry, rejected = session.programs.get(number), session.rejected_programs.get(number)
    if rejected is not None:
        session.answer_failure(explain.fetch, rejected[0])
        return
    if entry is None:
        raise CaseError("unknown_program", f"program {number} was never sent")
    if has_room_to_tell(frame, explain.fetch, _ANSWER_BYTES * min(entry.program.op_count, MOST_EXPLAINED)):
        tell(frame, explain.fetch, encode_explained(explained(entry)))


def has_room_to_tell(frame: Frame, fetch: int, size_bytes: int) -> bool:
    """Returns whether an answer of this size may join those that wait to be taken. If not, answers with that."""
    session, untaken = frame.session, len(frame.session.answers.untaken)
    has_room = session.answers.may_read(size_bytes) and session.tenant_bytes.has_room(session, size_bytes)
    if has_room and untaken < MOST_UNTAKEN:
        return True
    text = f"{untaken} answers wait to be taken; no answer of {size_bytes} bytes may join them"
    session.answer_failure(fetch, Failure(BY_NAME["quota_host_bytes"], text, 0, 0))
    return False


def tell(frame: Frame, fetch: int, raw: bytes) -> None:
    """Answers with bytes that are no value."""
    frame.session.answers.begin_read(fetch, len(raw))
    frame.session.answer(fetch, memoryview(raw))


def explained(entry: ProgramEntry) -> ExplainedProgram:
    """Returns how a program runs now."""
    loaded = entry.loaded
    unplanned = ExplainedProgram(
        digest=entry.digest.hex(),
        is_fragment=entry.is_fragment,
        op_count=entry.program.op_count,
        names=tuple(entry.program.op_names[:MOST_EXPLAINED]),
        state=entry.state.value,
        form="ops",
        refusal=entry.refusal,
        row_ns=entry.row_ns,
        planning_ns=entry.planning_ns,
        compiling_ns=entry.compiling_ns,
        records=NO_RECORDS._replace(ops=(_OP_BY_OP,) * min(entry.program.op_count, MOST_EXPLAINED)),
    )
    return unplanned if loaded is None else _with_plan(unplanned, loaded)


def _with_plan(unplanned: ExplainedProgram, loaded: LoadedPlan) -> ExplainedProgram:
    plan, records = loaded.plan, cut_to_limits(loaded.plan.records)
    return unplanned._replace(
        form=loaded.launch_counts.form,
        why_no_graph=loaded.why_no_graph,
        why_not_persistent=loaded.why_not_persistent,
        launches=tuple(
            [Launched(plan.kernels[each.kernel].key, len(each.instances)) for each in plan.launches[:MOST_EXPLAINED]]
        ),
        records=records,
        reasons=tuple(sentences_of(records).items()),
    )
