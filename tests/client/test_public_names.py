"""The one public door."""

from __future__ import annotations

import re
import subprocess
import sys
from types import ModuleType

import fusewire as fw
from fusewire import _functions
from fusewire_protos.catalogue import OPS, Category


def test_the_names_are_sorted_and_there() -> None:
    assert fw.__all__ == sorted(fw.__all__, key=_with_numbers_as_such)
    assert [name for name in fw.__all__ if not hasattr(fw, name)] == []


def _with_numbers_as_such(name: str) -> list[tuple[bool, int, str]]:
    """log2 before log10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def test_every_public_function_goes_through_the_door() -> None:
    public = {
        name
        for name, value in vars(_functions).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == _functions.__name__
    }
    assert public - set(fw.__all__) == set()


def test_nothing_else_is_visible_but_modules() -> None:
    visible = {
        name for name, value in vars(fw).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert visible == {name for name in fw.__all__ if not name.startswith("_")}


def test_every_op_that_users_call_by_name_is_a_function() -> None:
    under_other_names = {"assign_slice", "slice"}  # they are what brackets mean
    missing = {op.name for op in OPS if not hasattr(fw, op.name)} - under_other_names
    assert missing == set()
    assert Category.POINTWISE in {op.category for op in OPS}


def test_the_sdk_needs_neither_server_nor_compiler() -> None:
    program = (
        "import sys, fusewire\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('fusewire_server', 'fusewire_kernels')))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "[]\n"
