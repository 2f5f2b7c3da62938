"""What follows from the figures: the verdict, and what the clients have in common."""

import pytest

from fusewire.examples.figures import Phase, ServerCount, per
from tests.client.examples.canned import client, figures


def test_the_demo_passes_if_each_accuracy_is_near_numpys() -> None:
    assert figures(accuracies=(0.94, 0.975)).has_passed


@pytest.mark.parametrize("accuracies", [(0.94, 0.985), (0.94, 0.955), (0.92, 0.97)])
def test_the_demo_fails_if_any_accuracy_is_far_from_numpys(accuracies: tuple[float, float]) -> None:
    assert not figures(accuracies=accuracies).has_passed


def test_differences_are_signed() -> None:
    assert figures(accuracies=(0.93, 0.975)).differences == pytest.approx((-0.01, 0.005))


def test_good_rates_are_those_that_reach_95_of_100() -> None:
    assert figures(accuracies=(0.9499, 0.95)).good_rates == 1


def test_programs_of_a_phase_are_those_of_any_client() -> None:
    phase = Phase((client(0.1, 0.9, programs=("aa", "bb")), client(0.2, 0.9, programs=("bb", "cc"))), None)
    assert phase.programs == {"aa", "bb", "cc"}
    assert not phase.are_programs_shared


def test_programs_are_shared_if_every_client_sent_the_same() -> None:
    assert figures().together.are_programs_shared


def test_a_server_that_planned_nothing_ran_op_by_op() -> None:
    assert figures(plans=0).is_op_by_op
    assert not figures(plans=1).is_op_by_op


def test_growth_is_taken_figure_by_figure() -> None:
    earlier = ServerCount(
        ops=1, launches=2, rows=3, submissions=4, device_ns=5, plans=6, kernels_compiled=7, donations=8
    )
    later = ServerCount(
        ops=11, launches=22, rows=33, submissions=44, device_ns=55, plans=66, kernels_compiled=77, donations=88
    )
    assert later.since(earlier) == ServerCount(10, 20, 30, 40, 50, 60, 70, 80)


def test_nothing_each_of_none_is_unknown() -> None:
    assert per(3, 0) is None
    assert per(3, 2) == 1.5
