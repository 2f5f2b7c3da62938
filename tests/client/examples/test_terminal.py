"""Where no terminal is, tables are plain and nothing moves."""

import io

import pytest

from fusewire.examples.report import Table
from fusewire.examples.terminal import progress, show

TABLE = Table("Work", ("", "now"), (("ops", "5"),))


def test_a_table_is_plain_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    show(TABLE)
    assert capsys.readouterr().out == "Work\n       now\n  ops    5\n\n"


def test_progress_is_silent_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(["one", "two"], 3) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    """Keeps what is written to it."""

    def isatty(self) -> bool:
        return True


def test_progress_moves_bars_in_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress(["one", "two"], 3) as advance:
        advance(1)
    before_the_last_move, _, shown = terminal.getvalue().rpartition("one")
    assert "0/3" in before_the_last_move
    assert "two" in shown
    assert "1/3" in shown
    assert capsys.readouterr().out == ""
