"""Each operator in the table does what its function does."""

from __future__ import annotations

import pytest

import fusewire as fw
from fusewire.testing import session_in_memory
from tests.api_reference.examples import shown
from tests.api_reference.operators import OPERATORS


@pytest.mark.parametrize(("text", "name"), OPERATORS.items())
def test_an_operator_is_its_function(text: str, name: str) -> None:
    with session_in_memory():
        x, y = fw.asarray([1, 7, -5]), fw.asarray([3, 2, 2])
        operands = (x, y) if "y" in text else (x,)
        assert shown(eval(text, {"x": x, "y": y})) == shown(getattr(fw, name)(*operands))  # noqa: S307  # our own text
