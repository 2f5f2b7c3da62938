"""What the figures of the recurrent loop tell, without a server and without the processes of libraries."""

from __future__ import annotations

import pytest

from loadtests.measuring.figure import Figure, Verdict
from loadtests.microbenchmarks.limits import held_to_limit
from loadtests.microbenchmarks.loops import rnn
from loadtests.microbenchmarks.loops.rnn import _INLINE, _LOOP, _Measured, _Ours, _Shape

_LOCAL = {"torch eager": [6.0], "jax.lax.fori_loop": [1.25, 1.25]}


def _figure(backend: str, ours: _Ours, ours_us: float, theirs_us: dict[str, list[float]], *skipped: str) -> Figure:
    measured = _Measured({ours.figure: [ours_us]}, {ours.figure: 0.1}, theirs_us, skipped)
    return held_to_limit(rnn._figure(_Shape(1, 256), ours, measured), backend)


def test_a_figure_tells_every_local_way_and_that_fusewire_is_ahead_of_them() -> None:
    figure = _figure("cuda", _INLINE, 0.3, _LOCAL)
    assert (figure.name, figure.value, figure.verdict) == ("rnn_b1_h256", 0.3, Verdict.OK)
    assert figure.notes == (
        "0.10 µs of it on the device",
        "torch eager 6.00 µs, jax.lax.fori_loop 1.25 µs",
        "ahead of all 2 local ways",
    )
    assert figure.raw == {"fusewire": [0.3], **_LOCAL}


def test_a_figure_names_the_local_ways_that_are_faster() -> None:
    figure = _figure("cuda", _LOOP, 2.0, _LOCAL)
    assert (figure.name, figure.verdict) == ("rnn_fori_b1_h256", Verdict.MISSED)
    assert figure.notes[-1] == "behind jax.lax.fori_loop"


def test_the_library_that_runs_op_by_op_is_the_peer() -> None:
    figure = _figure("cuda", _INLINE, 0.3, _LOCAL)
    assert figure.peer is not None
    assert (figure.peer.name, figure.peer.value) == ("torch eager", 6.0)
    assert figure.peer.ratio == pytest.approx(0.05)


def test_without_any_local_library_there_is_no_peer_and_the_skipped_are_named() -> None:
    figure = _figure("cuda", _INLINE, 0.3, {}, "torch eager skipped: torch is not installed")
    assert figure.peer is None
    assert figure.notes[1:] == ("torch eager skipped: torch is not installed",)


def test_on_the_cpu_the_loop_is_held_to_numpy() -> None:
    figure = _figure("cpu", _INLINE, 0.5, {"NumPy": [1.0]})
    assert figure.peer is not None
    assert (figure.peer.ratio, figure.verdict) == (0.5, Verdict.OK)
    assert _figure("cpu", _INLINE, 0.7, {"NumPy": [1.0]}).verdict is Verdict.MISSED
