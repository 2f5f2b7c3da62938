"""Explaining the work of a session: what is asked, which lines stand beside ops, and that no op is sent for it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.explaining import MOST_PROGRAMS, MOST_UNSENT
from fusewire_protos.frames import Explain, Segment
from tests.client.peer import connect, entries

_ONES = np.ones((4, 4), np.float32)


def _here() -> int:
    return sys._getframe(1).f_lineno


def _names(explanation: fw.Explanation) -> list[list[str]]:
    return [[op.name for op in program.ops] for program in explanation.programs]


def test_the_program_that_made_an_array_is_told_with_the_lines_that_recorded_it() -> None:
    with connect().session as session:
        x = session.array(_ONES)
        y, line = fw.tanh(x @ x), _here()
        y.numpy()
        z = fw.exp(x)
        z.numpy()
        explanation = fw.explain(y)
        assert _names(explanation) == [["matmul", "tanh"]]
        (program,) = explanation.programs
        assert program.made == 1
        assert {op.line for op in program.ops} == {f"{__file__}:{line}"}
        assert {op.form for op in program.ops} == {"op_by_op"}


def test_what_is_unsent_is_said_to_be_unsent_and_stays_so() -> None:
    peer = connect(is_manual=True)
    with peer.session as session:
        y, line = fw.tanh(session.array(_ONES)), _here()
        explanation = fw.explain(y)
        assert explanation.programs == ()
        assert explanation.unsent_ops == 1
        assert explanation.unsent == (fw.ExplainedOp("tanh", "unsent", line=f"{__file__}:{line}"),)
        assert "unsent: 1 ops" in str(explanation)
        assert entries(peer, Segment) == entries(peer, Explain) == []


def test_of_many_unsent_ops_the_last_are_told() -> None:
    peer = connect(is_manual=True)
    with peer.session as session:
        y = session.array(_ONES)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session, "flush_settled", lambda recorder: True)
            for _ in range(MOST_UNSENT):
                y = fw.exp(y)
            y = fw.tanh(y)
            explanation = fw.explain(y)
        assert explanation.unsent_ops >= len(explanation.unsent) == MOST_UNSENT
        assert explanation.unsent[-1].name == "tanh"


def test_an_upload_was_made_by_no_op() -> None:
    with connect().session as session:
        explanation = fw.explain(session.array(_ONES))
        assert explanation.programs == ()
        assert "was uploaded" in str(explanation)


def test_of_a_loop_the_iteration_is_found_that_made_the_array() -> None:
    with connect().session as session:
        x = session.array(_ONES)
        for _ in range(400):
            x = fw.tanh(x @ x)
        x.numpy()
        (program,) = fw.explain(x).programs
        assert program.ops[program.made or 0].name == "tanh"


def test_an_array_of_an_older_use_is_said_to_be_too_old() -> None:
    with connect().session as session:
        x = session.array(_ONES)
        results = []
        for _ in range(3):
            results.append(fw.tanh(x @ x))
            results[-1].numpy()
        assert fw.explain(results[0]).programs == ()
        assert "used again since" in str(fw.explain(results[0]))
        assert len(fw.explain(results[-1]).programs) == 1


def test_the_program_of_a_fori_loop_is_told() -> None:
    with connect().session as session:
        x = session.array(_ONES)
        y = fw.fori_loop(5, lambda i, carry: fw.tanh(carry @ carry), x)
        y.numpy()
        assert [name for name in _names(fw.explain(y))[0] if name != "full"] == ["matmul", "tanh"]


def test_both_parts_of_a_complex_array_are_told() -> None:
    with connect().session as session:
        z = fw.exp(session.array(_ONES.astype(np.complex64)))
        z.numpy()
        assert {program.made is not None for program in fw.explain(z).programs} == {True}


def test_a_session_tells_the_programs_that_it_used_last_and_what_is_unsent() -> None:
    with connect().session as session:
        x = session.array(_ONES)
        fw.tanh(x @ x).numpy()
        fw.exp(x).numpy()
        explanation = session.explain()
        assert _names(explanation)[:2] == [["exp"], ["matmul", "tanh"]]
        assert all(program.made is None for program in explanation.programs)


def test_programs_of_many_shapes_are_bounded_and_hinted_at() -> None:
    with connect().session as session:
        for length in range(1, MOST_PROGRAMS + 6):
            fw.tanh(session.array(np.ones(length, np.float32))).numpy()
        explanation = session.explain()
        assert len(explanation.programs) == MOST_PROGRAMS
        shapes, *_ = [hint for hint in explanation.hints if "shapes" in hint]
        assert f"{MOST_PROGRAMS} shapes, {MOST_PROGRAMS} plans" in shapes
        assert any("round trip" in hint for hint in explanation.hints)


def test_only_arrays_of_the_open_session_are_explained() -> None:
    with connect().session as one, connect().session as other:
        x = one.array(_ONES)
        with pytest.raises(fw.ArgumentError, match="another session"):
            other.explain(x)
        with pytest.raises(fw.ArgumentError, match="not int"):
            fw.explain(3)
    with pytest.raises(fw.SessionClosed):
        fw.explain(x)


def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    peer = connect()
    with peer.session as session:
        x = fw.tanh(session.array(_ONES))
        x.numpy()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(peer.server, "receive", lambda raw: [])
            with pytest.raises(fw.WaitTimeout, match="explanation did not come within"):
                fw.explain(x, timeout=0.01)


def test_uploads_of_the_same_bytes_give_a_hint_and_others_none() -> None:
    with connect().session as session:
        for step in range(100):
            session.array([float(step)])
        assert session.explain().hints == ()
        for _ in range(200):
            session.array([1.0])
        (hint,) = session.explain().hints
        assert hint.startswith("199 of 300 small uploads brought the bytes of the one before")
