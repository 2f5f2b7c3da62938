"""ARCHITECTURE.md says a line of every module, in the order of the folders."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_FOLDERS = ("protos", "kernels", "server", "client", "loadtests")
_HEADING = re.compile(r"\*\*`(?P<folder>[\w/]+)/`\*\* .")
_LINE = re.compile(r"- `(?P<module>\w+)` .")


def _named() -> list[str]:
    """The modules that are named, in order; a package is the heading of its folder."""
    text = (_ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## One line a file")[2].partition("\n## ")[0]
    named, folder = [], ""
    for line in section.splitlines()[1:]:
        if heading := _HEADING.match(line):
            folder = heading["folder"]
            named.append(f"{folder}/__init__.py")
        elif module := _LINE.match(line):
            named.append(f"{folder}/{module['module']}.py")
    return named


def _tracked() -> list[str]:
    git = shutil.which("git")
    if git is None or not (_ROOT / ".git").exists():
        pytest.skip("needs a checkout")
    command = [git, "ls-files", *(f"{folder}/*.py" for folder in _FOLDERS)]
    listed = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=30, check=True)
    return [path for path in listed.stdout.splitlines() if (_ROOT / path).exists()]


def test_every_module_has_its_line() -> None:
    assert sorted(set(_tracked()) - set(_named())) == []


def test_every_line_is_of_a_module_that_there_is() -> None:
    assert [path for path in _named() if not (_ROOT / path).exists()] == []


def test_no_module_has_two_lines() -> None:
    named = _named()
    assert len(set(named)) == len(named)


def test_folders_come_in_the_order_of_the_floors() -> None:
    floors = [path.partition("/")[0] for path in _named()]
    assert floors == sorted(floors, key=_FOLDERS.index)
