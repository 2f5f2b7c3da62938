"""A tenant's large op runs in pieces, so that another tenant waits for a piece of it and not for its end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from tests.bounds import Bounded
from tests.faults.bystander import running, watching
from tests.faults.server import Inspector, serving, until

pytestmark = pytest.mark.faults

_ROWS = 8192  # of both matrices: their product takes half a minute and more
_STEPS_BESIDE = 50  # of the quiet client
_WITHIN_S = 60.0
MOST_STEP_S = 1.0  # a piece takes 0.2 s


def multiply_large_matrices(target: str, token: str) -> None:
    """Multiplies large matrices for ever."""
    with fw.connect(target, token=token) as session:
        column = session.array(np.random.default_rng(0).normal(size=(_ROWS, 1)).astype(np.float32))
        matrix = column * fw.ones(_ROWS, dtype="float32")
        while True:
            (matrix @ matrix)[-1, -1].numpy(timeout=None)


def test_a_large_product_makes_nobody_wait_for_its_end(
    token: str, attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    with (
        serving(token_file) as server,
        running(multiply_large_matrices, server.grpc, attacking),
        watching(server, token, newcomers=False) as observed,
    ):
        inspector = Inspector(server, inspecting)
        until(lambda: inspector.ask("/v1/pool")["live_bytes"] > _ROWS * _ROWS * 4, _WITHIN_S)
        observed.steps, observed.worst_step_s = 0, 0.0
        until(lambda: observed.steps > _STEPS_BESIDE, _WITHIN_S)
    assert observed.failures == []
    bounded("longest step of a quiet client", observed.worst_step_s, MOST_STEP_S, "s")
