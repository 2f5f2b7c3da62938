"""Asks a server's inspection over HTTP. The inspection is a second port of the server, which answers in JSON."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    RemoteDisconnected,
)
from typing import Any
from urllib.parse import quote

from fusewire._transport.token import TOKEN_VARIABLE, refuse_in_clear, token_of
from fusewire_protos.address import Address, read_address
from fusewire_protos.errors import ConfigurationError, FusewireError, ServerFault, Unauthenticated

_ANSWER_DEADLINE_S = 10.0
_MOST_ANSWER_BYTES = 64 << 20
SYSTEM_ROOTS = "system"


def inspect(path: str, address: str, tls_ca: str | None, method: str = "GET", content: object = None) -> Any:
    """Asks the inspection at `address` (HOST:PORT), and returns its JSON answer.

    `content` is sent as JSON, unless it is None. If `tls_ca` names a file of trusted certificates, or is "system" for
    those of the system, the connection uses TLS.
    Raises Unauthenticated if the server refuses the token, ServerFault if no valid answer comes within 10 s, and
    ConfigurationError for a wrong address or certificate file, or if the token would travel unencrypted to another
    machine.
    """
    text = inspect_text(path, address, tls_ca, method, content)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise ServerFault(f"no answer from {_url(path, address, tls_ca)}: {reason}") from None


def inspect_text(path: str, address: str, tls_ca: str | None, method: str = "GET", content: object = None) -> str:
    """Asks the inspection as `inspect` does, and returns its answer as text."""
    url = _url(path, address, tls_ca)
    # The request uses no proxy and follows no redirection, because the token must reach nobody else.
    connection, headers = connection_to(address, tls_ca, _ANSWER_DEADLINE_S)
    try:
        if content is None:
            connection.request(method, path, headers=headers)
        else:
            connection.request(method, path, json.dumps(content), {**headers, "Content-Type": "application/json"})
        answer = connection.getresponse()
        raw = answer.read(_MOST_ANSWER_BYTES + 1)
    except BadStatusLine as reason:
        raise ServerFault(f"no answer from {url}: {_why_no_http(reason, tls_ca)}") from None
    except (OSError, ValueError, HTTPException) as reason:
        raise ServerFault(f"no answer from {url}: {reason}") from None
    finally:
        connection.close()
    if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
        raise _refusal(answer, raw.decode(errors="replace"), url)
    if len(raw) > _MOST_ANSWER_BYTES:
        raise ServerFault(f"the answer from {url} is longer than {_MOST_ANSWER_BYTES >> 20} MiB")
    try:
        return raw.decode()
    except UnicodeDecodeError as reason:
        raise ServerFault(f"no answer from {url}: {reason}") from None


def connection_to(address: str, tls_ca: str | None, deadline_s: float) -> tuple[HTTPConnection, dict[str, str]]:
    """Returns a connection to the inspection that is not open yet, and the headers of a request with the token.

    `deadline_s` bounds each wait on it. Raises ConfigurationError as `inspect` does.
    """
    host, port = _checked(address)
    headers = _bearer(address, tls_ca)
    if tls_ca is None:
        return HTTPConnection(host, port, timeout=deadline_s), headers
    return HTTPSConnection(host, port, timeout=deadline_s, context=_context(tls_ca)), headers


def inspect_all(path: str, entries: str, address: str, tls_ca: str | None) -> Iterator[Any]:
    """Yields the entries of a list that comes in pages; `entries` is their name in the answer. Errors as `inspect`."""
    after = ""
    while True:
        page = inspect(path + after, address, tls_ca)
        with checked_answer(address):
            yield from page[entries]
            following = page.get("next")
            if following is None:
                return
            after = f"{'&' if '?' in path else '?'}after={quote(following, safe='')}"


@contextmanager
def checked_answer(address: str) -> Iterator[None]:
    """Turns errors in reading the answer from `address` into ServerFault.

    Such an error shows that the answer did not come from a Fusewire server.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise ServerFault(f"the server at {address} is not the inspection of a Fusewire server") from None


def _url(path: str, address: str, tls_ca: str | None) -> str:
    return f"{'http' if tls_ca is None else 'https'}://{_checked(address)}{path}"


def _checked(address: str) -> Address:
    try:
        return read_address(address, least_port=1)
    except ValueError as reason:
        raise ConfigurationError(f"inspection at {address!r}: {reason}") from None


def _context(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file == SYSTEM_ROOTS else ca_file)
    except OSError as reason:  # ssl.SSLError is a subclass of OSError
        raise ConfigurationError(f"--tls-ca {ca_file}: {reason}") from None


def _bearer(address: str, tls_ca: str | None) -> dict[str, str]:
    """Returns the headers that carry the token, if there is one."""
    token = token_of(None)
    if token and tls_ca is None:
        refuse_in_clear(address, "give --tls-ca")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _why_no_http(reason: BadStatusLine, tls_ca: str | None) -> str:
    """Returns what may be wrong if an answer is no HTTP. The bytes of the answer tell a reader nothing."""
    if isinstance(reason, RemoteDisconnected):
        return str(reason) if tls_ca else f"{reason}; if the server uses TLS, give --tls-ca"
    return "it speaks no HTTP; is this the HTTP port of a Fusewire server (7424), and not its gRPC port (7423)?"


def _refusal(answer: HTTPResponse, text: str, url: str) -> FusewireError:
    try:
        message = json.loads(text)["detail"]
    except (LookupError, RecursionError, TypeError, ValueError):
        message = answer.reason
    if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return Unauthenticated(
            f"{url}: {message}; set {TOKEN_VARIABLE} to a token of scope inspect, or admin to operate"
        )
    return ServerFault(f"{url}: {answer.status} {message}")
