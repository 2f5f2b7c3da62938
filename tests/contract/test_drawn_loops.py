"""Through a real server: drawn loops, alone and nested, give the bytes that their ops give one by one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fusewire as fw
from tests.contract.service import Service
from tests.drawn_loops import Drawn, Way, data, drawn_loops, run
from tests.drawn_nests import Nest, drawn_nests, in_numpy, in_python, run_nest
from tests.effort import of_a_hundred
from tests.patience import HANGS_S

_WITHIN_S = HANGS_S

# An example waits for plans, and so would each of the many that look for a smaller one.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(of_a_hundred(10), phases=_PHASES)
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


@settings(of_a_hundred(15), phases=_PHASES)
@given(nest=drawn_nests(most_iterations=40), dtype=st.sampled_from([np.float32, np.int64]), is_hasty=st.booleans())
def test_a_body_that_is_recorded_once_gives_the_bytes_that_it_gives_one_by_one(
    served: Service, hasty: Service, nest: Nest, dtype: Any, is_hasty: bool
) -> None:
    service = hasty if is_hasty else served
    with service.connect() as session:
        arrays = [*map(session.array, data(dtype))]
        one_by_one = partial(in_python, index=lambda number: session.array(np.int64(number)), look=_read)
        expected = _bytes(run_nest(nest, fw, one_by_one, arrays))
        if dtype is np.int64:
            assert expected == [state.tobytes() for state in run_nest(nest, np, in_numpy, data(dtype))]
        for _ in range(2):  # op by op perhaps, and then by its plans
            assert _bytes(run_nest(nest, fw, fw.fori_loop, arrays, read=_read)) == expected
            service.wait_until_planned()


def _read(state: Any) -> None:
    state.numpy(timeout=_WITHIN_S)


def _bytes(arrays: list[Any]) -> list[bytes]:
    return [array.numpy(timeout=_WITHIN_S).tobytes() for array in arrays]
