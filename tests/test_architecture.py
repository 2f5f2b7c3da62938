"""ARCHITECTURE.md shows every folder of the sources, and the tree keeps the shape that it describes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_SOURCES = (
    "protos/fusewire_protos",
    "kernels/fusewire_kernels",
    "server/fusewire_server",
    "client/fusewire_cli",
    "client/fusewire_torch",
    "client/fusewire",
    "loadtests",
)
_ROW = re.compile(r"^\| (?P<is_package>\*\*)?`(?P<folder>[\w/]+)/`(?:\*\*)? \| (?P<idea>.+?) \|", re.MULTILINE)


def _folders() -> dict[str, Path]:
    packages = [init.parent for source in _SOURCES for init in sorted((_ROOT / source).rglob("__init__.py"))]
    return {str(folder.relative_to(_ROOT)): folder for folder in packages}


def _shown() -> dict[str, str]:
    """The idea of each folder; rows of folders stand behind that of their package."""
    text = (_ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("\n## Folders\n")[2]
    shown, package = {}, ""
    for row in _ROW.finditer(text):
        package = row["folder"] if row["is_package"] else package
        shown[row["folder"] if row["is_package"] else f"{package}/{row['folder']}"] = row["idea"]
    return shown


def _idea(folder: Path) -> str:
    """The first line of the folder's docstring."""
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def test_every_folder_has_its_row_and_every_row_its_folder() -> None:
    assert sorted(_shown()) == sorted(_folders())


@pytest.mark.parametrize("name", sorted(_folders()))
def test_a_folder_says_its_idea_in_one_line_as_its_row_does(name: str) -> None:
    assert _shown().get(name) == _idea(_folders()[name])


@pytest.mark.parametrize("name", sorted(_folders()))
def test_no_folder_is_for_a_single_file(name: str) -> None:
    inside = [
        path for path in _folders()[name].iterdir() if path.name not in ("__init__.py", "__pycache__", "py.typed")
    ]
    assert len(inside) > 1
