"""The context of a measurement: the backend, fresh servers and sessions on it, and the peer library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import fusewire as fw
from loadtests.peers.libraries import LIBRARIES, Library
from loadtests.system.service import Service, serving
from loadtests.workloads.loops import Functions

_USES_UNTIL_PLANNED = 2  # by default, of a program that is no loop


class Context(NamedTuple):
    """`backend` is the backend of the servers: "cpu" or "cuda"."""

    backend: str

    @property
    def library(self) -> Library:
        """The library that users would run instead of Fusewire on such a machine."""
        return LIBRARIES[self.backend]

    @contextmanager
    def service(self) -> Iterator[Service]:
        """Yields a fresh server, which runs in the `with` block."""
        with serving(self.backend) as service:
            yield service

    @contextmanager
    def session(self) -> Iterator[tuple[Service, fw.Session]]:
        """Yields a fresh server, and one session on this server, over gRPC. The session's client is this process."""
        with self.service() as service, fw.connect(service.target, local=False) as session:
            yield service, session

    @contextmanager
    def started_session(self) -> Iterator[tuple[Service, fw.Session]]:
        """Yields a fresh server whose planner's processes have started, and one session on this server.

        The server has planned one op, and a program of this op, and has no other kernel.
        """
        with self.session() as (service, session):
            for _ in range(_USES_UNTIL_PLANNED):
                fw.exp(session.array(np.zeros(8, np.float32))).numpy()
            service.wait_until_planned()
            yield service, session


FUSEWIRE = Functions(fw.sigmoid, fw.tanh, fw.relu, fw.sqrt, fw.concat, lambda x, w: fw.conv(x, w, padding=1))


def upload(session: fw.Session, operands: Any) -> Any:
    """Uploads a named tuple of operands to the session. Returns a tuple of the same type that holds the uploads."""
    return type(operands)(*(session.array(operand) for operand in operands))
