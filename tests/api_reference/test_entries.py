"""The text of an entry."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import pytest

import fusewire as fw
from tests.api_reference.contents import Entry
from tests.api_reference.entries import signature_of, text_of

_Mode = Literal["same", "full"]


def _spread(x: Any, /, mode: _Mode = "same", *, by: Any = print) -> fw.Array:
    """Spreads `x`.

        _spread(x)

    Twice.
    """
    raise NotImplementedError


class _Fault(fw.ShapeError):
    """It does not fit."""


class _Reason(Enum):
    """Why."""

    AGE = "age"


def test_a_signature_resolves_private_names_and_hides_long_defaults() -> None:
    assert signature_of(_spread) == "(x: Any, /, mode: Literal['same', 'full'] = 'same', *, by: Any = ...) -> fw.Array"


def test_an_entry_has_its_signature_docstring_and_example() -> None:
    text = text_of(Entry("spread", _spread, "random.spread"), {}, "spread(1)  # → 2")
    head, _, rest = text.partition("\n\nSpreads `x`.\n\n")
    assert head == f"## `spread`\n\n```python\nspread{signature_of(_spread)}\n```"
    assert rest == "```python\n_spread(x)\n```\n\nTwice.\n\n```python\nspread(1)  # → 2\n```"


def test_a_second_name_leads_to_the_functions_own() -> None:
    text = text_of(Entry("smear", _spread, "smear"), {id(_spread): ("spread", "shapes.md#spread")}, None)
    assert text.endswith("The same as [`spread`](shapes.md#spread).")


def test_a_method_with_its_functions_docstring_leads_to_the_function() -> None:
    text = text_of(Entry("sum", fw.Array.sum, "Array.sum"), {id(fw.sum): ("sum", "reductions.md#sum")}, None)
    assert text.startswith("## `Array.sum`\n")
    assert text.endswith("As [`fusewire.sum`](reductions.md#sum) of the array.")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (_Fault, "It does not fit.\n\nDerives from `ShapeError`."),
        (fw.AxisError, "Derives from `ShapeError`, `numpy.exceptions.AxisError`."),
        (_Reason, "Why.\n\n- `AGE` (`'age'`)"),
        (fw.float32, "`fusewire.float32`"),
        (None, "`None`"),
    ],
)
def test_what_is_no_function_says_what_it_is(value: object, text: str) -> None:
    assert text_of(Entry("name", value, "name"), {}, None).endswith(text)


def test_a_name_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="zzz has no docstring"):
        text_of(Entry("zzz", lambda: None, "zzz"), {}, None)
