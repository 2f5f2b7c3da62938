"""Compiling the recorder: what is compiled anew, and what is left if that fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import build_recorder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / build_recorder.FOLDER
    folder.mkdir(parents=True)
    path = folder / "fast.pyx"
    path.touch()
    return path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The sources that were compiled."""
    sources: list[Path] = []

    def compile_one(source: Path, module: Path) -> None:
        module.touch()
        sources.append(source)

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


def test_a_failure_leaves_no_old_module(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Path, module: Path) -> None:
        raise OSError("no compiler")

    (module,) = build_recorder.modules_of(tmp_path).values()
    module.touch()
    os.utime(module, ns=(0, 0))
    monkeypatch.setattr(build_recorder, "_compile", fail)
    with pytest.raises(OSError, match="no compiler"):
        build_recorder.bring_up_to_date(tmp_path)
    assert not module.exists()
