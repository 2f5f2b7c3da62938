"""What a failure tells a user: which op, which line of theirs, and which setting."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fusewire
from fusewire.testing import serve_subprocess

ELEMENTS = 1 << 18
ARRAY_BYTES = 4 * ELEMENTS
MEMORY_BYTES = 5 * ARRAY_BYTES // 2  # an array and one result; a second result finds no room
ENVIRONMENT = {"FUSEWIRE_DEVICE__MEMORY_BYTES": str(MEMORY_BYTES), "FUSEWIRE_DEVICE__ARENA_BYTES": "1 MiB"}


def line() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.parametrize("debug", [True, False])
def test_each_of_two_results_that_find_no_room_names_its_own_op_and_line(debug: bool) -> None:
    with (
        serve_subprocess("cpu", environment=ENVIRONMENT) as server,
        fusewire.connect(server.grpc, debug=debug) as session,
    ):
        x = session.array(np.ones(ELEMENTS, np.float32))
        x.numpy()
        first_line = line() + 1
        total = x + x
        product = x * 3.0
        exact = [f"recorded at {__file__}:{number}" for number in (first_line, first_line + 1)]
        # Without debug few lines are kept: an op without its own is told with the last one before it.
        vague = [] if debug else [f"recorded at or after {__file__}:{first_line}"]
        for array, op, places in (
            (total, "op 0 add: ", exact[:1]),
            (product, "op 1 multiply: ", [exact[1], *vague]),
        ):
            with pytest.raises(fusewire.OutOfMemory) as caught:
                array.numpy()
            text = str(caught.value)
            assert text.startswith(op)
            assert f"device.memory_bytes = {MEMORY_BYTES}" in text
            assert any(f"({place})" in text for place in places)
        assert x.numpy().tolist() == [1.0] * ELEMENTS
