"""Files are loaded once and let go with the last plan that holds them."""

from __future__ import annotations

import gc

import pytest

from fusewire_kernels.devices.loaded_files import LoadedFiles


class _Plan:
    """Whatever holds files."""


def _loaded(files: LoadedFiles[str], *paths: str) -> _Plan:
    plan = _Plan()
    assert [files[path] for path in paths]
    files.hold(plan, paths)
    return plan


def test_a_file_is_loaded_once() -> None:
    files = LoadedFiles(lambda path: [path])
    assert files["a"] is files["a"]
    assert files["a"] is not files["b"]


def test_a_file_goes_with_the_last_plan_that_holds_it() -> None:
    files = LoadedFiles(str.upper)
    first, second = _loaded(files, "a", "b", "a"), _loaded(files, "b")
    assert files.take_unheld() == []
    del first
    gc.collect()
    assert files.take_unheld() == ["A"]
    del second
    gc.collect()
    assert files.take_unheld() == ["B"]
    assert files.take_unheld() == []


def test_a_file_that_was_let_go_is_loaded_again() -> None:
    files = LoadedFiles(str.upper)
    _loaded(files, "a")
    gc.collect()
    assert files.take_unheld() == ["A"]
    plan = _loaded(files, "a")
    assert files.take_unheld() == []
    assert plan is not None


def test_what_no_plan_came_to_hold_is_unheld() -> None:
    files = LoadedFiles(str.upper)
    assert files["a"] == "A"
    assert files.take_unheld() == ["A"]


def test_a_file_that_does_not_load_leaves_nothing() -> None:
    def refuse(path: str) -> str:
        raise OSError(path)

    files = LoadedFiles(refuse)
    with pytest.raises(OSError, match="a"):
        files["a"]
    assert files.take_unheld() == []
