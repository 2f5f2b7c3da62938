"""What is read from a server's inspection, and from a server of fixed answers in its place."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from loadtests.measuring.errors import LoadFailed, NotWarm
from loadtests.system.service import Program, Service, _planned_share
from tests.inspected import inspected_server


def _program(ops: int, tier: int, hits: int, state: str = "loaded") -> Program:
    return Program("d", ops, False, tier, state, hits, 0, 0, hits, hits)


def test_only_what_was_sent_meanwhile_counts_as_planned_or_not() -> None:
    before = {"old": _program(ops=100, tier=0, hits=7), "loop": _program(ops=60, tier=0, hits=1)}
    after = {"old": _program(ops=100, tier=0, hits=7), "loop": _program(ops=60, tier=1, hits=2)}
    assert _planned_share(before, after) == 1.0


def test_programs_count_by_their_ops() -> None:
    after = {"loop": _program(ops=90, tier=1, hits=1), "fragment": _program(ops=5, tier=0, hits=2)}
    assert _planned_share({}, after) == 0.9


def test_nothing_sent_is_nothing_planned() -> None:
    assert _planned_share({}, {}) == 0.0


class _Replies(Service):
    """Tells what it is given, reading by reading; the last of it for ever."""

    def __init__(self, *readings: dict[str, Program]) -> None:
        super().__init__("nowhere", "nowhere")
        self._readings = list(readings)

    def programs(self) -> dict[str, Program]:
        return self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]


def test_warming_up_ends_with_the_first_act_that_is_planned() -> None:
    readings = [{}, *({"loop": _program(ops=60, tier=tier, hits=hits)} for tier, hits in ((0, 1), (0, 2), (1, 3)))]
    acts: list[None] = []
    _Replies(*readings).warm_up(lambda: acts.append(None))
    assert len(acts) == 3


def test_what_does_not_get_warm_in_time_is_not_measured() -> None:
    with pytest.raises(NotWarm, match="after 0 s only 0% of the ops"):
        _Replies({}, {"loop": _program(ops=60, tier=0, hits=1)}).warm_up(lambda: None, deadline_s=0)


def test_all_is_planned_once_nothing_is_with_the_planner_or_the_device() -> None:
    states = ("planning", "loading", "unplanned", "planning")
    replies = _Replies(*({"loop": _program(ops=60, tier=0, hits=1, state=state)} for state in states))
    replies.wait_until_planned()
    assert replies.programs()["loop"].state == "planning"


def test_what_is_planned_for_too_long_is_told() -> None:
    with pytest.raises(TimeoutError, match="still being planned after 0 s"):
        _Replies({"loop": _program(ops=60, tier=0, hits=1, state="planning")}).wait_until_planned(deadline_s=0)


def _body(state: str, tier: int = 0, *, is_fragment: bool = False) -> Program:
    return _program(ops=6, tier=tier, hits=1, state=state)._replace(is_fragment=is_fragment)


def test_new_programs_are_waited_for_until_they_run_by_their_plans() -> None:
    replies = _Replies(
        *({"new": _body(state, tier)} for state, tier in (("planning", 0), ("loading", 0), ("loaded", 1)))
    )
    assert replies.wait_for_plans_beside({})


def test_known_programs_and_fragments_are_not_waited_for() -> None:
    known = _Replies({"old": _body("planning"), "part": _body("planning", is_fragment=True)})
    assert not known.wait_for_plans_beside({"old"})


def test_a_new_program_that_gets_no_plan_is_told() -> None:
    assert not _Replies({"new": _body("unplanned")}).wait_for_plans_beside({})


def test_a_new_program_that_is_planned_for_too_long_is_told() -> None:
    with pytest.raises(TimeoutError, match="still being planned after 0 s"):
        _Replies({"new": _body("planning")}).wait_for_plans_beside({}, deadline_s=0)


def _page(path: str, _authorization: str | None) -> tuple[int, str]:
    """One of two pages of one entry each. The second entry is a session, and a program that is being planned."""
    number = 1 if path.endswith("?after=a%2F0") else 0
    program = _program(ops=6, tier=0, hits=1, state=("loaded", "planning")[number])._replace(digest=f"d{number}")
    entries = {"programs": [program._asdict()], "sessions": [{"in_flight_ops": number}]}
    return 200, json.dumps({**entries, "next": None if number else "a/0"})


def test_lists_are_read_to_their_last_page(monkeypatch: pytest.MonkeyPatch) -> None:
    with inspected_server() as server:
        monkeypatch.setattr(server, "answer", _page)
        service = Service("nowhere", server.address)
        assert service.is_planning()
        assert list(service.programs()) == ["d0", "d1"]
        assert service.in_flight_ops() == (0, 1)


def _busy(times: int) -> Callable[[str, str | None], tuple[int, str]]:
    """Answers that say so many times that the server is busy, and are good from then on."""
    busy = iter([(503, "busy")] * times)
    return lambda _path, _authorization: next(busy, (200, '{"ops": 1}'))


def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with inspected_server() as server:
        monkeypatch.setattr(server, "answer", _busy(9))
        assert Service("nowhere", server.address).stats() == {"ops": 1}
        assert len(server.requests) == 10


def test_a_server_that_stays_busy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with inspected_server() as server:
        monkeypatch.setattr(server, "answer", _busy(10))
        with pytest.raises(LoadFailed, match=f"GET /v1/stats at {server.address}: 503 busy"):
            Service("nowhere", server.address).stats()
