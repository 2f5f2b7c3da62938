"""What a collector makes of names that another library gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fusewire._profile.collector import named_otherwise


def test_a_name_stands_at_the_first_op_of_a_call() -> None:
    named = [(2, 5, "linear"), (5, 6, "tanh")]
    names = named_otherwise(["cast", "matmul", "add", "tanh", "exp"], 1, named)
    assert names == ("cast", "linear", "", "", "tanh")


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))), st.integers(0, 20), st.integers(0, 8))
def test_only_ops_within_a_call_are_named_anew(calls: list[tuple[int, int]], first: int, count: int) -> None:
    named = [(begin, begin + length, "f") for begin, length in calls]
    names = named_otherwise(["op"] * count, first, named)
    inside = [any(begin <= first + index < end for begin, end, _ in named) for index in range(count)]
    assert [name != "op" for name in names] == inside
