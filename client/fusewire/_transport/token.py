"""The token that identifies the user to a server: an argument or an environment variable."""

from __future__ import annotations

import os

from fusewire._errors import ConfigurationError

TOKEN_VARIABLE = "FUSEWIRE_TOKEN"  # noqa: S105  # the name of a variable


def token_of(given: str | None) -> str:
    """`given`, or else the value of FUSEWIRE_TOKEN, or else "". Blanks and line ends around it are removed.

    Raises ConfigurationError for a token that is not a string or not printable ASCII, which HTTP headers require.
    """
    if not isinstance(given, str | None):
        raise ConfigurationError(f"the token is a {type(given).__name__}, not a string")
    token = (given or os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError("the token has characters outside printable ASCII, which HTTP headers cannot carry")
    return token
