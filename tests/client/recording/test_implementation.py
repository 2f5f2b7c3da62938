"""Which of the recorders records, and that both offer the same."""

from __future__ import annotations

from importlib import import_module

import pytest

from fusewire._errors import ConfigurationError
from fusewire._recording import implementation, integer_scans, python_recorder
from fusewire._recording.implementation import RECORDER, VARIABLE, chosen

SCANS = {"count_repeats", "inputs_among", "places_of_signatures", "results_among"}
NAMES = set(implementation.__all__) - {"RECORDER"} - SCANS


def test_python_is_chosen_by_its_name() -> None:
    assert chosen("python").recorder is python_recorder


def test_another_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=f"{VARIABLE}=fast: known are compiled and python"):
        chosen("fast")


def test_python_replaces_a_recorder_that_was_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementation, "_compiled", lambda name: import_module(f"fusewire._recording.absent_{name}"))
    assert chosen("").name == "Python"
    with pytest.raises(ConfigurationError, match=f"{VARIABLE}=compiled: this installation has no compiled recorder"):
        chosen("compiled")


def test_the_recorder_in_python_has_every_name() -> None:
    assert all(hasattr(python_recorder, name) for name in NAMES)
    assert all(hasattr(integer_scans, name) for name in SCANS)


@pytest.mark.skipif(RECORDER != "compiled", reason="the compiled recorder is not in use")
def test_the_compiled_recorder_has_every_name() -> None:
    assert all(hasattr(chosen("").recorder, name) for name in NAMES)
    assert all(hasattr(chosen("").scans, name) for name in SCANS)
