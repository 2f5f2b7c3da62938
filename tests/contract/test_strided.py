"""Views by strides among other ops: of computed values and of views, read, written, reduced, in every manner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire_protos.ops import catalogue
from tests.contract.harness import Runner, assert_one_meaning
from tests.contract.service import Service
from tests.effort import of_a_hundred
from tests.patience import HANGS_S
from tests.strategies import programs

pytestmark = pytest.mark.timeout(600)  # while nothing is in the cache, all of it is compiled

_PROGRAMS_AN_EXAMPLE = 6
_MOST_OPS = 6
_VIEWED = ("strided", "assign_strided")
_BESIDE = ("negative", "add", "sum", "matmul", "transpose", "slice", "broadcast_to", "reshape", "concat")
_OPS = [catalogue.BY_NAME[name] for name in (*_VIEWED, *_VIEWED, *_BESIDE)]


@of_a_hundred(3)
@given(data=st.data())
def test_views_by_strides_have_one_meaning_among_other_ops(runner: Runner, data: st.DataObject) -> None:
    drawn = st.lists(
        programs(of=_OPS, most_ops=_MOST_OPS), min_size=_PROGRAMS_AN_EXAMPLE, max_size=_PROGRAMS_AN_EXAMPLE
    )
    assert_one_meaning(runner, data.draw(drawn))


@pytest.mark.parametrize("count", [1, 3, 40])
def test_a_loop_whose_view_moves_on_gives_numpys_integers(service: Service, count: int) -> None:
    wide, square = np.arange(4 * 50).reshape(4, 50), np.arange(16).reshape(4, 4)

    def run(xp: Any, h: Any, wide: Any, kept: Any) -> list[Any]:
        for k in range(count):
            h = h * 3 + xp.diagonal(wide, k)
            xp.fill_diagonal(kept, h)
        return [h, kept, xp.trace(kept)]

    expected = run(np, np.arange(4), wide, square.copy())
    with service.connect() as session:
        for _ in range(3):  # op by op perhaps, then by its plan
            ours = run(fw, session.array(np.arange(4)), session.array(wide), session.array(square))
            for one, other in zip(ours, expected, strict=True):
                np.testing.assert_array_equal(one.numpy(timeout=HANGS_S), other)
            service.wait_until_planned()
