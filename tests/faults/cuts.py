"""Draws when connections break, and opens sessions over connections that do."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import fusewire as fw
from tests.faults.cutting_proxy import Cut

SETTLED_S = 60.0  # twice the time for which a server keeps a session that was closed without a connection


def cuts(seed: int, most_bytes: int, *, half_open: float = 0.0) -> Callable[[], Cut]:
    """Draws when connections break: as often after tens of bytes as after hundreds of them, and so on.

    `half_open` is the share of the cuts of which the server is not told.
    """
    drawn = random.Random(seed)

    def next_cut() -> Cut:
        after_bytes = round(10 ** drawn.uniform(2, np.log10(most_bytes)))
        stalls_s = drawn.choice([0.0, 0.0, 0.0, 0.02])
        is_half_open = drawn.random() < half_open
        return Cut(after_bytes, drawn.random() < 0.5, drawn.random() < 0.5, stalls_s, is_half_open)

    return next_cut


@contextmanager
def connected(target: str, token: str, **options: Any) -> Iterator[fw.Session]:
    """A session that is opened though the first connections may be cut."""
    while True:
        try:
            session = fw.connect(target, token=token, local=False, **options)
        except fw.SessionLost:
            continue
        break
    with session:
        yield session
