"""A session on a server in memory: no network, no process, no device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusewire._connect import open_session
from fusewire._session import Session
from fusewire.testing.memory_server import MemoryServer
from fusewire.testing.memory_transport import MemoryTransport


@contextmanager
def session_in_memory(server: MemoryServer | None = None, *, debug: bool = False) -> Iterator[Session]:
    """A session to test your own programs with, without a server.

        def test_doubling() -> None:
            with session_in_memory() as session:
                x = session.array([1.0, 3.0])
                for _ in range(10):
                    x = x * 2
                assert x.numpy().tolist() == [1024, 3072]

    It is the default session too. What the client does is real: what it records and refuses at your line, the programs
    that it finds, frees and reads. Values come from NumPy, op by op. They have the shapes and dtypes that a server
    gives; those of exact ops (arithmetic, comparisons, moves) have its very bits, and products, sums and functions
    like tanh come close to them. A server's quotas and refusals, and times, are not to be seen here: for these there
    is `serve_subprocess`.

    Give a `MemoryServer` of your own to look at what it was sent. `debug` is that of `connect`.
    """
    session = open_session(MemoryTransport(server or MemoryServer()), debug=debug)
    with session:
        yield session
