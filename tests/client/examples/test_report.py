"""The report says what was measured, leaves out what is unknown, and ends with the verdict."""

import json
from dataclasses import replace

import pytest

from fusewire.examples.figures import Figures, ServerName
from fusewire.examples.report import UNKNOWN, Table, as_json, closing_lines, plain, tables
from tests.client.examples.canned import SERVER, figures


def work(measured: Figures) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in tables(measured)[1].rows}


def test_each_learning_rate_has_a_row_beside_numpys() -> None:
    accuracy, _ = tables(figures())
    assert accuracy.rows == (
        ("0.02", "0.9400", "0.9400", "+0.0000", "0.2500"),
        ("0.8", "0.9700", "0.9750", "+0.0050", "0.2500"),
    )


def test_work_is_told_for_the_first_client_for_one_and_for_all() -> None:
    rows = work(figures())
    assert rows["ops recorded"] == (UNKNOWN, "1,000", "1,000", "2,000")
    assert rows["bytes sent"] == (UNKNOWN, "400", "400", "800")
    assert rows["segments"] == (UNKNOWN, "12", "12", "24")
    assert rows["of these fragments"] == (UNKNOWN, "2", "2", "4")
    assert rows["distinct programs"] == (UNKNOWN, "2", "2", "2")


def test_ops_and_rows_a_launch_are_means() -> None:
    rows = work(figures())
    assert rows["ops a launch"] == (UNKNOWN, "1.00", "20.00", "50.00")
    assert rows["rows a launch"] == (UNKNOWN, "1.50", "1.50", "1.50")


def test_time_an_op_is_told_end_to_end_and_on_the_device() -> None:
    rows = work(figures())
    assert rows["ops run"] == (UNKNOWN, "1,000", "1,000", "2,000")
    assert rows["µs an op"] == (UNKNOWN, "500.00", "500.00", "250.00")
    assert rows["device µs an op"] == (UNKNOWN, "0.90", "0.90", "0.45")


def test_what_a_server_does_not_tell_is_left_out() -> None:
    measured = figures()
    silent = replace(
        measured,
        first=replace(measured.first, server=None),
        alone=replace(measured.alone, server=None),
        together=replace(measured.together, server=None),
    )
    assert "launches" not in work(silent)
    unnamed = replace(silent, server=ServerName("gpu:7423", "", "", has_compiler=None))
    assert closing_lines(unnamed)[0] == "server: gpu:7423"


def test_programs_are_said_to_be_the_same_only_if_they_are() -> None:
    assert "2 distinct programs, the same in all 2 clients" in closing_lines(figures())
    lines = closing_lines(figures(others_programs=("cc",)))
    start = "3 distinct programs, not the same in all clients (they sent 2, 1: "
    assert any(line.startswith(start) for line in lines)


def test_one_program_is_told_in_the_singular() -> None:
    measured = figures()
    clients = tuple(replace(client, programs=("aa",)) for client in measured.together.clients)
    lines = closing_lines(replace(measured, together=replace(measured.together, clients=clients)))
    assert "1 distinct program, the same in all 2 clients" in lines
    assert lines[-1].endswith("all clients sent the same program")


def test_a_server_without_a_compiler_is_told() -> None:
    without = replace(figures(), server=replace(SERVER, has_compiler=False))
    assert any(line.startswith("tier 0 only") for line in closing_lines(without))


@pytest.mark.parametrize("has_compiler", [True, None])
def test_of_no_other_server_it_is_told_even_if_it_had_nothing_left_to_plan(has_compiler: bool | None) -> None:
    warm = replace(figures(plans=0), server=replace(SERVER, has_compiler=has_compiler))
    assert not any("tier 0" in line for line in closing_lines(warm))


def test_the_last_line_is_the_verdict() -> None:
    passed = closing_lines(figures())[-1]
    assert passed == "PASSED: every accuracy is within 0.01 of NumPy's, and all clients sent the same 2 programs"
    failed = closing_lines(figures(accuracies=(0.94, 0.95)))[-1]
    assert failed == "FAILED: an accuracy differs by 0.0200 from NumPy's, more than 0.01"


def test_the_verdict_says_how_many_programs_all_clients_sent_where_it_is_not_all() -> None:
    last = closing_lines(figures(others_programs=("aa", "bb", "cc")))[-1]
    assert last.startswith("PASSED")
    assert last.endswith("all clients sent 2 of the 3 distinct programs")


def test_the_verdict_names_everything_that_fails() -> None:
    measured = replace(figures(accuracies=(0.94, 0.94), others_programs=("cc",)), epochs=20)
    assert closing_lines(measured)[-1] == (
        "FAILED: an accuracy differs by 0.0300 from NumPy's, more than 0.01"
        "; a learning rate from 0.03 on does not reach 95%"
        "; 3 distinct programs, 0 of them sent by all clients; "
        "required: at most 10, and more than half sent by all clients"
    )


def test_json_holds_the_figures_and_the_verdict() -> None:
    document = json.loads(as_json(figures()))
    assert document["passed"] is True
    assert document["same_programs_in_all_clients"] is True
    assert document["distinct_programs"] == 2
    assert document["together"]["clients"][1]["run"]["learning_rate"] == 0.8


def test_a_plain_table_has_its_figures_below_one_another() -> None:
    table = Table("Work", ("", "now"), (("ops", "5"), ("launches", "1,234")))
    assert plain(table).splitlines() == ["Work", "              now", "  ops           5", "  launches  1,234"]
