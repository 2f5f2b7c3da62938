"""Waits for the outcome of a frame. It stands alone, because modules that are compiled have no coroutines."""

from __future__ import annotations

import asyncio

from fusewire_protos.errors import CaseError

Unapplied = asyncio.Future[CaseError | None]  # done once a frame is applied, with the error that ended it


async def outcome_of(applied: Unapplied | None) -> None:
    """Waits until a frame is applied, if there is one. Raises the error that it ended with."""
    error = await asyncio.shield(applied) if applied is not None else None
    if error is not None:
        raise error
