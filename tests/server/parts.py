"""Programs, sessions and rows that the server's tests are made of."""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.credit import Amount
from fusewire_protos.frames import NewProgram, Segment, Upload
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import encode
from fusewire_protos.programs.program import Program, ProgramOp, build
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Row, Session, Value, ValueState
from fusewire_server.sessions.tables.answers import Answers

SIZE_BYTES = 16
VECTOR = Spec(dtypes.float32, (SIZE_BYTES // 4,))
VECTOR_BYTES = bytes(SIZE_BYTES)
CREDIT = Amount(ops=1000, bytes=1 << 20, segments=8)
UNREAD_BYTES = 1 << 20


def op(name: str, *operands: int) -> ProgramOp:
    return ProgramOp(catalogue.BY_NAME[name], operands, ())


def call_of(name: str, *operands: Spec) -> OneOpCall:
    return OneOpCall(catalogue.BY_NAME[name], operands, ())


EXP, NEGATIVE = call_of("exp", VECTOR), call_of("negative", VECTOR)


def chain(names: Sequence[str] = ("negative",), live: Sequence[int] | None = None) -> Program:
    """One vector in, one op after another, the last result out unless `live` says otherwise."""
    ops = [op(name, index) for index, name in enumerate(names)]
    return build([VECTOR], [], ops, (len(ops) - 1,) if live is None else live)


def addition() -> Program:
    """Two vectors in, their sum out."""
    return build([VECTOR, VECTOR], [], [op("add", 0, 1)], (0,))


def pair() -> Program:
    """Two vectors in; each negated, and their sum, out."""
    return build([VECTOR, VECTOR], [], [op("negative", 0), op("negative", 1), op("add", 0, 1)], (0, 1, 2))


def scaling() -> Program:
    """A vector and a scalar in, their product out."""
    return build([VECTOR], [dtypes.float32], [op("multiply", 0, 1)], (0,))


def whole(*rows: Row) -> dict[Row, range]:
    """All iterations of rows."""
    return {row: range(row.count) for row in rows}


def new(number: int, program: Program, *, is_fragment: bool = False) -> NewProgram:
    return NewProgram(number, is_fragment, encode(program))


def upload(handle: int, spec: Spec = VECTOR) -> Upload:
    """An upload whose bytes are the frame's first tensor."""
    return Upload(handle, spec, 0)


def upload_beside(handle: int, spec: Spec = VECTOR) -> Upload:
    return Upload(handle, spec, None)


def segment(program: int, base: int, *inputs: int, dying: tuple[int, ...] = ()) -> Segment:
    return Segment(program, base, inputs, (), (), dying)


def session(name: str = "a", *, tenant: str = "lab", credit: Amount = CREDIT) -> Session:
    return Session(name.encode(), tenant, "test", "nowhere", credit, Answers(UNREAD_BYTES))


def entry_of(program: Program) -> ProgramEntry:
    raw = encode(program)
    return ProgramEntry(raw, raw, program, is_fragment=False)


def queued_row(session: Session, entry: ProgramEntry) -> Row:
    """A row at the end of its session's queue."""
    outputs = [Value(1 + index, entry.program.result_spec(index), ValueState.ISSUED) for index in entry.program.live]
    row = Row(session, entry, 1, [], outputs, (), (), 0)
    session.queue.append(row)
    return row
