"""Counts the memory of the programs that each session and tenant holds. Pure.

If several sessions of one tenant hold a program, the tenant's count includes the program once. If several tenants hold
a program, the count of each tenant includes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Key = TypeVar("Key")


class ProgramQuota:
    """Counts the bytes that each session and each tenant holds.

    `tenant_of` returns the tenant of a session. The answer is kept for as long as the session holds a program.
    """

    def __init__(self, tenant_of: Callable[[Any], Hashable]) -> None:
        self.tenant_of = tenant_of
        self._tenants: dict[Hashable, Hashable] = {}  # the tenant of each session that holds a program
        self._session_bytes: Counter[Hashable] = Counter()
        self._tenant_bytes: Counter[Hashable] = Counter()
        self._times: Counter[tuple[Hashable, Hashable]] = Counter()  # holds of a program by a tenant's sessions

    def session_bytes(self, session: Hashable) -> int:
        """Returns the bytes that the session holds."""
        return self._session_bytes[session]

    def tenant_bytes_with(self, session: Hashable, program: Hashable, size_bytes: int) -> int:
        """Returns the bytes that the session's tenant would hold if the session added this program."""
        tenant = self._tenant(session)
        return self._tenant_bytes[tenant] + (0 if (tenant, program) in self._times else size_bytes)

    def tenant_bytes(self, session: Hashable) -> int:
        """Returns the bytes that the session's tenant holds."""
        return self._tenant_bytes[self._tenant(session)]

    def grow(self, program: Hashable, more_bytes: int) -> None:
        """Notes that a program takes more since it has a plan. Plans count for tenants alone."""
        for tenant in self._tenant_bytes:
            if (tenant, program) in self._times:
                self._tenant_bytes[tenant] += more_bytes

    def add(self, session: Hashable, program: Hashable, size_bytes: int, plan_bytes: int = 0) -> None:
        """Adds a program to a session, which may hold the same program under several numbers."""
        tenant = self._tenants.setdefault(session, self._tenant(session))
        self._session_bytes[session] += size_bytes
        if (tenant, program) not in self._times:
            self._tenant_bytes[tenant] += size_bytes + plan_bytes
        self._times[tenant, program] += 1

    def remove(self, session: Hashable, program: Hashable, size_bytes: int, plan_bytes: int = 0) -> int:
        """Removes a program that the session holds. Returns the bytes that its tenant still holds."""
        tenant = self._tenants[session]
        if _less(self._times, (tenant, program), 1) == 0:
            _less(self._tenant_bytes, tenant, size_bytes + plan_bytes)
        if _less(self._session_bytes, session, size_bytes) == 0:
            del self._tenants[session]
        return self._tenant_bytes[tenant]

    def _tenant(self, session: Hashable) -> Hashable:
        return self._tenants[session] if session in self._tenants else self.tenant_of(session)


def _less(counts: Counter[Key], key: Key, amount: int) -> int:
    """Subtracts `amount` from a count, removes the count if it is then 0, and returns the new count."""
    counts[key] -= amount
    return counts[key] or counts.pop(key)
