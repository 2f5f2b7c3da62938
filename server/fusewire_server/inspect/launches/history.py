"""Keeps the newest records of the launches of each device, with the names of what is in them. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from fusewire_server.engine.launch_records import ProgramName, Records, SessionName
from fusewire_server.inspect.launches.columns import Rows, has_any, mask_of, rows_of

MOST_KEPT = 1 << 17  # records of a device
_NONE = rows_of(b"")


@dataclass
class DeviceHistory:
    """The records of one device that were read since its ring began."""

    watch: int = 0
    following: int = 0
    programs: dict[int, ProgramName] = field(default_factory=dict)
    sessions: dict[int, SessionName] = field(default_factory=dict)
    _parts: deque[Rows] = field(default_factory=deque)
    _count: int = 0

    def add(self, records: Records) -> None:
        """Adds what was read."""
        self.following = records.following
        self.programs.update({each.number: each for each in records.programs})
        self.sessions.update({each.bit: each for each in records.sessions})
        rows = rows_of(records.records)
        self._parts.append(rows)
        self._count += len(rows)
        while self._count - len(self._parts[0]) >= MOST_KEPT:
            self._count -= len(self._parts.popleft())

    def rows(self, newest: int | None = None) -> Rows:
        """Returns all records, or those of so many of the newest readings, in the order of their ends."""
        parts = [*self._parts] if newest is None else [*islice(reversed(self._parts), newest)][::-1]
        return np.concatenate(parts) if parts else _NONE

    def mask(self, tenant: str) -> int:
        """Returns the mask of the sessions of a tenant."""
        return mask_of([each.bit for each in self.sessions.values() if each.tenant == tenant])

    def programs_of(self, tenant: str) -> set[str]:
        """Returns the digests of the programs that sessions of a tenant have run."""
        rows = self.rows()
        numbers = set(np.unique(rows["program"][has_any(rows, self.mask(tenant))]).tolist())
        return {each.digest for number, each in self.programs.items() if number in numbers}


class History:
    """The records of all devices. One thread owns it."""

    def __init__(self) -> None:
        self._devices: dict[int, DeviceHistory] = {}

    @property
    def devices(self) -> Mapping[int, DeviceHistory]:
        """By the number of the device."""
        return self._devices

    def positions(self) -> list[tuple[int, int, int]]:
        """Returns for each device its number, its ring and the position from which to read on."""
        return [(number, each.watch, each.following) for number, each in self._devices.items()]

    def add(self, read: Iterable[Records]) -> None:
        """Adds what was read of some devices. What a device had in an earlier ring is forgotten."""
        for records in read:
            known = self._devices.get(records.device)
            if known is None or known.watch != records.watch:
                known = self._devices[records.device] = DeviceHistory(records.watch)
            known.add(records)

    def forget(self) -> None:
        """Forgets all, so that new rings begin."""
        self._devices.clear()
