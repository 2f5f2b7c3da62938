"""Counts the memory of the programs that each session and tenant holds. Pure.

A program that several sessions of a tenant hold counts once for the tenant, and once for each tenant that holds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Key = TypeVar("Key")


class ProgramQuota:
    """Bytes held by session and by tenant. `tenant_of` is called once, when a session holds its first program."""

    def __init__(self, tenant_of: Callable[[Any], Hashable]) -> None:
        self.tenant_of = tenant_of
        self._tenants: dict[Hashable, Hashable] = {}  # by session that holds a program
        self._session_bytes: Counter[Hashable] = Counter()
        self._tenant_bytes: Counter[Hashable] = Counter()
        self._times: Counter[tuple[Hashable, Hashable]] = Counter()  # how often a tenant's sessions hold a program

    def session_bytes(self, session: Hashable) -> int:
        """Returns the bytes that the session holds."""
        return self._session_bytes[session]

    def tenant_bytes_with(self, session: Hashable, program: Hashable, size_bytes: int) -> int:
        """Returns the bytes that the session's tenant would hold with one program more."""
        tenant = self._tenant(session)
        return self._tenant_bytes[tenant] + (0 if (tenant, program) in self._times else size_bytes)

    def add(self, session: Hashable, program: Hashable, size_bytes: int) -> None:
        """Adds a program to a session, which may hold the same program under several numbers."""
        tenant = self._tenants.setdefault(session, self._tenant(session))
        self._session_bytes[session] += size_bytes
        if (tenant, program) not in self._times:
            self._tenant_bytes[tenant] += size_bytes
        self._times[tenant, program] += 1

    def remove(self, session: Hashable, program: Hashable, size_bytes: int) -> None:
        """Removes a program that the session holds."""
        tenant = self._tenants[session]
        if _less(self._times, (tenant, program), 1) == 0:
            _less(self._tenant_bytes, tenant, size_bytes)
        if _less(self._session_bytes, session, size_bytes) == 0:
            del self._tenants[session]

    def _tenant(self, session: Hashable) -> Hashable:
        return self._tenants[session] if session in self._tenants else self.tenant_of(session)


def _less(counts: Counter[Key], key: Key, amount: int) -> int:
    """Subtracts from a count, removes the count at 0, and returns it."""
    counts[key] -= amount
    return counts[key] or counts.pop(key)
