"""Through a real server: a drawn loop gives the bytes that its ops give one by one, op by op and by its plans."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fusewire as fw
from tests.contract.service import Service
from tests.drawn_loops import Drawn, Way, data, drawn_loops, run
from tests.effort import of_a_hundred

_WITHIN_S = 60.0


# An example waits for plans, and so would each of the many that look for a smaller one.
_DRAWN = settings(of_a_hundred(10), phases=(Phase.explicit, Phase.reuse, Phase.generate))


@_DRAWN
@given(loop=drawn_loops(most_iterations=80), is_hasty=st.booleans())
def test_a_loop_gives_the_bytes_of_its_ops_one_by_one(
    served: Service, hasty: Service, loop: Drawn, is_hasty: bool
) -> None:
    service = hasty if is_hasty else served
    for dtype in (np.float32, np.int32):
        with service.connect() as session:
            rows, *states = map(session.array, data(dtype))
            one_by_one = Way(fw, session.array, look=_read)
            expected = _bytes(run(loop, one_by_one, rows, states))
            for _ in range(2):  # op by op perhaps, and then by its plans
                assert _bytes(run(loop, Way(fw, session.array, read=_read), rows, states)) == expected
                service.wait_until_planned()


def _read(state: Any) -> None:
    state.numpy(timeout=_WITHIN_S)


def _bytes(arrays: list[Any]) -> list[bytes]:
    return [array.numpy(timeout=_WITHIN_S).tobytes() for array in arrays]
