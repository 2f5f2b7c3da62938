"""Records of plans as lines of text."""

from __future__ import annotations

from fusewire_protos.programs.record_text import MOST_LINES, record_lines
from fusewire_protos.programs.records import (
    NO_RECORDS,
    OpForm,
    OpRecord,
    Records,
    Separate,
    Unfused,
    decoded_records,
    encoded_records,
)

_SENTENCES = {"apart": "they are apart", "sizes": "their sizes differ"}
_RECORDS = Records(
    (
        OpRecord(OpForm.KERNELS, (0,)),
        OpRecord(OpForm.VIEW),
        OpRecord(OpForm.KERNELS, (1,)),
        OpRecord(OpForm.KERNELS, (0, 2)),
        OpRecord(OpForm.DEAD),
    ),
    (Unfused(3, 0, "apart"),),
    (Separate(1, 0, 2, "sizes"),),
)
_NAMES = ["add", "reshape", "add", "exp", "tanh"]


def test_launches_name_their_ops_and_reasons_are_sentences() -> None:
    assert [*record_lines(_NAMES, [2, 1], _RECORDS, _SENTENCES)] == [
        "launch 0: 2 × (add #0 + exp #3; add #2)",
        "launch 1: exp #3",
        "no launch (dead): tanh #4",
        "no launch (view): reshape #1",
        "exp #3 not fused with add #0: they are apart",
        "launch 1 separate from launch 0, which reads input 2 too: their sizes differ",
    ]


def test_equal_pairs_are_told_once() -> None:
    records = _RECORDS._replace(unfused=(Unfused(2, 0, "apart"), Unfused(3, 0, "apart"), Unfused(3, 2, "apart")))
    lines = [*record_lines(_NAMES, [2, 1], records, _SENTENCES)]
    assert "add #2 not fused with add #0: they are apart" in lines
    assert "exp #3 not fused with add #0: they are apart (2 times)" in lines


def test_a_loop_says_how_its_iterations_run() -> None:
    looping = _RECORDS._replace(updated=(1,), persistent=_RECORDS.ops)
    assert [*record_lines(_NAMES, [2, 1], looping, _SENTENCES)][-2:] == [
        "iterations change input 1 in place",
        "one launch runs many iterations",
    ]
    launched = _RECORDS._replace(why_launched="no value is carried")
    assert [*record_lines(_NAMES, [2, 1], launched, _SENTENCES)][-1] == (
        "each iteration is launched: no value is carried"
    )


def test_long_lists_are_cut_and_counted() -> None:
    ops = [OpRecord(OpForm.KERNELS, (number,)) for number in range(MOST_LINES + 2)]
    records = NO_RECORDS._replace(ops=(*ops, *[OpRecord(OpForm.VIEW)] * (MOST_LINES + 1)))
    lines = [*record_lines(["exp"] * len(records.ops), [1] * len(ops), records, {})]
    assert lines[MOST_LINES] == "… and 2 launches more"
    assert lines[-1].endswith(" … and 1 more")


def test_records_come_back_as_they_were() -> None:
    records = _RECORDS._replace(persistent=_RECORDS.ops[:1], updated=(1,), why_launched="why", values=((-1, 0), ()))
    assert decoded_records(encoded_records(records)) == records
