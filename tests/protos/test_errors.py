"""One tree of errors and one table of cases, each complete and stable."""

from __future__ import annotations

import builtins

import grpc
import pytest

from fusewire_protos import errors
from fusewire_protos.errors import MOST_TEXT, Case, CaseError, Consequence, FusewireError
from tests import golden_files

PUBLIC = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, FusewireError)]


def test_the_table_never_changes_unnoticed() -> None:
    lines = [
        f"{case.code} {case.name} {case.consequence.value} {case.status} "
        f"{case.exception.__name__ if case.exception else None}\n"
        for case in errors.CASES
    ]
    golden_files.check_text("protos/cases.txt", "".join(lines))


def test_no_two_cases_share_a_name_or_a_code() -> None:
    assert len(errors.BY_CODE) == len(errors.BY_NAME) == len(errors.CASES)
    assert 0 not in errors.BY_CODE  # an orderly end


@pytest.mark.parametrize("case", errors.CASES, ids=lambda case: case.name)
def test_every_case_has_a_grpc_status_and_an_exception_unless_it_is_a_value(case: Case) -> None:
    assert case.status in grpc.StatusCode.__members__
    assert (case.exception is None) == (case.consequence is Consequence.DEFINED_VALUE)
    assert (case.status == "OK") == (case.consequence is Consequence.DEFINED_VALUE)


@pytest.mark.parametrize("exception", PUBLIC, ids=lambda exception: exception.__name__)
def test_every_error_of_the_tree_is_drawn_with_its_builtin_base(exception: type[FusewireError]) -> None:
    tree = errors.__doc__ or ""
    (line,) = [line for line in tree.splitlines() if exception.__name__ in line.split()]
    for base in exception.__mro__:
        if base is not exception and base.__name__ in vars(builtins) and base in exception.__bases__:
            assert f"({base.__name__})" in line or base is Exception


@pytest.mark.parametrize("case", [case for case in errors.CASES if case.exception], ids=lambda case: case.name)
def test_a_case_that_came_over_the_wire_raises_its_exception(case: Case) -> None:
    raised = errors.exception_of(case.code, "the text")
    assert type(raised) is case.exception
    assert str(raised) == "the text"


@pytest.mark.parametrize("code", [0, -1, 50, 10**9])
def test_a_code_that_is_no_failure_is_the_servers_fault(code: int) -> None:
    assert type(errors.exception_of(code, "text")) is errors.ServerFault


def test_a_case_error_carries_its_case_and_its_text() -> None:
    error = CaseError("bad_shape", "dim −1")
    assert (error.case, error.text) == (errors.BY_NAME["bad_shape"], "dim −1")
    assert str(error) == "bad_shape: dim −1"


def test_what_a_case_error_tells_is_bounded_and_says_that_it_was_cut() -> None:
    longest, longer = "x" * MOST_TEXT, "x" * (MOST_TEXT + 1)
    assert CaseError("bad_shape", longest).text == longest
    cut = CaseError("bad_shape", longer)
    assert (len(cut.text), cut.text[0]) == (MOST_TEXT, "x")
    assert cut.text.endswith(f"… (truncated: {len(longer)} characters)")
    assert str(cut) == f"bad_shape: {cut.text}"
