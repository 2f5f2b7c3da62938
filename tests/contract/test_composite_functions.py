"""Elementwise functions that consist of several ops, computed by the kernels of a real server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from tests.client.api.functions import values


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with serve_subprocess("cpu") as server, fw.connect(server.grpc) as opened:
        yield opened


@pytest.mark.parametrize("dtype", values.FLOATS)
def test_kernels_compute_composites_as_accurately_as_numpy(session: fw.Session, dtype: str) -> None:
    a, b = values.floats(dtype), values.floats(dtype, seed=1)
    x, y = session.array(a), session.array(b)
    of_one = {name: getattr(fw, name)(x) for name in values.OF_ONE}
    of_two = {name: getattr(fw, name)(x, y) for name in values.OF_TWO}
    distant = {}
    for name, actual in {**of_one, **of_two}.items():
        expected = values.expected_of_two(name, a, b) if name in of_two else values.in_numpy(name, a)
        ours = actual.numpy()
        if name in ("fmin", "fmax"):
            ours, expected = ours + np.array(0, ours.dtype), expected + np.array(0, ours.dtype)  # zeros of one sign
        distance = values.distance_ulps(ours, expected)
        if name == "logaddexp":
            distance = np.where(values.cancels(expected, a, b), 0, distance)
        limit = values.allowed(dtype, {**values.OF_ONE, **values.OF_TWO}[name] + values.OF_KERNELS)
        if distance.max() > (limit if name not in values.EXACT else 0):
            distant[name] = float(distance.max())
    assert distant == {}
