"""The estimate of what a submission takes: found from company of any size, and never stuck with rows that go alone."""

import random

import pytest

from fusewire_server.programs.row_cost import RowCost

BOUND_NS = 5_000_000


def run(cost: RowCost, waiting: int, beside_ns: int, own_ns: int, *, times: int, noise: float = 0.0) -> list[int]:
    """How many of `waiting` rows went together each time, on a device that takes `beside_ns` + `own_ns` a row."""
    draw = random.Random(7)
    together = []
    for _ in range(times):
        rows = min(waiting, cost.rows_within(BOUND_NS)) if cost.most_rows else 1
        cost.measured(rows, int((beside_ns + own_ns * rows) * (1 + noise * draw.expovariate(1))))
        together.append(rows)
    return together


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("beside_ns", [100_000, 1_000_000, 2_800_000, 4_500_000])
def test_rows_that_cost_nothing_together_soon_go_together(beside_ns: int, noise: float) -> None:
    together = run(RowCost(), 15, beside_ns, 20_000, times=40, noise=noise)[10:]
    assert sum(together) >= len(together) * 12


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("own_ns", [200_000, 500_000, 1_500_000, 2_800_000])
def test_rows_that_each_take_their_time_keep_within_the_bound(own_ns: int, noise: float) -> None:
    together = run(RowCost(), 60, 1_000, own_ns, times=400, noise=noise)[8:]
    fitting = BOUND_NS // own_ns
    assert max(together) <= fitting + 1
    assert sum(together) >= len(together) * fitting * 0.8


def test_rows_too_long_for_the_bound_go_alone() -> None:
    assert run(RowCost(), 9, 0, 2 * BOUND_NS, times=40) == [1] * 40


def test_many_rows_go_together_after_long_without_company() -> None:
    cost = RowCost()
    run(cost, 1, 2_800_000, 20_000, times=500)
    assert run(cost, 15, 2_800_000, 20_000, times=8)[-3:] == [15] * 3


def test_one_bad_measurement_is_soon_outlived() -> None:
    cost = RowCost()
    run(cost, 15, 1_000_000, 20_000, times=20)
    cost.measured(15, 200_000_000)
    assert run(cost, 15, 1_000_000, 20_000, times=4)[-1] == 15


@pytest.mark.parametrize("row_ns", [500_000, 1_000_000, 2_000_000])
def test_interruptions_of_few_rows_do_not_let_many_go_together(row_ns: int) -> None:
    draw = random.Random(5)
    cost, longest_ns = RowCost(), []
    for _ in range(5000):
        waiting = 64 if draw.random() < 0.5 else draw.randint(1, 4)
        rows = min(waiting, cost.rows_within(BOUND_NS)) if cost.most_rows else 1
        interrupted_ns = draw.randint(4_000_000, 10_000_000) if draw.random() < 0.01 else 0
        cost.measured(rows, row_ns * rows + interrupted_ns)
        longest_ns.append(row_ns * rows)
    assert max(longest_ns) <= 3 * BOUND_NS
    assert sum(time_ns > 2 * BOUND_NS for time_ns in longest_ns) < len(longest_ns) / 1000


def test_more_than_twice_the_company_of_late_is_not_relied_upon() -> None:
    cost = RowCost()
    run(cost, 3, 2_800_000, 20_000, times=20)
    assert cost.rows_within(BOUND_NS) == 6


def test_as_many_go_at_once_as_fit_though_each_took_its_time() -> None:
    cost = RowCost()
    run(cost, 2, 1_000, 100_000, times=20)
    assert cost.rows_within(BOUND_NS) >= 49


def test_a_row_is_charged_what_it_took_in_its_company() -> None:
    cost = RowCost()
    assert cost.row_ns == 0
    cost.measured(4, 8_000)
    assert cost.row_ns == 2_000


@pytest.mark.parametrize(("measured_ns", "expected_ns"), [(1000, 907), (9000, 1013), (300, 300)])
def test_a_longer_time_is_smoothed_a_far_longer_doubted_and_a_shorter_believed(
    measured_ns: int, expected_ns: int
) -> None:
    cost = RowCost()
    cost.measured(1, 800)
    cost.measured(1, measured_ns)
    assert cost.row_ns == expected_ns


def test_a_device_without_a_clock_gives_an_estimate_too() -> None:
    cost = RowCost()
    cost.measured(3, 0)
    cost.measured(5, 0)
    assert cost.rows_within(BOUND_NS) == 10
