"""Questions to the inspection: what is answered, what is refused, and where the token goes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fusewire._transport import inspection
from fusewire._transport.inspection import checked_answer, inspect, inspect_all, inspect_text
from fusewire._transport.token import TOKEN_VARIABLE
from fusewire_protos.errors import ConfigurationError, ServerFault, Unauthenticated
from tests.inspected import STATS, TOKEN, Inspected, inspected_server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inspected]:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with inspected_server() as running:
        yield running


@contextmanager
def _answers(raw: bytes) -> Iterator[str]:
    """A service that answers one request by these bytes. Yields its address."""

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(raw)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join(30)


def test_an_answer_is_json_or_text(server: Inspected) -> None:
    assert inspect("/v1/stats", server.address, None) == STATS
    assert inspect_text("/v1/stats", server.address, None) == json.dumps(STATS)


def test_a_question_may_be_an_order(server: Inspected) -> None:
    inspect("/v1/stats", server.address, None, method="POST")
    assert server.requests == [("POST", "/v1/stats")]


def test_pages_are_one_list(server: Inspected, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"/l": {"l": [1, 2], "next": "a b"}, "/l?after=a%20b": {"l": [3], "next": None}}
    monkeypatch.setattr(server, "answer", lambda path, _token: (200, json.dumps(pages[path])))
    assert list(inspect_all("/l", "l", server.address, None)) == [1, 2, 3]


@pytest.mark.parametrize("page", [1, [], {}, {"l": 1}, {"l": [], "next": 5}, {"l": [], "next": ["a"]}])
def test_a_page_that_is_none_is_a_fault(server: Inspected, page: object) -> None:
    server.answers["/l"] = (200, json.dumps(page))
    with pytest.raises(ServerFault, match="not the inspection"):
        list(inspect_all("/l", "l", server.address, None))


@pytest.mark.parametrize("text", ["", "no JSON", "[" * 100_000, "1" * 10_000])
def test_an_answer_that_is_no_json_is_a_fault(server: Inspected, text: str) -> None:
    server.answers["/v1/stats"] = (200, text)
    with pytest.raises(ServerFault, match="no answer from"):
        inspect("/v1/stats", server.address, None)


def test_the_port_of_another_protocol_is_told_without_its_bytes() -> None:
    with _answers(b"\x00\x00\x18\x04\x00\x00") as address, pytest.raises(ServerFault, match="7424") as fault:
        inspect("/v1/stats", address, None)
    assert "x18" not in str(fault.value)


def test_a_connection_that_is_closed_without_an_answer_may_need_tls() -> None:
    with _answers(b"") as address, pytest.raises(ServerFault, match="give --tls-ca"):
        inspect("/v1/stats", address, None)


def test_an_answer_that_is_too_long_is_a_fault(server: Inspected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_MOST_ANSWER_BYTES", len(json.dumps(STATS)))
    inspect("/v1/stats", server.address, None)
    monkeypatch.setattr(inspection, "_MOST_ANSWER_BYTES", len(json.dumps(STATS)) - 1)
    with pytest.raises(ServerFault, match="longer than"):
        inspect("/v1/stats", server.address, None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirection_is_followed(server: Inspected, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    server.answers["/v1/stats"] = (status, "")
    with inspected_server() as stranger:
        server.headers["Location"] = f"http://{stranger.address}/v1/stats"
        with pytest.raises(ServerFault, match=str(status)):
            inspect("/v1/stats", server.address, None)
        assert stranger.requests == []


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"detail": 5}', "[" * 100_000])
def test_a_refusal_without_a_sentence_is_told_all_the_same(server: Inspected, text: str) -> None:
    server.answers["/v1/stats"] = (503, text)
    with pytest.raises(ServerFault, match="503"):
        inspect("/v1/stats", server.address, None)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_says_what_to_set(server: Inspected, status: int) -> None:
    server.answers["/v1/stats"] = (status, '{"detail": "not you"}')
    with pytest.raises(Unauthenticated, match=f"not you; set {TOKEN_VARIABLE}"):
        inspect("/v1/stats", server.address, None)


def test_a_token_does_not_leave_the_machine_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    with pytest.raises(ConfigurationError, match="unencrypted"):
        inspect("/v1/stats", "gpu.example:7424", None)


@pytest.mark.parametrize("error", [KeyError("a"), TypeError(), AttributeError(), ValueError(), OverflowError()])
def test_what_reading_an_answer_raises_is_a_fault_of_the_server(error: Exception) -> None:
    with pytest.raises(ServerFault, match="host:1 is not the inspection"), checked_answer("host:1"):
        raise error
