"""What a collector makes of names that another library gives, and of stacks."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from fusewire._profile.collector import NamedOps, named_otherwise, users_line
from fusewire._profile.events import NO_LINE, Line

_HERE = Line("a.py", 1)


def test_a_name_stands_at_the_first_op_of_a_call() -> None:
    named = [NamedOps(2, 5, "linear", _HERE), NamedOps(5, 6, "tanh", NO_LINE)]
    names, lines = named_otherwise(["cast", "matmul", "add", "tanh", "exp"], [NO_LINE] * 5, 1, named)
    assert names == ("cast", "linear", "", "", "tanh")
    assert lines == (NO_LINE, _HERE, _HERE, _HERE, NO_LINE)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))), st.integers(0, 20), st.integers(0, 8))
def test_only_ops_within_a_call_are_named_anew(calls: list[tuple[int, int]], first: int, count: int) -> None:
    named = [NamedOps(begin, begin + length, "f", _HERE) for begin, length in calls]
    names, lines = named_otherwise(["op"] * count, [NO_LINE] * count, first, named)
    inside = [any(each.first <= first + index < each.end for each in named) for index in range(count)]
    assert [name != "op" for name in names] == [line == _HERE for line in lines] == inside


def test_the_users_line_is_outside_of_the_client_and_of_torch() -> None:
    def call(module: str) -> tuple[Line, int]:
        scope = {"__name__": module, "users_line": users_line}
        exec(compile("def run(): return users_line()", "inner.py", "exec"), scope)  # noqa: S102 - a frame of a module
        return scope["run"](), sys._getframe().f_lineno  # type: ignore[operator]

    for module in ("torch.nn.functional", "fusewire._api.array", "fusewire_torch.storage"):
        line, here = call(module)
        assert line == Line(__file__, here)
    assert call("torchvision.models")[0] == Line("inner.py", 1)
