"""What the server's parts tell one another: how long a failure's text may be."""

from __future__ import annotations

from fusewire_protos.errors import BY_NAME, MOST_TEXT, CaseError
from fusewire_server.programs.failure import Failure
from tests.server.parts import chain

LONG = "x" * 100_000


def test_a_failure_keeps_a_bounded_text_however_it_came_about() -> None:
    made = Failure(BY_NAME["server_fault"], LONG, 1, 0)
    caught = Failure.of(CaseError("bad_shape", LONG), 1)
    for failure in (made, caught, made.of_result(chain(), 1, 0)):
        assert len(failure.text) <= MOST_TEXT
        assert "characters)" in failure.text
