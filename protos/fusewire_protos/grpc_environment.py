"""The environment variables with which client and server configure gRPC, which reads them when it is imported."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

# gRPC logs an error for an experiment that it does not know, so versions from this one on do not get them.
_KNOWN_BEFORE = (1, 86)


def lacking(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables to add to `environment` before gRPC is imported, without those that are set there."""
    # gRPC's handlers for forks wait for gRPC's threads, sometimes for ever, and sometimes crash a child. Without these
    # handlers a forked child must not use gRPC.
    wanted = {"GRPC_ENABLE_FORK_SUPPORT": "false"}
    if _installed() < _KNOWN_BEFORE:
        # Without its EventEngine, gRPC polls the sockets in the thread that passes completions to Python. With it,
        # other threads poll, read and write, and wake each other: a round trip takes up to twice as long.
        wanted["GRPC_EXPERIMENTS"] = "-event_engine_client,-event_engine_listener"
    return {name: value for name, value in wanted.items() if name not in environment}


def _installed() -> tuple[int, ...]:
    major, minor = version("grpcio").split(".")[:2]
    return int(major), int(minor)
