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

    It is also the default session. The client is the real one: it records, raises errors at your line, finds loops,
    frees and reads. NumPy computes the values, op by op, with the shapes and dtypes of a real server. Exact ops
    (arithmetic, comparisons, moves) give the same bits as a real server; matrix products, sums and functions like tanh
    give nearly the same. Quotas, refusals and times of a server do not occur here; use `serve_subprocess` for these.

    Pass a `MemoryServer` of your own to inspect what it receives. `debug` is that of `connect`.
    """
    session = open_session(MemoryTransport(server or MemoryServer()), debug=debug)
    with session:
        yield session
