"""Opens a session on a server in memory, which needs no network, no other process and no device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusewire._connect import open_session
from fusewire._session import Session
from fusewire.testing.memory_server import MemoryServer
from fusewire.testing.memory_transport import MemoryTransport


@contextmanager
def session_in_memory(server: MemoryServer | None = None, *, debug: bool = False) -> Iterator[Session]:
    """Opens a session for tests of your own programs. You need no running server.

        def test_doubling() -> None:
            with session_in_memory() as session:
                x = session.array([1.0, 3.0])
                for _ in range(10):
                    x = x * 2
                assert x.numpy().tolist() == [1024, 3072]

    The session is also the default session inside the `with` block. The client is the real client: it records ops,
    raises errors at your line, finds loops, frees values and reads them. NumPy computes the values, op by op, with the
    shapes and dtypes of a real server. Exact ops (arithmetic, comparisons, moves) give the same bits as a real server.
    Matrix products, sums and functions like tanh give nearly the same values. This session does not show the quotas,
    the refusals or the speed of a server. Use `serve_subprocess` to test these.

    Pass a `MemoryServer` of your own to inspect what the server receives. `debug` means the same as in `connect`.
    """
    session = open_session(MemoryTransport(server or MemoryServer()), debug=debug)
    with session:
        yield session
