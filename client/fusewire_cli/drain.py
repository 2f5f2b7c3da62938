"""`fusewire drain`: lets a server finish its work and end."""

from __future__ import annotations

import argparse
import json

from fusewire._transport.inspection import inspect


def run(parsed: argparse.Namespace) -> int:
    """Tells a server to drain. Raises FusewireError."""
    answer = inspect("/v1/drain", parsed.http, parsed.tls_ca, method="POST")
    print(json.dumps(answer) if parsed.json else f"{parsed.http} drains")
    return 0
