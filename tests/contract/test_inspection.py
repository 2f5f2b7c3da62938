"""What a real server tells of a program that it has run: its plan in groups, in words and as text, and its use."""

from __future__ import annotations

import sys
import time
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.contract.loops import layer, recur
from tests.contract.service import Refused, Service
from tests.patience import HANGS_S

_STEPS = 300
_BODY = ("matmul", "add", "tanh")
_COUNTED_OPS = 10
_PAUSE_S = 0.3  # in which nobody asks the server anything
_SLOW_S = 0.02  # more than the least time of a segment in the slow log
_ROUNDING_S = 1e-9
_WITHIN_S = HANGS_S


def _run_loop(service: Service) -> None:
    with service.connect() as session:
        recur(*layer(session), _STEPS).numpy()
        service.wait_until_planned()


def _handles_of(slow: dict[str, Any]) -> range:
    """The handles of the ops of a slow segment, as the description of the slow log says it."""
    return range(slow["base"], slow["base"] + slow["ops"])


def _line_of_the_caller() -> int:
    return sys._getframe(1).f_lineno


def _largest(service: Service) -> dict[str, Any]:
    """The program of the most ops, of those that are no fragments."""
    whole = [program for program in service.programs().values() if not program["is_fragment"]]
    return max(whole, key=lambda program: int(program["ops"]))


def _planned(service: Service) -> dict[str, Any]:
    """The detail of the loop's largest program, once it is planned."""
    _run_loop(service)
    return service.program(_largest(service)["digest"])


def test_a_program_is_shown_with_its_size_tier_and_use(service: Service) -> None:
    program = _planned(service)["program"]
    assert program["digest"] == _largest(service)["digest"]
    assert program["ops"] % len(_BODY) == 0
    assert (program["tier"], program["state"], program["refusal"]) == (1, "loaded", "")
    assert 0 < program["hits"] <= program["submissions"] <= program["rows"] <= _STEPS
    assert min(program["planning_ns"], program["compiling_ns"]) > 0


def test_each_use_of_a_program_is_a_hit(service: Service) -> None:
    before = _planned(service)["program"]
    _run_loop(service)
    service.wait_until_told()
    assert service.program(before["digest"])["program"]["hits"] > before["hits"]


def test_a_plan_is_shown_as_its_launches_in_order(service: Service) -> None:
    detail = _planned(service)
    groups = detail["compiled"]["groups"]
    steps = detail["program"]["ops"] // len(_BODY)
    assert len(groups) == steps, "a product with its epilogue, each step"
    assert {group["kernel"] for group in groups} <= {source["kernel"] for source in detail["compiled"]["sources"]}
    assert {tuple(group["sizes"][:3]) for group in groups} == {(4, 16, 16)}
    assert all(group["instances"] == 1 for group in groups)


def test_a_plan_tells_what_became_of_each_op(service: Service) -> None:
    detail = _planned(service)
    ops = detail["compiled"]["ops"]
    assert [each["name"] for each in ops[:3]] == ["matmul", "add", "tanh"]
    assert [each["groups"] for each in ops[:3]] == [[0], [0], [0]]
    assert {each["form"] for each in ops} == {"kernels"}


def test_lines_of_kernels_have_the_op_that_they_compute(service: Service) -> None:
    compiled = _planned(service)["compiled"]
    names = [op["name"] for op in compiled["ops"]]
    for group in compiled["groups"]:
        source = next(each for each in compiled["sources"] if each["kernel"] == group["kernel"])
        text, (ops,) = source["text"].splitlines(), group["values"]
        computed = {ops[each["value"]]: text[each["line"] - 1] for each in source["lines"]}
        assert {names[op] for op in computed if op >= 0} == {"add", "tanh"}
        assert all("tanh" in line for op, line in computed.items() if op >= 0 and names[op] == "tanh")


def test_the_text_of_every_kernel_is_shown(service: Service) -> None:
    sources = _planned(service)["compiled"]["sources"]
    assert sources
    assert all(source["kernel"] in source["text"] for source in sources)


def test_statistics_that_are_asked_for_once_after_a_pause_are_fresh(service: Service) -> None:
    service.wait_until_empty()
    before = service.totals()
    with service.connect() as session:
        x = session.array(np.ones(_COUNTED_OPS, np.float32))
        for _ in range(_COUNTED_OPS):
            x = -x
        x.numpy()
        ends_s = time.monotonic() + _PAUSE_S
        service.wait_until(lambda: time.monotonic() >= ends_s, "the end of the pause")
        asked_s = time.monotonic()
        stats, age_ms = service.stats_and_age_ms()
        took_ms = (time.monotonic() - asked_s) * 1000
    assert stats["sessions"] == 1
    assert stats["totals"]["ops"] - before["ops"] == _COUNTED_OPS
    assert stats["totals"]["segments"] > before["segments"]
    assert 0 <= age_ms <= took_ms, "what is told was seen before it was asked for"


def test_each_op_of_a_slow_segment_is_found_at_its_line(service: Service) -> None:
    with service.connect() as session:
        x = session.array(np.ones(4, np.float32))
        with service.held():
            x = x + 1
            x = fw.tanh(x)
            first = _line_of_the_caller() - 2
            future = x.future()  # else the second op may wait for what the device holds
            service.wait_until_in_flight(2)
            ends_s = time.monotonic() + _SLOW_S  # for both, though they may have been sent apart
            service.wait_until(lambda: time.monotonic() >= ends_s, "the end of the wait")
        future.result(_WITHIN_S)
        lines = [session.line_of(handle) for each in service.slow_segments(session.id) for handle in _handles_of(each)]
    assert sorted(lines) == [f"recorded at {__file__}:{line}" for line in (first, first + 1)]


def test_each_op_of_a_slow_loop_is_found_at_its_line_in_the_body(service: Service) -> None:
    with service.connect() as session:
        x, w = (session.array(np.ones(shape, np.float32)) for shape in ((2, 4), (4, 4)))
        with service.held():
            for _ in range(_STEPS):
                x = fw.tanh(x @ w)
                x = x * 0.5
            first = _line_of_the_caller() - 2
            service.wait_until_queued_for(_SLOW_S)
        x.numpy()
        segments = service.slow_segments(session.id)
        lines = {session.line_of(handle) for each in segments for handle in _handles_of(each)}
    assert lines == {f"recorded at {__file__}:{line}" for line in (first, first + 1)}
    assert sum(each["ops"] * each["iterations"] for each in segments) <= 3 * _STEPS
    assert max(each["iterations"] for each in segments) > 1
    assert all(each["total_s"] >= each["queue_s"] + each["device_s"] - _ROUNDING_S for each in segments)


def test_a_program_that_nobody_sent_is_not_found(service: Service) -> None:
    with pytest.raises(Refused) as refused:
        service.program("00" * 32)
    assert refused.value.status == HTTPStatus.NOT_FOUND
