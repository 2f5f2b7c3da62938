"""The counters: every failure and every reason for which a session ends; ops and launches."""

from __future__ import annotations

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.errors import CASES, Consequence
from fusewire_server.programs.counters import END_REASONS, FAILURES, Counters
from tests.server.parts import chain, entry_of


def test_no_defined_value_counts_as_a_failure() -> None:
    assert set(FAILURES) == {case.name for case in CASES if case.exception is not None}


def test_every_failure_that_ends_a_session_is_a_reason() -> None:
    assert {case.name for case in CASES if case.consequence is Consequence.PROTOCOL} < set(END_REASONS)
    assert len(END_REASONS) == len(set(END_REASONS))


def test_launches_are_those_of_the_longest_row_and_each_counts_its_ops() -> None:
    counters, entry = Counters(), entry_of(chain(("negative", "tanh")))
    loaded = NullDevice().load(build_plan(entry.program, "c"), ())
    counters.ran(entry, loaded, rows=3, iterations=(1 + 1 + 10, 10), device_ns=1)
    assert (counters.ops, counters.launches) == (24, 10 * len(loaded.plan.launches))
    assert counters.ops_per_launch.total() == counters.launches


def test_at_tier_0_each_op_is_a_launch() -> None:
    counters, entry = Counters(), entry_of(chain(("negative", "tanh")))
    counters.ran(entry, None, rows=1, iterations=(7, 7), device_ns=1)
    assert (counters.launches, counters.tier0_launches, counters.ops_per_launch) == (14, 14, {1: 14})
