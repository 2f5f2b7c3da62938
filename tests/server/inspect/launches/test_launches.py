"""Records of launches as columns: who may see what, how they are reduced and summed up, and what is kept of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.engine.launch_records import ProgramName, SessionName
from fusewire_server.inspect.launches import history as history_module
from fusewire_server.inspect.launches import reduce as reduce_module
from fusewire_server.inspect.launches.columns import began_ns, has_any, mask_of, rows_of, seen_with
from fusewire_server.inspect.launches.company import company_of
from fusewire_server.inspect.launches.history import History
from fusewire_server.inspect.launches.reduce import reduced
from fusewire_server.inspect.launches.steps import steps_of
from tests.server.inspect.examples import RECORDS, record

PROGRAMS = (ProgramName(1, "aa", 400.0, 300.0),)
NAMES = {bit: SessionName(bit, "abc"[bit], "", "lab") for bit in range(3)}
_RECORDS = st.lists(
    st.builds(
        lambda end, lasts, bits, program: record(end, min(lasts, end), *bits, program=program),
        st.integers(0, 10**7),
        st.integers(0, 10**5),
        st.sets(st.integers(0, 127), min_size=1, max_size=4),
        st.integers(0, 3),
    ),
    max_size=60,
)


@given(_RECORDS, st.sampled_from([0, 1, 1_000, 10**5, 10**8]))
def test_reducing_keeps_all_time_all_submissions_and_all_sessions(records: list[bytes], pixel_ns: int) -> None:
    rows = rows_of(b"".join(records))
    found = reduced(rows, pixel_ns)
    for name in ("device_ns", "count", "iterations"):
        assert found[name].sum() == rows[name].sum()
    for program in range(4):
        of, before = found[found["program"] == program], rows[rows["program"] == program]
        for half in ("low", "high"):
            assert np.bitwise_or.reduce(of[half], initial=0) == np.bitwise_or.reduce(before[half], initial=0)
    assert (np.diff(began_ns(found)) >= 0).all()


def test_short_submissions_of_a_program_in_one_pixel_are_one_record() -> None:
    rows = rows_of(record(1_100, 100, 0) + record(1_300, 100, 1, 2) + record(1_500, 100, 3, program=2))
    (first, second) = reduced(rows, 1_000)
    assert (first["count"], first["rows"], first["device_ns"], first["ended_ns"]) == (2, 2, 200, 1_300)
    assert first["low"] == mask_of([0, 1, 2])
    assert (second["count"], second["program"]) == (1, 2)


def test_a_submission_longer_than_a_pixel_stays_as_it_is() -> None:
    rows = rows_of(record(9_000, 5_000, 0) + record(9_100, 5_000, 0))
    assert reduced(rows, 1_000)["count"].tolist() == [1, 1]


def test_an_answer_has_at_most_so_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduce_module, "MOST_REDUCED", 10)
    rows = rows_of(b"".join(record(1_000 * each, 10, 0) for each in range(1, 200)))
    found = reduced(rows, 0)
    assert len(found) <= 10
    assert found["count"].sum() == 199


def test_who_owns_no_session_of_a_submission_sees_only_its_time_and_rows() -> None:
    seen = seen_with(rows_of(record(2_000, 1_000, 0, 1, number=7) + record(3_000, 500, 1, number=8)), mask_of([0]))
    assert seen["low"].tolist() == [1, 0]
    assert seen["program"].tolist() == [1, 0]
    assert seen["number"].tolist() == [7, 0]
    assert seen["rows"].tolist() == [2, 1]
    assert seen["device_ns"].tolist() == [1_000, 500]


def test_the_company_of_a_session_follows_from_the_learnt_times() -> None:
    rows = rows_of(record(2_000, 1_000, 0, 1) + record(4_000, 1_000, 0, 1) + record(6_000, 700, 0))
    found = company_of(rows, 0, PROGRAMS, NAMES)
    assert (found.submissions, found.shared_submissions, found.rows) == (3, 2, 5)
    assert [(each.session, each.submissions) for each in found.companions] == [("b", 2)]
    assert found.saved_ns == 2 * 400 / 2
    assert found.longer_ns == 2 * 300
    assert found.error == 0.0


def test_the_error_is_how_far_the_estimate_is_from_the_measured_times() -> None:
    found = company_of(rows_of(record(2_000, 1_400, 0)), 0, PROGRAMS, NAMES)
    assert found.error == 0.5


def test_a_session_waits_for_others_while_they_run_and_its_row_is_queued() -> None:
    theirs = record(3_000, 2_000, 1) + record(4_000, 500, 1)
    mine = record(5_000, 1_000, 0, queue_ns=2_500.0)  # it came at 1,500 and was ordered at 4,000
    assert company_of(rows_of(theirs + mine), 0, PROGRAMS, NAMES).waited_ns == 1_500 + 500


def test_company_of_nothing_is_nothing() -> None:
    found = company_of(rows_of(b""), 2, (), NAMES)
    assert (found.submissions, found.saved_ns, found.error, found.seconds) == (0, 0.0, 0.0, 0.0)


def test_steps_are_the_times_between_the_ends_of_a_sessions_submissions() -> None:
    ends = [1_000_000, 2_000_000, 3_000_000, 7_000_000]
    rows = rows_of(b"".join(record(end, 10, 0) for end in ends) + record(8_000_000, 10, 70))
    (steps,) = steps_of(rows, [0, 70]).values()
    assert (steps.p50_s, steps.p99_s, steps.measured) == (0.001, 0.004, 3)


def test_the_high_half_of_a_mask_is_seen_too() -> None:
    rows = rows_of(record(1, 1, 100) + record(2, 1, 3))
    assert has_any(rows, 1 << 100).tolist() == [True, False]


def test_what_is_kept_is_bounded_and_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MOST_KEPT", 4)
    history = History()
    for number in range(5):
        history.add([RECORDS._replace(records=record(number, 0, 0) * 2, following=2 * number)])
    rows = history.devices[0].rows()
    assert rows["ended_ns"].tolist() == [3, 3, 4, 4]
    assert history.positions() == [(0, 1, 8)]
    assert history.devices[0].rows(1)["ended_ns"].tolist() == [4, 4]


def test_another_ring_begins_anew() -> None:
    history = History()
    history.add([RECORDS])
    history.add([RECORDS._replace(watch=2, records=b"", programs=(), sessions=())])
    assert len(history.devices[0].rows()) == 0
    assert history.devices[0].sessions == {}


def test_the_programs_of_a_tenant_are_those_that_its_sessions_ran() -> None:
    history = History()
    history.add([RECORDS])
    assert history.devices[0].programs_of("lab") == {"aa"}
    assert history.devices[0].programs_of("others") == {"aa", "bb"}
    assert history.devices[0].programs_of("nobody") == set()
