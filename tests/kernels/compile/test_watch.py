"""When a process has had enough: by the processor time that it used, by standing still, and by the clock at last."""

from __future__ import annotations

import pytest

from fusewire_kernels.compile.watch import Bounds, Usage, Watch

BOUNDS = Bounds(processor_s=24.0, idle_s=10.0, wall_s=600.0)
BEGAN_S = 1000.0


def watch(setting: str = "") -> Watch:
    return Watch(BOUNDS._replace(setting=setting), BEGAN_S)


def idle(processor_s: float = 1.0, scheduled_ns: int = 0) -> Usage:
    return Usage(processor_s, scheduled_ns, is_runnable=False)


def last_of(one: Watch, usages: list[Usage | None], every_s: float) -> str:
    """What the watch says at the last of some looks."""
    said = [one.excess(BEGAN_S + number * every_s, usage) for number, usage in enumerate(usages)]
    assert not any(said[:-1])
    return said[-1]


def test_a_process_that_has_used_its_processor_time_is_ended() -> None:
    usages: list[Usage | None] = [idle(100.0), idle(124.0), idle(124.5)]
    assert last_of(watch(), usages, 1.0) == "used more than 24 s of processor time"


def test_the_setting_of_the_processor_time_is_named() -> None:
    excess = last_of(watch("planner.deadline_s"), [idle(0.0), idle(25.0)], 1.0)
    assert excess == "used more than planner.deadline_s = 24 s of processor time"


def test_a_process_that_stands_still_is_ended_long_before_the_clock_ends_it() -> None:
    assert last_of(watch(), [idle()] * 11, 1.0) == ""
    assert last_of(watch(), [idle()] * 12, 1.0) == "neither ran nor waited for a processor for 10 s"


@pytest.mark.parametrize(
    "usage",
    [
        lambda number: idle(scheduled_ns=number),
        lambda number: idle(scheduled_ns=-number),  # one of its processes has ended
        lambda number: idle(processor_s=number / 100),
        lambda number: Usage(1.0, 0, is_runnable=True),  # it has waited for a processor since it was last seen to run
    ],
    ids=["scheduled", "ended", "used", "runnable"],
)
def test_a_process_that_gets_on_however_slowly_has_ten_minutes(usage: object) -> None:
    assert callable(usage)
    usages = [usage(number) for number in range(61)]
    assert last_of(watch(), usages, 10.0) == ""
    assert last_of(watch(), [*usages, usage(61)], 10.0) == "did not end within 600 s"


def test_standing_still_counts_from_when_it_was_last_seen_to_get_on() -> None:
    usages: list[Usage | None] = [idle(), idle(), idle(2.0), idle(2.0), idle(2.0)]
    assert last_of(watch(), usages, 6.0) == "neither ran nor waited for a processor for 10 s"


def test_where_the_system_tells_no_usage_only_the_clock_counts() -> None:
    assert last_of(watch(), [None] * 61, 10.0) == ""
    assert last_of(watch(), [None] * 62, 10.0) == "did not end within 600 s"


def test_all_bounds_but_the_setting_are_shared_out() -> None:
    assert Bounds(30.0, 12.5, 750.0, "a.setting").times(0.8) == BOUNDS
