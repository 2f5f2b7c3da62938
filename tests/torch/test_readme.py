"""The program of PyTorch in README runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import fusewire.torch

_README = Path(__file__).parents[2] / "README.md"


def test_the_second_program_of_the_readme_learns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, program = re.findall(r"```python\n(.*?)```", _README.read_text(encoding="utf-8"), re.DOTALL)
    targets: list[str] = []
    monkeypatch.setattr(fusewire.torch, "connect", targets.append)
    scope: dict[str, Any] = {}
    exec(program, scope)  # noqa: S102 - our own text
    losses = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert targets == ["localhost:7423"]
    assert len(losses) == 4
    assert losses[-1] < losses[0] / 4
