"""Operates the server for the inspection thread: passes operations to the loop thread."""

from __future__ import annotations

from collections.abc import Callable

from fusewire_protos.errors import CaseError
from fusewire_server.engine.engine import Engine
from fusewire_server.host.logs import log_level, set_log_level
from fusewire_server.inspect.questions import sessions_shown_as


class EngineControl:
    """Operates one engine. Each method returns at once, and may be called on any thread.

    `call_soon` passes a function to the loop thread. `drain` begins to end the server; the second call ends it at once.
    """

    def __init__(
        self, engine: Engine, drain: Callable[[], None], call_soon: Callable[[Callable[[], None]], object]
    ) -> None:
        self._engine = engine
        self._drain = drain
        self._call_soon = call_soon

    def hold(self) -> None:
        self._call_soon(self._engine.hold)

    def release(self) -> None:
        self._call_soon(self._engine.unhold)

    def drain(self) -> None:
        self._call_soon(self._drain)

    def end_session(self, session: str) -> None:
        reason = CaseError("ended_by_operator", "an operator ended the session")
        self._call_soon(lambda: self._engine.dismiss(sessions_shown_as(self._engine, session), reason))

    def log_level(self) -> str:
        return log_level()

    def set_log_level(self, level: str) -> None:
        set_log_level(level)
