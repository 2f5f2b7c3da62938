"""The time of a transform: measured on the CPU, and how it is told."""

from __future__ import annotations

import pytest

from loadtests.microbenchmarks.device.transforms import TRANSFORMS, measured
from loadtests.system.context import Context


@pytest.mark.slow
def test_a_transform_is_checked_and_measured_beside_numpy() -> None:
    figure = measured(Context("cpu"), points=1000, turns=2)
    assert (figure.name,) == TRANSFORMS.names
    assert figure.value > 0
    assert figure.peer is not None
    assert figure.peer.name == "NumPy"
    assert figure.peer.ratio == pytest.approx(figure.value / figure.peer.value)
    assert "round trip" in figure.notes[0]
    assert {*map(len, figure.raw.values())} == {2}
