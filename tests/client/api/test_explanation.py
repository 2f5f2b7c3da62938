"""An explanation as text for people."""

from __future__ import annotations

import fusewire as fw
from fusewire._api.explanation import program_explanation
from fusewire_protos.programs.explained import MOST_EXPLAINED, ExplainedProgram, Launched
from fusewire_protos.programs.records import OpForm, OpRecord, Records
from fusewire_protos.programs.records import Unfused as Pair

_ANSWER = ExplainedProgram(
    digest="6f1ed002ab5595859014ebf0951522d9",
    is_fragment=False,
    op_count=4,
    names=("matmul", "negative", "transpose", "sum"),
    state="loaded",
    form="launches",
    row_ns=2500,
    launches=(Launched("k", 1), Launched("l", 1)),
    records=Records(
        (
            OpRecord(OpForm.KERNELS, (0,)),
            OpRecord(OpForm.KERNELS, (0,)),
            OpRecord(OpForm.VIEW),
            OpRecord(OpForm.KERNELS, (1,)),
        ),
        (Pair(3, 1, "apart"),),
    ),
    reasons=(("apart", "they are apart"),),
)
_LINES = [f"loop.py:{index}" for index in range(4)]


def test_ops_stand_beside_their_launches_and_lines() -> None:
    lines = str(program_explanation(_ANSWER, _LINES, 3)).splitlines()
    assert lines[:2] == ["program 6f1ed002ab55: 4 ops, runs by launches, about 2.5 µs a row", "  op #3 made the array"]
    assert [line.split() for line in lines[2:6]] == [
        ["#0", "matmul", "launch", "0", "loop.py:0"],
        ["#1", "negative", "launch", "0", "loop.py:1"],
        ["#2", "transpose", "view", "loop.py:2"],
        ["#3", "sum", "launch", "1", "loop.py:3"],
    ]
    assert lines[6] == "  launch 0: matmul #0 + negative #1"
    assert lines[-1] == "  sum #3 not fused with negative #1: they are apart"


def test_launches_groups_and_reasons_are_data_too() -> None:
    program = program_explanation(_ANSWER, _LINES, None)
    assert program.groups == ((0, 1), (3,))
    assert program.launches == ((0,), (1,))
    assert program.kernels == ("k", "l")
    assert program.unfused == (fw.Unfused(3, 1, "they are apart"),)
    assert (program.digest, program.op_count, program.state, program.form) == (_ANSWER.digest, 4, "loaded", "launches")
    assert program.row_s == 2.5e-6


def test_a_program_without_a_plan_says_why() -> None:
    records = Records((OpRecord(OpForm.OP_BY_OP),) * 4)
    answer = _ANSWER._replace(
        form="ops", state="refused", refusal="a library op", launches=(), records=records, row_ns=0
    )
    program = program_explanation(answer, _LINES, None)
    lines = str(program).splitlines()
    assert lines[0].endswith("4 ops, plan refused, runs op by op")
    assert lines[1] == "  no plan: a library op"
    assert lines[2].split() == ["#0", "matmul", "op", "by", "op", "loop.py:0"]
    assert len(lines) == 6
    assert program.refusal == "a library op"
    assert program.row_s is None


def test_why_a_loop_has_no_better_form_is_told() -> None:
    answer = _ANSWER._replace(why_no_graph="too few launches", why_not_persistent="2 iterations")
    text = str(program_explanation(answer, _LINES, None))
    assert "\n  no captured graph: too few launches\n" in text
    assert "\n  not by the persistent kernel: 2 iterations\n" in text


def test_a_long_program_is_cut_in_text() -> None:
    answer = _ANSWER._replace(op_count=3000, names=("exp",) * MOST_EXPLAINED, launches=(), reasons=())
    answer = answer._replace(records=Records((OpRecord(OpForm.OP_BY_OP),) * MOST_EXPLAINED))
    lines = str(program_explanation(answer, [""] * MOST_EXPLAINED, None)).splitlines()
    assert len(lines) == 102
    assert lines[-1] == "  … and 2900 ops more"


def test_hints_notes_and_unsent_ops_stand_last() -> None:
    unsent = (fw.ExplainedOp("tanh", "unsent", line="loop.py:7"),)
    explanation = fw.Explanation((), 3, unsent, ("a note",), ("a hint",))
    assert repr(explanation).splitlines() == [
        "unsent: 3 ops, which the server does not know yet",
        "  … 2 ops",
        "  tanh                 loop.py:7",
        "a note",
        "hint: a hint",
    ]
