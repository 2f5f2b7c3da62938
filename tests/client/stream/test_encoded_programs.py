"""From structures to the bytes of programs, and from values to bindings."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording.cutting.segments import structure_of
from fusewire._recording.integer_scans import INSIDE
from fusewire._recording.signature import (
    ArraySpec,
    OperandSpec,
    Signature,
    intern_creation,
    intern_signature,
    intern_spec,
)
from fusewire._recording.tape import FIRST_HANDLE
from fusewire._stream.encoded_programs import EncodedProgram, bind, encode_program
from fusewire_protos.frames import FIRST_UPLOAD
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Attributes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import decode, encode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.programs.program import Program, ProgramOp, build
from tests.client.recording.records import Record, flatten

FIRST = FIRST_HANDLE + 1
UPLOAD = FIRST_HANDLE + FIRST_UPLOAD
F32 = dtypes.float32
LIMIT_BYTES = 1 << 30
VECTOR, MATRIX, POINT = (intern_spec(Spec(F32, shape), LIMIT_BYTES) for shape in ((4,), (8, 4), ()))


def _signature(name: str, *operands: OperandSpec, attributes: Attributes = ()) -> Signature:
    return intern_signature(BY_NAME[name], operands, attributes)


ADD = _signature("add", VECTOR, VECTOR)
SCALE = _signature("multiply", VECTOR, F32)
SCALE_BY_ARRAY = _signature("multiply", VECTOR, POINT)
FROM_SCALAR = _signature("subtract", F32, VECTOR)
WITHIN = _signature("clip", VECTOR, F32, VECTOR)
TOTAL = _signature("sum", VECTOR, attributes=((0,), False))
FILL = _signature("assign_slice", MATRIX, F32, attributes=((0,), (1,), (1,), (0,)))
WINDOW = _signature("slice", MATRIX, attributes=((0,), (1,), (1,), (0,)))
ZEROS = intern_creation(BY_NAME["full"], (F32,), ((4,), F32.code), LIMIT_BYTES)
ALL = (ADD, SCALE, SCALE_BY_ARRAY, FROM_SCALAR, WITHIN, TOTAL, FILL, WINDOW, ZEROS)


def _template(records: list[Record], live: tuple[int, ...]) -> EncodedProgram:
    return encode_program(structure_of(flatten(records), FIRST, len(records)), live)


class Recorded(NamedTuple):
    """Ops as a tape has them, and as a program has."""

    records: list[Record]
    program: Program
    scalars: list[float]
    starts: list[float]


class _Tape:
    """Records ops on uploads and on one another's results; a value is known by its handle."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.ops: list[tuple[Signature, list[int]]] = []  # operands in the order of the op; scalars by their index
        self.handles = {VECTOR: [UPLOAD, UPLOAD + 1], MATRIX: [UPLOAD + 2], POINT: [UPLOAD + 3, UPLOAD + 4]}
        self.spec_of = {handle: spec.spec for spec, handles in self.handles.items() for handle in handles}
        self.is_start: list[bool] = []

    def record(self, signature: Signature, arrays: list[int]) -> None:
        first_value = len(self.is_start)
        self.is_start += [False] * len(signature.scalars) + [True] * signature.starts
        values = [-1 - index for index in range(first_value, len(self.is_start))]
        given_arrays, given_values = iter(arrays), iter(values)
        operands = [next(given_values if operand is F32 else given_arrays) for operand in signature.operands]
        self.ops.append((signature, operands))
        self.records.append((signature.number, *arrays, *values))
        self.handles[signature.result].append(FIRST + len(self.records) - 1)

    def recorded(self, live: list[int]) -> Recorded:
        handles = [handle for _, *operands in self.records for handle in operands if handle >= UPLOAD]
        inputs = list(dict.fromkeys(handles))
        scalars = [-1 - index for index, is_start in enumerate(self.is_start) if not is_start]
        results = range(FIRST, FIRST + len(self.records))
        number_of = {value: number for number, value in enumerate([*inputs, *scalars, *results])}
        ops = [
            ProgramOp(signature.op, tuple([number_of[operand] for operand in operands]), signature.attributes)
            for signature, operands in self.ops
        ]
        program = build([self.spec_of[handle] for handle in inputs], [F32] * len(scalars), ops, live)
        starts = [float(index) for index, is_start in enumerate(self.is_start) if is_start]
        return Recorded(self.records, program, [-1.0 - value for value in scalars], starts)


