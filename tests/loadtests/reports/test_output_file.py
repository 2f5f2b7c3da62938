"""Paths of files for results."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from loadtests.reports.output_file import output_file


def test_a_file_in_a_folder_that_exists_is_taken(tmp_path: Path) -> None:
    assert output_file(str(tmp_path / "a.json")) == tmp_path / "a.json"
    assert output_file("a.json") == Path("a.json")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="is a folder"):
        output_file(str(tmp_path))


def test_a_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match=f"there is no folder {tmp_path / 'none'}"):
        output_file(str(tmp_path / "none" / "a.json"))
