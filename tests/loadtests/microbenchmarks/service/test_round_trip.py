"""Which ways the fetches that are timed take through a server."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from loadtests.microbenchmarks.service.round_trip import _ROUNDS, _fetch_computed, _fetch_stored
from loadtests.system.context import Context


@pytest.mark.slow
def test_a_scalar_that_is_there_is_fetched_without_a_submission_and_one_that_is_computed_with_one() -> None:
    numbers = count(1)
    with Context("cpu").session() as (service, session):
        zero = session.array(np.float32(0))
        begun = service.count()
        _fetch_stored(session, numbers)
        ready = service.count()
        _fetch_computed(zero, numbers)
        computed = service.count()
    assert ready.since(begun).submissions == 0
    assert computed.since(ready).submissions == _ROUNDS
