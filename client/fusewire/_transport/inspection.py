"""Queries a server's inspection over HTTP, and formats the answers as text.

The inspection is a second port of the server. It reports the server's statistics and sessions as JSON.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any

from fusewire._transport.token import TOKEN_VARIABLE, refuse_in_clear, token_of
from fusewire_protos.address import Address, read_address
from fusewire_protos.errors import ConfigurationError, FusewireError, ServerFault, Unauthenticated

_ANSWER_DEADLINE_S = 10.0
SYSTEM_ROOTS = "system"


def inspect(path: str, address: str, tls_ca: str | None, method: str = "GET") -> dict[str, Any]:
    """Asks the inspection at `address` (HOST:PORT), and returns its JSON answer.

    If `tls_ca` names a file of trusted certificates, or is "system" for those of the system, the connection uses TLS.
    Raises Unauthenticated if the server refuses the token, ServerFault if no valid answer comes within 10 s, and
    ConfigurationError for a wrong address or certificate file, or if the token would travel unencrypted to another
    machine.
    """
    scheme = "http" if tls_ca is None else "https"
    checked, token = _checked(address), token_of(None)
    url = f"{scheme}://{checked}{path}"
    if token and tls_ca is None:
        refuse_in_clear(str(checked), "give --tls-ca")
    # The request uses no proxy, because a proxy would see the token.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *_tls(tls_ca))
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310 - http or https, as above
        with opener.open(request, timeout=_ANSWER_DEADLINE_S) as answer:
            told: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as refused:
        raise _refusal(refused, url) from None
    except (OSError, ValueError, HTTPException) as reason:
        raise ServerFault(f"no answer from {url}: {getattr(reason, 'reason', reason)}") from None
    return told


@contextmanager
def checked_answer(address: str) -> Iterator[None]:
    """Turns errors in reading the answer from `address` into ServerFault.

    Such an error shows that the answer did not come from a Fusewire server.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError):
        raise ServerFault(f"the server at {address} is not the inspection of a Fusewire server") from None


def _checked(address: str) -> Address:
    try:
        return read_address(address, least_port=1)
    except ValueError as reason:
        raise ConfigurationError(f"inspection at {address!r}: {reason}") from None


def _tls(ca_file: str | None) -> list[urllib.request.HTTPSHandler]:
    if ca_file is None:
        return []
    try:
        context = ssl.create_default_context(cafile=None if ca_file == SYSTEM_ROOTS else ca_file)
    except OSError as reason:  # ssl.SSLError is a subclass of OSError
        raise ConfigurationError(f"--tls-ca {ca_file}: {reason}") from None
    return [urllib.request.HTTPSHandler(context=context)]


def _refusal(refused: urllib.error.HTTPError, url: str) -> FusewireError:
    with refused:
        try:
            message = json.load(refused)["detail"]
        except (OSError, ValueError, KeyError, TypeError):
            message = refused.reason
    if refused.code in {401, 403}:
        return Unauthenticated(
            f"{url}: {message}; set {TOKEN_VARIABLE} to a token of scope inspect, or admin to operate"
        )
    return ServerFault(f"{url}: {refused.code} {message}")


def status_text(stats: dict[str, Any]) -> str:
    """Returns the statistics of a server as lines of text."""
    backend, totals, memory = stats["backend"], stats["totals"], stats["memory"]
    lines = {
        "server": f"{stats['version']}, instance {stats['instance'][:12]}, since {stats['started_at']}",
        "state": _state_word(stats),
        "device": f"{backend['name']}: {backend['device']} {backend['detail']}".rstrip(),
        "sessions": str(stats["sessions"]),
        "programs": str(stats["programs"]),
        "ops": f"{totals['ops']:,} in {totals['segments']:,} segments",
        "launches": f"{totals['launches']:,} in {totals['submissions']:,} submissions, {_per_launch(totals)}",
        "memory": f"{_size(memory['live_bytes'])} live, {_size(memory['peak_bytes'])} peak",
        "traffic": f"{_size(totals['received_bytes'])} in, {_size(totals['sent_bytes'])} out",
        "failures": ", ".join(f"{name} {count:,}" for name, count in totals["failures"].items()) or "none",
    }
    return "\n".join(f"{name:<10} {text}" for name, text in lines.items())


def _state_word(stats: dict[str, Any]) -> str:
    if stats["is_draining"]:
        return "draining"
    if stats["is_held"]:
        return "held: the device accepts no new submission"
    return "ready" if stats["is_ready"] else "unready"


def _per_launch(totals: dict[str, Any]) -> str:
    return f"{totals['ops'] / totals['launches']:.1f} ops a launch" if totals["launches"] else "no op has run yet"


def sessions_text(sessions: list[dict[str, Any]]) -> str:
    """Returns a table of the sessions of a server as text, with one session on each line."""
    columns = "{:<14}{:<16}{:<10}{:>12}{:>10}{:>12}{:>12}{:>9}"
    lines = [columns.format("session", "tenant", "state", "ops", "in flight", "live", "unread", "idle s")]
    for one in sessions:
        held, unread = _size(one["live_bytes"]), _size(one["unread_bytes"])
        shown = (one["session"], one["tenant"], one["state"], f"{one['ops']:,}", one["in_flight_ops"])
        lines.append(columns.format(*shown, held, unread, f"{one['idle_s']:.1f}"))
    return "\n".join(lines)


def _size(size_bytes: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.1f} {unit}"
    return f"{size_bytes} bytes"
