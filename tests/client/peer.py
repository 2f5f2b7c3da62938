"""A session whose server is in this process and computes with NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

from fusewire import Session
from fusewire._connect import open_session
from fusewire.testing.memory_server import CREDIT, LIMITS, MemoryServer
from fusewire.testing.memory_transport import MemoryTransport
from fusewire_protos.credit import Amount
from fusewire_protos.frames import Entry
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.patience import HANGS_S


class Peer(NamedTuple):
    """Both ends of a session in memory."""

    session: Session
    transport: MemoryTransport
    server: MemoryServer


def connect(
    *,
    credit: Amount = CREDIT,
    limits: wire.Limits = LIMITS,
    is_manual: bool = False,
    holds_completion: bool = False,
    debug: bool = False,
) -> Peer:
    """A session on a server in memory."""
    server = MemoryServer(credit=credit, limits=limits, holds_completion=holds_completion)
    transport = MemoryTransport(server, is_manual=is_manual)
    return Peer(open_session(transport, debug=debug, timeout=HANGS_S), transport, server)


def entries(peer: Peer, kind: type[Entry]) -> list[Any]:
    """What of this kind the server was sent, in order."""
    return [entry for entry in peer.server.entries if isinstance(entry, kind)]
