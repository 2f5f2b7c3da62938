"""Collects the actions that a change of a session's tables asks of the engine. Plain data."""

from __future__ import annotations

from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Fetching, Value


class Effects:
    """Actions that are collected while tables change; the engine does them afterwards."""

    __slots__ = ("declared", "failures", "reads", "released", "to_plan", "used", "writes")

    def __init__(self) -> None:
        self.writes: list[tuple[Value, bytes]] = []  # inline uploads
        self.declared: list[Value] = []  # uploads whose bytes come beside the stream
        self.reads: list[Fetching] = []  # fetches of values that are ready
        self.released: list[Value] = []  # ready values that died
        # Programs to ask the planner for, programs that others wait for already included.
        self.to_plan: list[ProgramEntry] = []
        self.used: list[ProgramEntry] = []  # programs whose rows run at tier 0, and need their one-op plans now
        self.failures: list[Failure] = []  # failures to count
