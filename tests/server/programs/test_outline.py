"""What failures keep of a program: the positions of live results and the names of ops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.programs.outline import Outline, bits_of
from tests.server.parts import pair


@given(st.sets(st.integers(0, 300)))
def test_the_position_of_a_result_is_that_among_the_live_results(live: set[int]) -> None:
    outline, ascending = Outline(bits_of([*live])), sorted(live)
    assert outline.width == (ascending[-1] + 1 if live else 0)
    assert [outline.position_of(index) for index in ascending] == [*range(len(live))]
    assert {outline.position_of(index) for index in (-1, *({*range(302)} - live), 2**40)} == {None}


def test_ops_have_names_if_the_program_is_known() -> None:
    assert [Outline.of(pair()).op_name(index) for index in range(3)] == ["negative", "negative", "add"]
    assert Outline(1).op_name(0) == ""
