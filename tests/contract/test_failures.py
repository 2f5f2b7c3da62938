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


def test_each_of_two_results_that_find_no_room_names_its_own_op_and_line() -> None:
    with serve_subprocess("cpu", environment=ENVIRONMENT) as server, fusewire.connect(server.grpc) as session:
        x = session.array(np.ones(ELEMENTS, np.float32))
        x.numpy()
        first_line = line() + 1
        total = x + x
        product = x * 3.0
        for array, op, its_line in ((total, "op 0 add: ", first_line), (product, "op 1 multiply: ", first_line + 1)):
            with pytest.raises(fusewire.OutOfMemory) as caught:
                array.numpy()
            text = str(caught.value)
            assert text.startswith(op)
            assert f"device.memory_bytes = {MEMORY_BYTES}" in text
            assert f"(recorded at {__file__}:{its_line})" in text
        assert x.numpy().tolist() == [1.0] * ELEMENTS


def test_what_depends_on_an_op_beyond_a_quota_names_that_op_and_its_line() -> None:
    limit = str(3 * ARRAY_BYTES)
    environment = {"FUSEWIRE_LIMITS__LIVE_BYTES": limit, "FUSEWIRE_LIMITS__ARRAY_BYTES": limit}
    with serve_subprocess("cpu", environment=environment) as server, fusewire.connect(server.grpc) as session:
        small = session.array(np.ones(4, np.float32)) + 1.0
        large = [fusewire.zeros(ELEMENTS, "float32") + number for number in range(4)]
        its_line = line() - 1
        with pytest.raises(fusewire.QuotaExceeded, match=rf"add: .*live_bytes.* \(recorded at {__file__}:{its_line}\)"):
            float(large[-1][0] + small[0])
