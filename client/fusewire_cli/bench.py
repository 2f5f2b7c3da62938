"""`fusewire bench`: the figures with limits, which the load tests of the source tree measure."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from fusewire_protos.errors import ConfigurationError


def run(parsed: argparse.Namespace) -> int:
    """Runs the load tests' bench; returns its exit status. Raises ConfigurationError outside a source tree."""
    sys.path.append(str(Path.cwd()))  # which an installed script does not look in
    try:
        command_line = importlib.import_module("loadtests.command_line")
    except ModuleNotFoundError as missing:
        if missing.name != "loadtests":
            raise
        raise ConfigurationError(
            "the load tests are in the source tree, not in the package: run `fusewire bench` in its folder, after "
            "`make venv`"
        ) from None
    arguments = ["bench", "--backend", parsed.backend]
    if parsed.only:
        arguments += ["--only", *parsed.only]
    arguments += [f"--{name}" for name in ("strict", "json") if getattr(parsed, name)]
    status: int = command_line.main(arguments)
    return status
