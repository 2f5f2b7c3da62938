"""`fusewire programs ls|show`: the programs that a server knows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from fusewire._transport.inspection import checked_answer, inspect, inspect_all, inspect_text
from fusewire_cli.text import duration, table
from fusewire_protos.errors import ConfigurationError

_SHOWN_DIGITS = 12


def list_all(parsed: argparse.Namespace) -> int:
    """Prints the programs that a server knows. Raises FusewireError."""
    programs = list(inspect_all("/v1/programs", "programs", parsed.http, parsed.tls_ca))
    with checked_answer(parsed.http):
        text = programs_text(programs)
    print(json.dumps(programs, indent=2) if parsed.json else text)
    return 0


def show(parsed: argparse.Namespace) -> int:
    """Prints a program: its plan, what was fused and why the rest was not, and its kernels. Raises FusewireError."""
    path = f"/v1/programs/{quote(_whole_digest(parsed), safe='', errors='surrogateescape')}"
    if parsed.json:
        print(json.dumps(inspect(path, parsed.http, parsed.tls_ca), indent=2))
    else:
        print(inspect_text(f"{path}?format=text", parsed.http, parsed.tls_ca).rstrip("\n"))
    return 0


def programs_text(programs: Iterable[dict[str, Any]]) -> str:
    """Returns a table of programs, with one program on each line."""
    rows = (
        (
            one["digest"][:_SHOWN_DIGITS],
            one["state"],
            one["form"],
            one["tier"],
            f"{one['ops']:,}",
            f"{one['hits']:,}",
            f"{one['rows'] / one['submissions']:.1f}" if one["submissions"] else "-",
            _known(one["row_ns"]),
            _known(one["planning_ns"] + one["compiling_ns"]),
            one["refusal"],
        )
        for one in programs
    )
    heading = (
        "program",
        "state",
        "form",
        "tier",
        "ops",
        "uses",
        "rows together",
        "row",
        "planned in",
        "no plan because",
    )
    return table(heading, rows, left=3)


def _known(time_ns: int) -> str:
    """Returns a time for people. The server tells 0 for what has not been measured yet."""
    return duration(time_ns / 1e9) if time_ns else "-"


def _whole_digest(parsed: argparse.Namespace) -> str:
    """Returns the digest of the program that begins with the digits that were typed."""
    typed: str = parsed.digest
    programs = inspect_all("/v1/programs", "programs", parsed.http, parsed.tls_ca)
    with checked_answer(parsed.http):
        found = [one["digest"] for one in programs if one["digest"].startswith(typed)]
    if len(found) != 1:
        raise ConfigurationError(f"{len(found)} programs have a digest that begins with {typed!r}; name exactly one")
    return str(found[0])
