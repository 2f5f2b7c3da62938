"""`fusewire demo --torch` where PyTorch is not installed. `tests/torch/test_demo.py` has what it does otherwise."""

import sys

import pytest

from fusewire_cli.main import main


def test_without_pytorch_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["demo", "--torch"]) == 2
    assert "pip install 'fusewire[torch]'" in capsys.readouterr().err
