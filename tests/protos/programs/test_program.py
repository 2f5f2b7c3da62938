"""Programs hold each signature once, and work out the rest when it is asked for."""

from __future__ import annotations

import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.ops import catalogue, dtypes, signatures
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import MOST_OPERANDS
from fusewire_protos.programs.program import ProgramOp, build

VECTOR, MATRIX = Spec(dtypes.float32, (8,)), Spec(dtypes.float32, (4, 8))


def _op(name: str, *operands: int) -> ProgramOp:
    attributes = {"concat": (0,), "slice": ((0,), (1,), (1,), (0,))}.get(name, ())
    return ProgramOp(catalogue.BY_NAME[name], operands, attributes)


def test_signatures_are_held_once_in_order_of_first_use() -> None:
    program = build([VECTOR], [], [_op("add", 0, 0), _op("negative", 1), _op("add", 2, 1)], [2])
    assert [signature.op.name for signature in program.distinct] == ["add", "negative"]
    assert program.signature_numbers.tolist() == [0, 1, 0]
    assert program.signatures == (program.distinct[0], program.distinct[1], program.distinct[0])


def test_operands_are_held_behind_one_another() -> None:
    eye = ProgramOp(catalogue.BY_NAME["eye"], (), (3, 4, 0, dtypes.float32.code))
    program = build([VECTOR], [dtypes.float32], [_op("clip", 0, 1, 0), eye, _op("negative", 2)], [])
    assert program.operand_numbers.tolist() == [0, 1, 0, 2]
    assert program.operand_ends.tolist() == [3, 3, 4]
    assert program.operands == ((0, 1, 0), (), (2,))


def test_equal_signatures_are_one_though_they_are_two_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    many = (0,) * (MOST_OPERANDS + 1)
    assert len(build([VECTOR], [], [_op("concat", *many), _op("concat", *many)], [1]).distinct) == 1
    monkeypatch.setattr(signatures, "known", lambda key: None)
    monkeypatch.setattr(signatures, "_signatures", {})
    monkeypatch.setattr(signatures, "MOST_REMEMBERED", 0)
    assert len(build([VECTOR], [], [_op("negative", 0), _op("negative", 0)], [1]).distinct) == 1


def test_figures_are_sums_over_all_ops() -> None:
    ops = [_op("slice", 0), _op("negative", 2), _op("slice", 0), _op("add", 3, 1)]
    program = build([MATRIX], [dtypes.float64], ops, [1, 2])
    assert program.op_count == 4
    assert program.starts == 2
    assert program.live_bytes == 2 * 32
    assert program.all_bytes == 4 * 32 + 8 + 3 * 32 + 64


def test_the_ops_that_take_starts_are_known_by_index() -> None:
    program = build([MATRIX], [], [_op("negative", 0), _op("slice", 0), _op("negative", 0), _op("slice", 1)], [1, 3])
    assert [(index, signature.op.name) for index, signature in program.sliced] == [(1, "slice"), (3, "slice")]
    assert build([MATRIX], [], [_op("negative", 0)], [0]).sliced == ()


@pytest.mark.parametrize(
    ("ops", "live", "case"),
    [
        ([_op("add", 0, 1)], [0], "bad_operand"),
        ([_op("add", 0, -1)], [0], "bad_operand"),
        ([_op("negative", 0)], [1], "bad_operand"),
        ([_op("negative", 0)], [-1], "bad_operand"),
        ([_op("add", 0)], [0], "bad_arity"),
        ([_op("bitwise_invert", 0)], [0], "bad_dtype"),
    ],
)
def test_parts_that_do_not_fit_are_refused(ops: list[ProgramOp], live: list[int], case: str) -> None:
    with pytest.raises(CaseError) as refused:
        build([VECTOR], [], ops, live)
    assert refused.value.case.name == case
