"""Functions of one element of each operand."""

from __future__ import annotations

import torch


def test_shifts_are_those_of_the_cpu() -> None:
    x = torch.arange(-4, 5)
    distances = torch.arange(9)
    for there, other in ((x, distances), (x.int(), distances.int())):
        here, given = there.to("fusewire"), other.to("fusewire")
        for expected, found in (
            (there << 2, here << 2),
            (there >> 1, here >> 1),
            (there << other, here << given),
            (there >> other, here >> given),
            (1 << other, 1 << given),
        ):
            assert torch.equal(found.cpu(), expected)
            assert found.dtype is expected.dtype
    x = x.to("fusewire")
    x <<= 1
    assert x.tolist() == [2 * each for each in range(-4, 5)]
