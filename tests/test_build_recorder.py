"""Compiling the recorder: what is compiled anew, what is left if that fails, and what is said to be missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import build_recorder

PACKAGES = {"Cython": "cython", "setuptools": "setuptools"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / build_recorder.FOLDERS[0]
    folder.mkdir(parents=True)
    path = folder / "fast.pyx"
    path.touch()
    return path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The sources that were compiled."""
    sources: list[Path] = []

    def compile_one(source: Path, module: Path, name: str) -> None:
        module.touch()
        sources.append(source)

    monkeypatch.setattr(build_recorder, "check_tools", lambda _packages: None)
    monkeypatch.setattr(build_recorder, "_compile", compile_one)
    return sources


def test_a_module_lies_beside_its_source(tmp_path: Path, source: Path, compiled: list[Path]) -> None:
    build_recorder.bring_up_to_date(tmp_path)
    (module,) = build_recorder.modules_of(tmp_path).values()
    assert compiled == [source]
    assert module.exists()
    assert module.parent == source.parent


def test_only_a_changed_source_is_compiled_again(tmp_path: Path, source: Path, compiled: list[Path]) -> None:
    build_recorder.bring_up_to_date(tmp_path)
    build_recorder.bring_up_to_date(tmp_path)
    assert len(compiled) == 1
    (module,) = build_recorder.modules_of(tmp_path).values()
    os.utime(module, ns=(0, 0))
    build_recorder.bring_up_to_date(tmp_path)
    assert len(compiled) == 2


def test_a_changed_part_has_its_module_compiled_again(tmp_path: Path, source: Path, compiled: list[Path]) -> None:
    build_recorder.bring_up_to_date(tmp_path)
    part = source.parent / "compiled" / "part.pxi"
    part.parent.mkdir()
    part.touch()
    (module,) = build_recorder.modules_of(tmp_path).values()
    os.utime(module, ns=(0, 0))
    os.utime(source, ns=(0, 0))
    build_recorder.bring_up_to_date(tmp_path)
    assert len(compiled) == 2


def test_a_failure_leaves_no_old_module(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Path, module: Path, name: str) -> None:
        raise OSError("no compiler")

    (module,) = build_recorder.modules_of(tmp_path).values()
    module.touch()
    os.utime(module, ns=(0, 0))
    monkeypatch.setattr(build_recorder, "check_tools", lambda _packages: None)
    monkeypatch.setattr(build_recorder, "_compile", fail)
    with pytest.raises(OSError, match="no compiler"):
        build_recorder.bring_up_to_date(tmp_path)
    assert not module.exists()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that compiling needs: a compiler, which CC names, and Python's headers."""
    compiler = tmp_path / "owncc"
    compiler.touch(mode=0o755)
    (tmp_path / "Python.h").touch()
    monkeypatch.setenv("CC", f"{compiler} -pthread")
    monkeypatch.setattr(build_recorder, "find_spec", lambda _name: object())
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path))
    return tmp_path


def test_nothing_is_missing_where_all_tools_are(tools: Path) -> None:
    build_recorder.check_tools(PACKAGES)


@pytest.mark.parametrize(
    ("missing", "text"),
    [("owncc", r"no C compiler .*owncc.*install gcc"), ("Python.h", r"headers are missing.*python3-dev")],
)
def test_what_is_missing_is_named_with_what_to_install(tools: Path, missing: str, text: str) -> None:
    (tools / missing).unlink()
    with pytest.raises(build_recorder.CannotCompileError, match=text):
        build_recorder.check_tools(PACKAGES)


def test_a_missing_package_is_named(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_recorder, "find_spec", lambda _name: None)
    with pytest.raises(build_recorder.CannotCompileError, match=r"Cython is missing.*pip install cython setuptools"):
        build_recorder.check_tools(PACKAGES)
