"""The event loop of a server: uvloop's, where it is installed."""

from __future__ import annotations

import asyncio
import sys

import pytest
import uvloop

from fusewire_server.host.event_loop import loop_factory


def test_it_is_uvloops() -> None:
    factory = loop_factory()
    assert factory is not None
    with asyncio.Runner(loop_factory=factory) as runner:
        assert isinstance(runner.get_loop(), uvloop.Loop)


def test_it_is_pythons_where_uvloop_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        assert isinstance(runner.get_loop(), asyncio.BaseEventLoop)
