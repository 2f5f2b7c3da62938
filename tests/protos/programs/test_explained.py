"""What a server tells of a program comes back as it was, and is bounded."""

from __future__ import annotations

import pytest

from fusewire_protos.programs.explained import (
    MOST_EXPLAINED,
    ExplainedProgram,
    Launched,
    cut_to_limits,
    decode_explained,
    encode_explained,
)
from fusewire_protos.programs.records import OpForm, OpRecord, Records, Separate, Unfused

_RECORDS = Records(
    (OpRecord(OpForm.KERNELS, (0, 1)), OpRecord(OpForm.VIEW)),
    (Unfused(0, 0, "apart"),),
    (Separate(1, 0, 2, "sizes"),),
)
_TOLD = ExplainedProgram(
    digest="ab",
    is_fragment=True,
    op_count=2,
    names=("sum", "reshape"),
    state="loaded",
    form="graphs",
    row_ns=5,
    launches=(Launched("k", 1), Launched("l", 1)),
    records=_RECORDS,
    reasons=(("apart", "they are apart"), ("sizes", "their sizes differ")),
)


def test_a_program_comes_back_as_it_was() -> None:
    assert decode_explained(encode_explained(_TOLD)) == _TOLD


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x90", encode_explained(_TOLD)[:-1], b"\x94\x90\x90\x90\x90"])
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises((TypeError, ValueError)):
        decode_explained(raw)


def test_of_a_long_program_the_first_records_are_told() -> None:
    pairs = [Unfused(number, number, "apart") for number in range(MOST_EXPLAINED + 3)]
    cut = cut_to_limits(Records((OpRecord(OpForm.DEAD),) * (MOST_EXPLAINED + 1), (*pairs, *pairs[:5])))
    assert len(cut.ops) == len(cut.unfused) == MOST_EXPLAINED
    assert all(pair.consumer < MOST_EXPLAINED for pair in cut.unfused)
