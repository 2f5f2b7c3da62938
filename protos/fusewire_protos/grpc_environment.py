"""Defines the environment variables with which client and server configure gRPC.

gRPC reads these variables when it is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

# The first gRPC version that does not know the experiments below. gRPC logs an error for an unknown experiment, so
# this version and later versions are not given the experiments.
_KNOWN_BEFORE = (1, 86)


def lacking(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables to add to `environment` before gRPC is imported.

    Variables that are already set in `environment` are left out.
    """
    # gRPC has handlers that run at a fork. The handlers wait for gRPC's threads, sometimes for ever, and sometimes
    # crash the child process. So the handlers are switched off. Without the handlers, a forked child must not use gRPC.
    wanted = {"GRPC_ENABLE_FORK_SUPPORT": "false"}
    # gRPC would write a line to standard error whenever an idle connection is closed, and for each failed handshake. So
    # strangers could fill a server's log.
    wanted["GRPC_VERBOSITY"] = "ERROR"
    if _installed() < _KNOWN_BEFORE:
        # These values switch gRPC's EventEngine off. Without the EventEngine, gRPC polls the sockets in the thread that
        # passes completions to Python. With the EventEngine, other threads poll, read and write. These threads wake
        # each other, so a round trip takes up to twice as long.
        wanted["GRPC_EXPERIMENTS"] = "-event_engine_client,-event_engine_listener"
    return {name: value for name, value in wanted.items() if name not in environment}


def _installed() -> tuple[int, ...]:
    major, minor = version("grpcio").split(".")[:2]
    return int(major), int(minor)
