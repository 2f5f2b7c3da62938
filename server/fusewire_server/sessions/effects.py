"""Collects what a change of a session's tables asks the engine to do. Plain data."""

from __future__ import annotations

from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Fetching, Value


class Effects:
    """Filled while tables change; the engine acts on it afterwards."""

    __slots__ = ("declared", "failures", "reads", "released", "to_plan", "used", "writes")

    def __init__(self) -> None:
        self.writes: list[tuple[Value, bytes]] = []  # inline uploads
        self.declared: list[Value] = []  # uploads whose bytes come beside the stream
        self.reads: list[Fetching] = []  # of values that are ready
        self.released: list[Value] = []  # ready values that died
        self.to_plan: list[ProgramEntry] = []  # those that others wait for already too
        self.used: list[ProgramEntry] = []  # run at tier 0 now: what that needs must be at hand
        self.failures: list[Failure] = []  # for the counters
