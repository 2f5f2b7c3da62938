"""The context of a measurement: the backend, fresh servers and sessions on it, and the peer library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import fusewire as fw
from loadtests.peers.libraries import LIBRARIES, Library
from loadtests.system.service import Service, serving
from loadtests.workloads.loops import Functions


class Context(NamedTuple):
    """`backend` is the server's: "cpu" or "cuda"."""

    backend: str

    @property
    def library(self) -> Library:
        """The library that users would run instead on such a machine."""
        return LIBRARIES[self.backend]

    @contextmanager
    def service(self) -> Iterator[Service]:
        """A fresh server."""
        with serving(self.backend) as service:
            yield service

    @contextmanager
    def session(self) -> Iterator[tuple[Service, fw.Session]]:
        """A fresh server, and one session on it in this process."""
        with self.service() as service, fw.connect(service.target) as session:
            yield service, session


FUSEWIRE = Functions(fw.sigmoid, fw.tanh, fw.relu)


def upload(session: fw.Session, operands: Any) -> Any:
    """A named tuple of operands, uploaded to the session."""
    return type(operands)(*(session.array(operand) for operand in operands))