@st.composite
def recorded_ops(draw: st.DrawFn) -> Recorded:
    tape = _Tape()
    for signature in draw(st.lists(st.sampled_from(ALL), min_size=1, max_size=30)):
        arrays = [operand for operand in signature.operands if isinstance(operand, ArraySpec)]
        tape.record(signature, [draw(st.sampled_from(tape.handles[spec])) for spec in arrays])
    indices = st.integers(0, len(tape.records) - 1)
    return tape.recorded(sorted(draw(st.sets(indices))))


@given(recorded_ops())
def test_the_bytes_are_those_of_the_same_program_built_op_by_op(recorded: Recorded) -> None:
    program = recorded.program
    encoded = _template(recorded.records, program.live)
    assert encoded.raw == encode(program)
    assert encode(decode(encoded.raw, ProgramLimits())) == encoded.raw
    assert sum(encoded.live_sizes) == program.live_bytes


@given(recorded_ops())
def test_values_are_bound_as_scalars_in_the_order_of_the_program_and_as_starts(recorded: Recorded) -> None:
    encoded = _template(recorded.records, ())
    values = [float(index) for index in range(len(recorded.scalars) + len(recorded.starts))]
    assert bind(encoded, values) == (tuple(recorded.scalars), tuple(recorded.starts))


def test_a_scalar_and_an_array_without_dims_are_one_signature_to_a_program() -> None:
    encoded = _template([(SCALE.number, UPLOAD, -1), (SCALE_BY_ARRAY.number, FIRST, UPLOAD + 3)], (1,))
    program = decode(encoded.raw, ProgramLimits())
    assert len(program.distinct) == 1
    assert program.operands == ((0, 2), (3, 1))


def test_the_program_says_what_the_records_say() -> None:
    records: list[Record] = [(ADD.number, UPLOAD, UPLOAD), (SCALE.number, FIRST, -1), (ADD.number, FIRST, FIRST + 1)]
    encoded = _template(records, (2,))
    program = decode(encoded.raw, ProgramLimits())
    assert program.inputs == (VECTOR.spec,)
    assert program.scalars == (dtypes.float32,)
    assert [(op.op.name, op.operands) for op in program.ops] == [("add", (0, 0)), ("multiply", (2, 1)), ("add", (2, 3))]
    assert sum(encoded.live_sizes) == 16


def test_starts_and_scalars_are_bound_apart() -> None:
    records: list[Record] = [(WINDOW.number, UPLOAD, -1), (SCALE.number, FIRST, -2), (WINDOW.number, UPLOAD, -3)]
    encoded = _template(records, (2,))
    bindings = bind(encoded, [5, 0.5, 6])
    assert bindings.scalars == (0.5,)
    assert bindings.starts == (5, 6)


def test_operands_are_in_the_order_of_the_op_whichever_the_record_has() -> None:
    """Records have arrays first, then scalars, then starts."""
    records: list[Record] = [
        (FROM_SCALAR.number, UPLOAD, -1),
        (FILL.number, UPLOAD + 1, -2, -3),
        (WITHIN.number, FIRST, UPLOAD + 2, -4),
        (SCALE.number, FIRST + 2, -5),
    ]
    encoded = _template(records, (1, 3))
    program = decode(encoded.raw, ProgramLimits())
    assert program.inputs == (VECTOR.spec, MATRIX.spec, VECTOR.spec)
    assert program.operands == ((3, 0), (1, 4), (7, 5, 2), (9, 6))
    assert bind(encoded, [0.5, 1.5, 6, 2.5, 3.5]).starts == (6,)


def test_what_an_input_cannot_take_is_not_carried_to_it() -> None:
    """As in a body that has run once, behind other ops: its input came from as far back as in a loop."""
    records = [(TOTAL.number, UPLOAD), (SCALE.number, UPLOAD, -1)]
    structure = structure_of(flatten(records), FIRST, len(records))
    total, scaled = INSIDE, INSIDE + 1
    carried = [
        [*decode(encode_program(structure, (0, 1), ((0, cell),)).raw, ProgramLimits()).carried]
        for cell in (total, scaled)
    ]
    assert carried == [[], [(0, 3)]]
