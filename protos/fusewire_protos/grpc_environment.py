"""How both ends want gRPC to work. It is told by environment variables, which it reads when it is imported."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

# An experiment that gRPC does not know is an error in its log, so later versions are left alone until they were seen
# to know these.
_KNOWN_BEFORE = (1, 86)


def lacking(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables to add to `environment` before gRPC is imported. What is set there already is left as it is."""
    # Its own handlers for forks wait for its threads, at times for ever, and crash a child now and then. Without them
    # a forked child must leave gRPC alone.
    wanted = {"GRPC_ENABLE_FORK_SUPPORT": "false"}
    if _installed() < _KNOWN_BEFORE:
        # The thread that hands completions to Python polls the sockets itself. With its EventEngine gRPC has other
        # threads poll, and read, and write, and wakes one by another: a round trip takes up to twice as long.
        wanted["GRPC_EXPERIMENTS"] = "-event_engine_client,-event_engine_listener"
    return {name: value for name, value in wanted.items() if name not in environment}


def _installed() -> tuple[int, ...]:
    major, minor = version("grpcio").split(".")[:2]
    return int(major), int(minor)
