"""Where the token comes from that tells a server who asks."""

from __future__ import annotations

import os

from fusewire._errors import ConfigurationError

TOKEN_VARIABLE = "FUSEWIRE_TOKEN"  # noqa: S105  # the name of a variable


def token_of(given: str | None) -> str:
    """`given`, or else FUSEWIRE_TOKEN's, without the blanks and line ends that files bring along; empty if none is.

    Raises ConfigurationError for what is no text, or for one that no header can carry.
    """
    if not isinstance(given, str | None):
        raise ConfigurationError(f"the token is a {type(given).__name__}, not text")
    token = (given or os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError("the token has characters other than the printable ones of ASCII, and cannot travel")
    return token
