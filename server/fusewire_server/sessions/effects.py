"""Collects the actions that the engine must do after a change of a session's tables. Plain data."""

from __future__ import annotations

from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import PendingFetch, Value


class Effects:
    """Actions that are collected while tables change. The engine does these actions afterwards."""

    __slots__ = ("declared", "failures", "reads", "refused_uploads", "released", "to_plan", "writes")

    def __init__(self) -> None:
        self.writes: list[tuple[Value, bytes]] = []  # uploads whose bytes came in the frame
        self.declared: list[Value] = []  # uploads whose bytes come in an Upload call
        self.refused_uploads: list[int] = []  # handles of uploads whose bytes were to come in an Upload call
        self.reads: list[PendingFetch] = []  # fetches of values that are ready
        self.released: list[Value] = []  # ready values that died
        # Programs to ask the planner for. Other sessions may have asked for some of these programs already.
        self.to_plan: list[ProgramEntry] = []
        self.failures: list[Failure] = []  # failures to count
