"""The compiled modules: what is raised where they were not built, and whether they have what their stubs name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fusewire._errors import ConfigurationError
from fusewire._recording.compiled_modules import MODULES, import_compiled

ABSENT = "fusewire._recording.absent"


def test_a_module_that_was_not_compiled_is_named_with_the_command_that_compiles_it() -> None:
    with pytest.raises(ConfigurationError, match=rf"{ABSENT} was not compiled .* run `make recorder"):
        import_compiled(ABSENT)


def test_a_module_that_lacks_another_is_no_module_that_was_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacks_another.py").write_text("import absent_dependency", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="absent_dependency"):
        import_compiled("lacks_another")


@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_every_name_of_its_stub(name: str) -> None:
    module = import_module(name)
    stub = Path(str(module.__file__)).with_name(f"{name.rpartition('.')[2]}.pyi")
    names = list(names_in(ast.parse(stub.read_text(encoding="utf-8")).body))
    assert names
    assert [each for each in names if not has(module, each)] == []


def names_in(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yields the names that a stub defines, those of members behind that of their class."""
    for each in body:
        if isinstance(each, ast.ClassDef):
            yield prefix + each.name
            yield from names_in(each.body, f"{each.name}.")
        elif isinstance(each, ast.FunctionDef):
            yield prefix + each.name
        elif isinstance(each, ast.AnnAssign):
            yield prefix + ast.unparse(each.target)


def has(owner: Any, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(owner, name):
            return False
        owner = getattr(owner, name)
    return True
