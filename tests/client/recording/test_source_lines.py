"""Lines of the user's code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fusewire._recording.source_lines import SourceLine, is_internal, user_source_line


def test_a_line_is_told_with_its_file() -> None:
    assert str(SourceLine("a.py", 2)) == "recorded at a.py:2"


def test_the_line_is_outside_the_package() -> None:
    source_line = user_source_line()
    assert source_line.file == __file__


@pytest.mark.parametrize(
    ("module", "internal"),
    [
        ("fusewire", True),
        ("fusewire._api.array", True),
        ("fusewire_torch.kernels.elementwise.pointwise", True),
        ("torch.nn.functional", True),
        ("fusewire.examples.demo", False),
        ("fusewire_torches", False),
        ("torchvision.models", False),
        ("__main__", False),
    ],
)
def test_the_client_its_device_and_pytorch_are_internal(module: str, internal: bool) -> None:
    frame = SimpleNamespace(f_globals={"__name__": module})
    assert is_internal(cast(Any, frame)) is internal
