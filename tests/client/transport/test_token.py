"""Where the token comes from."""

from __future__ import annotations

import pytest

from fusewire._errors import ConfigurationError
from fusewire._transport.token import TOKEN_VARIABLE, refuse_in_clear, token_of


def test_a_given_token_goes_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "of-the-variable")
    assert token_of("given") == "given"
    assert token_of(None) == "of-the-variable"


def test_line_ends_that_a_file_brought_along_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "secret\n")
    assert token_of(None) == "secret"
    assert token_of(" given\r\n") == "given"


def test_without_any_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert token_of(None) == ""


@pytest.mark.parametrize("token", ["tökén", "of two\nlines", "a\x00"])
def test_one_that_cannot_travel_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(ConfigurationError, match="printable") as refused:
        token_of(token)
    assert token not in str(refused.value)


@pytest.mark.parametrize("target", ["127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/run/fusewire"])
def test_one_may_travel_in_clear_within_this_machine(target: str) -> None:
    refuse_in_clear(target, "")


@pytest.mark.parametrize("target", ["10.0.0.1:1", "gpu-host:1", "[2001:db8::1]:1", "localhost.example:1"])
def test_one_may_not_travel_in_clear_to_another_machine(target: str) -> None:
    with pytest.raises(ConfigurationError, match=r"unencrypted.*the remedy"):
        refuse_in_clear(target, "the remedy")
