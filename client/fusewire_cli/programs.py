"""`fusewire programs show`: one of the programs that a server knows."""

from __future__ import annotations

import argparse
import json

from fusewire._transport.inspection import checked_answer, inspect, inspect_all, inspect_text
from fusewire_cli.answers import quoted
from fusewire_protos.errors import ConfigurationError


def show(parsed: argparse.Namespace) -> int:
    """Prints a program: its plan, what was fused and why the rest was not, and its kernels. Raises FusewireError."""
    path = quoted("/v1/programs/{}", _whole_digest(parsed))
    if parsed.json:
        print(json.dumps(inspect(path, parsed.http, parsed.tls_ca), indent=2))
    else:
        print(inspect_text(f"{path}?format=text", parsed.http, parsed.tls_ca).rstrip("\n"))
    return 0


def _whole_digest(parsed: argparse.Namespace) -> str:
    """Returns the digest of the program that begins with the digits that were typed."""
    typed: str = parsed.digest
    programs = inspect_all("/v1/programs", "programs", parsed.http, parsed.tls_ca)
    with checked_answer(parsed.http):
        found = [one["digest"] for one in programs if one["digest"].startswith(typed)]
    if len(found) != 1:
        raise ConfigurationError(f"{len(found)} programs have a digest that begins with {typed!r}; name exactly one")
    return str(found[0])
