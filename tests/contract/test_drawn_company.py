"""Through a real server: sessions that run drawn programs get what each gets alone, whoever else sends what."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fusewire as fw
from tests.contract.recorded import record_loop
from tests.contract.rows import random_row
from tests.contract.service import Service
from tests.effort import of_a_hundred
from tests.patience import HANGS_S
from tests.strategies import Work, programs
from tests.tolerances import assert_same_bytes

Array = npt.NDArray[Any]

_TURNS = 24  # enough to be taken for a loop
_RESULT_WITHIN_S = HANGS_S
_DRAWN = st.lists(programs(most_ops=6), min_size=2, max_size=2)


# Each example takes seconds, and so would each of the many that look for a smaller one.
@settings(of_a_hundred(4), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(drawn=_DRAWN)
def test_sessions_with_the_same_and_other_programs_get_what_each_gets_alone(served: Service, drawn: list[Work]) -> None:
    works = [row for work in drawn for row in (work, random_row(work.program, 1), work)]
    alone = _one_after_another(served, works)
    for each in (_released_together(served, works), _at_once(served, works)):
        for number, (results, expected) in enumerate(zip(each, alone, strict=True)):
            _assert_same(results, expected, f"session {number}")


def _one_after_another(service: Service, works: Sequence[Work]) -> list[list[Array]]:
    """Each with nobody else at work. All sessions stay until their programs are planned: nobody plans for the gone."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(service.connect()) for _ in works]
        results = [_run(session, work) for session, work in zip(sessions, works, strict=True)]
        service.wait_until_planned()
    return results


def _released_together(service: Service, works: Sequence[Work]) -> list[list[Array]]:
    """When the work of all is at the server before any of it runs."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(service.connect()) for _ in works]
        with service.held():
            fetched = [
                [result.future() for result in record_loop(session, work, turns=_TURNS)]
                for session, work in zip(sessions, works, strict=True)
            ]
            service.wait_until_in_flight(sum(session.stats.in_flight.ops for session in sessions))
        return [[future.result(_RESULT_WITHIN_S) for future in futures] for futures in fetched]


def _at_once(service: Service, works: Sequence[Work]) -> list[list[Array]]:
    """Each by a thread of its own, as it comes."""

    def run(work: Work) -> list[Array]:
        with service.connect() as session:
            return _run(session, work)

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def _run(session: fw.Session, work: Work) -> list[Array]:
    return [np.asarray(result.numpy(_RESULT_WITHIN_S)) for result in record_loop(session, work, turns=_TURNS)]


def _assert_same(results: Sequence[Array], expected: Sequence[Array], who: str) -> None:
    for position, (one, other) in enumerate(zip(results, expected, strict=True)):
        try:
            assert_same_bytes(one, other)
        except AssertionError as difference:
            raise AssertionError(f"{who}, live result {position}: {difference}") from None
