"""Test servers.

The functions `assert_allclose` and the like of `numpy.testing` are here too, for programs that import Fusewire as np.
"""

import typing as _typing
from functools import wraps as _wraps

import numpy.testing as _of_numpy

from fusewire._api.names_of_numpy import value_of as _value_of
from fusewire.testing.memory_server import MemoryServer
from fusewire.testing.memory_session import session_in_memory
from fusewire.testing.memory_transport import MemoryTransport
from fusewire.testing.server_process import ServerProcess, serve_subprocess

__all__ = ["MemoryServer", "MemoryTransport", "ServerProcess", "serve_subprocess", "session_in_memory"]


def __dir__() -> list[str]:
    """Returns the names that completion offers, with the checks of `numpy.testing`."""
    return sorted({*globals(), *[name for name in dir(_of_numpy) if name.startswith("assert_")]})


if not _typing.TYPE_CHECKING:  # a type checker would allow every attribute

    def __getattr__(name: str) -> _typing.Any:
        if not name.startswith("assert_"):
            raise AttributeError(f"module 'fusewire.testing' has no attribute {name!r}", name=name)
        check = getattr(_of_numpy, name)

        @_wraps(check)
        def check_values(*given: _typing.Any, **options: _typing.Any) -> _typing.Any:
            return check(*map(_value_of, given), **options)

        return check_values
