"""Numbers and tables as people read them."""

from __future__ import annotations

import pytest

from fusewire_cli.text import duration, harmless, properties, rate, size, table


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (3 << 20, "3.0 MiB"), (5 << 30, "5.0 GiB")],
)
def test_a_size_is_in_the_largest_unit(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.5 s"), (90, "1.5 min"), (7200, "2.0 h"), (259_200, "3.0 d"), (0.01, "10.0 ms"), (2e-5, "20.0 µs")],
)
def test_a_duration_is_in_a_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("per_second", "text"), [(3, "3/s"), (2500, "2.5 k/s"), (4e6, "4.0 M/s"), (1e9, "1.0 G/s")])
def test_a_rate_has_a_suffix(per_second: float, text: str) -> None:
    assert rate(per_second) == text


def test_a_terminal_is_not_commanded_by_a_client() -> None:
    assert harmless("a\x1b[2Jb\r\nc\x07") == "a\\x1b[2Jb\\r\\nc\\x07"
    assert "\x1b" not in table(("name",), [("\x1b]0;owned\x07",)])
    assert "\x1b" not in properties([("client", "\x1b[31m")])


def test_columns_are_aligned() -> None:
    lines = table(("name", "count"), [("a", 1), ("long name", 1000)]).splitlines()
    assert lines == ["name       count", "a              1", "long name   1000"]
