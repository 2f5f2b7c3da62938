"""Compiling the server: what is compiled anew, and what is left if that fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import build_server

ROOT = Path(__file__).parent.parent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree that has all sources."""
    for source in build_server.sources_of(tmp_path):
        source.parent.mkdir(parents=True, exist_ok=True)
        source.touch()
    return tmp_path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The trees that were compiled."""
    roots: list[Path] = []

    def compile_all(root: Path) -> None:
        for module in build_server.modules_of(root):
            module.touch()
        roots.append(root)

    monkeypatch.setattr(build_server, "check_tools", lambda _packages: None)
    monkeypatch.setattr(build_server, "_compile", compile_all)
    return roots


def test_every_source_that_is_named_exists() -> None:
    assert [source for source in build_server.sources_of(ROOT) if not source.exists()] == []


def test_all_is_compiled_again_only_after_a_source_has_changed(root: Path, compiled: list[Path]) -> None:
    build_server.bring_up_to_date(root)
    build_server.bring_up_to_date(root)
    assert compiled == [root]
    newer_s = build_server.modules_of(root)[0].stat().st_mtime + 1
    os.utime(build_server.sources_of(root)[0], (newer_s, newer_s))
    assert build_server.are_outdated(root)
    build_server.bring_up_to_date(root)
    assert compiled == [root, root]


def test_a_missing_module_is_compiled(root: Path, compiled: list[Path]) -> None:
    build_server.bring_up_to_date(root)
    build_server.modules_of(root)[-1].unlink()
    build_server.bring_up_to_date(root)
    assert compiled == [root, root]


def test_a_failure_leaves_no_old_module(root: Path, compiled: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(root: Path) -> None:
        raise OSError("no compiler")

    build_server.bring_up_to_date(root)
    build_server.modules_of(root)[0].unlink()
    monkeypatch.setattr(build_server, "_compile", fail)
    with pytest.raises(OSError, match="no compiler"):
        build_server.bring_up_to_date(root)
    assert not any(module.exists() for module in build_server.modules_of(root))
