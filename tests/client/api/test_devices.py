"""`device=` takes a session, in which functions make arrays."""

from __future__ import annotations

import pytest

import fusewire as fw
from fusewire.testing import session_in_memory


def test_an_array_is_made_in_a_session_that_is_no_default() -> None:
    with session_in_memory() as first, session_in_memory() as last:
        made = [fw.zeros(2, device=first), fw.arange(3, device=first), fw.asarray([1.0], device=first)]
        assert all(each.session is first for each in made)
        assert fw.zeros(2).session is last
        assert fw.zeros_like(made[0], device=first).session is first
        with pytest.raises(fw.ArgumentError, match="another session"):
            fw.zeros_like(made[0], device=last)
