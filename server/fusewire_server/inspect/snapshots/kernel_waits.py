"""Describes the kernels that rows wait for, as a whole and for each session. Pure.

There may be thousands of these kernels and of the sessions that wait for each, so only the longest waits are described.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from fusewire_server.inspect.snapshots.stats import KernelWaits, KernelWaitView
from fusewire_server.planning.plans import KernelWait
from fusewire_server.sessions.session import Session

_MOST_LISTED = 100  # waits, and sessions of each
_MOST_OPS = 10  # of a session


def described(waits: Sequence[KernelWait], now_ns: int) -> KernelWaits:
    """Describes waits, of which the longest is the first."""
    if not waits:
        return KernelWaits()
    return KernelWaits(
        kernels=len(waits),
        sessions=len(frozenset[Session]().union(*[wait.sessions for wait in waits])),
        oldest_s=_waited_s(waits[0], now_ns),
        oldest=tuple([_described(wait, now_ns) for wait in waits[:_MOST_LISTED]]),
    )


def ops_by_session(waits: Sequence[KernelWait]) -> Mapping[Session, Sequence[str]]:
    """Returns for each session that waits the names of the ops whose kernels it waits for."""
    ops: dict[Session, dict[str, None]] = {}
    for wait in waits[:_MOST_LISTED]:
        for session in wait.sessions:
            ops.setdefault(session, {})[wait.op] = None
    return {session: tuple(islice(names, _MOST_OPS)) for session, names in ops.items()}


def _described(wait: KernelWait, now_ns: int) -> KernelWaitView:
    shown = islice(sorted([session.shown_id for session in wait.sessions]), _MOST_LISTED)
    return KernelWaitView(wait.op, len(wait.sessions), tuple(shown), _waited_s(wait, now_ns), wait.refusal)


def _waited_s(wait: KernelWait, now_ns: int) -> float:
    return max(now_ns - wait.since_ns, 0) / 1e9
