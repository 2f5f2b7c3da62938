"""Test servers."""

from fusewire.testing.memory_server import MemoryServer
from fusewire.testing.memory_session import session_in_memory
from fusewire.testing.memory_transport import MemoryTransport
from fusewire.testing.server_process import ServerProcess, serve_subprocess

__all__ = ["MemoryServer", "MemoryTransport", "ServerProcess", "serve_subprocess", "session_in_memory"]
