"""Finds the token that identifies the user to a server, and keeps it from travelling unencrypted."""

from __future__ import annotations

import os

from fusewire._errors import ConfigurationError
from fusewire_protos.address import read_address

UNIX_PREFIX = "unix:"
TOKEN_VARIABLE = "FUSEWIRE_TOKEN"  # noqa: S105  # the name of a variable


def token_of(given: str | None) -> str:
    """Returns `given`, or else the value of FUSEWIRE_TOKEN, or else "", without white space at the beginning and end.

    Raises ConfigurationError if the token is not a string, or is not printable ASCII. HTTP headers require printable
    ASCII.
    """
    if not isinstance(given, str | None):
        raise ConfigurationError(f"the token is a {type(given).__name__}, not a string")
    token = (given or os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError("the token has characters outside printable ASCII, which HTTP headers cannot carry")
    return token


def refuse_in_clear(target: str, remedy: str) -> None:
    """Raises ConfigurationError if a token would travel to another machine over a connection without TLS.

    `target` is host:port or unix:path. `remedy` tells the user what to set instead.
    """
    if not (target.startswith(UNIX_PREFIX) or read_address(target).is_loopback()):
        raise ConfigurationError(f"the token would travel unencrypted to {target}: {remedy}")
