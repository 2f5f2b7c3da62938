"""The recorder of client processes that are started."""

from __future__ import annotations

import os

import pytest

from loadtests.measuring.errors import NotMeasured
from loadtests.system import recorders
from loadtests.system.recorders import COMPILED, PYTHON, recording_by

_VARIABLE = "FUSEWIRE_RECORDER"


@pytest.mark.parametrize("before", [None, COMPILED])
def test_the_recorder_holds_within_the_block(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    if before is None:
        monkeypatch.delenv(_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(_VARIABLE, before)
    with recording_by(PYTHON):
        assert os.environ[_VARIABLE] == PYTHON
    assert os.environ.get(_VARIABLE) == before


def test_a_compiled_recorder_that_was_not_built_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "find_spec", lambda _name: None)
    with pytest.raises(NotMeasured, match="make recorder"), recording_by(COMPILED):
        pass
