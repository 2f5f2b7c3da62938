"""What follows from the figures: the verdict, and what the clients have in common."""

from dataclasses import replace

import pytest

from fusewire.examples.figures import FULL_EPOCHS, Figures, Phase, ServerCount, per
from tests.client.examples.canned import SERVER, client, figures


def test_the_demo_passes_if_each_accuracy_is_near_numpys() -> None:
    assert figures(accuracies=(0.94, 0.975)).has_passed


@pytest.mark.parametrize("accuracies", [(0.94, 0.985), (0.94, 0.955), (0.92, 0.97)])
def test_the_demo_fails_if_any_accuracy_is_far_from_numpys(accuracies: tuple[float, float]) -> None:
    assert not figures(accuracies=accuracies).has_passed


def alike(accuracy: float, *, epochs: int) -> Figures:
    """NumPy and both clients read as many images, after so many epochs."""
    measured = figures()
    return replace(
        measured,
        epochs=epochs,
        numpy=tuple(replace(each, accuracy=accuracy) for each in measured.numpy),
        together=Phase((client(0.02, accuracy), client(0.8, accuracy)), None),
    )


def test_after_all_epochs_the_demo_fails_if_a_good_rate_learned_little_though_numpy_learned_as_little() -> None:
    assert not alike(0.94, epochs=FULL_EPOCHS).has_passed
    assert alike(0.94, epochs=FULL_EPOCHS - 1).has_passed
    assert alike(0.96, epochs=FULL_EPOCHS).has_passed


def test_rates_that_are_too_small_need_not_learn() -> None:
    measured = alike(0.96, epochs=FULL_EPOCHS)
    slow = Phase((client(0.02, 0.94), client(0.8, 0.96)), None)
    assert replace(measured, numpy=tuple(each.run for each in slow.clients), together=slow).has_passed


def test_the_demo_fails_if_clients_sent_many_programs() -> None:
    programs = tuple(str(number) for number in range(11))
    clients = tuple(replace(each, programs=programs) for each in figures().together.clients)
    assert not replace(figures(), together=Phase(clients, None)).has_passed
    fewer = tuple(replace(each, programs=programs[:10]) for each in clients)
    assert replace(figures(), together=Phase(fewer, None)).has_passed


@pytest.mark.parametrize(
    ("others", "has_passed"), [(("aa", "bb", "cc"), True), (("aa",), False), (("bb", "cc"), False), ((), False)]
)
def test_the_demo_fails_unless_most_programs_are_shared(others: tuple[str, ...], has_passed: bool) -> None:
    assert figures(others_programs=others).has_passed is has_passed


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


@pytest.mark.parametrize(("has_compiler", "is_op_by_op"), [(False, True), (True, False), (None, False)])
def test_only_a_server_that_is_known_to_have_no_compiler_ran_op_by_op(
    has_compiler: bool | None, is_op_by_op: bool
) -> None:
    measured = replace(figures(plans=0), server=replace(SERVER, has_compiler=has_compiler))
    assert measured.is_op_by_op is is_op_by_op


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
