"""The recurrent loop of one client, batch 1 and 256 units, against NumPy in the client's own process."""

from __future__ import annotations

from time import process_time_ns
from typing import NamedTuple

from loadtests.context import FUSEWIRE, Context, upload
from loadtests.figure import Figure, Peer, Scenario
from loadtests.programs import NUMPY, RNN_OPS, Rnn, check_close, draw_rnn, run_rnn
from loadtests.service import Count, Service
from loadtests.turns import elapsed_ns, summarise, take_turns

_STEPS = 3000
_CHECKED_STEPS = 200
_TURNS = 25


class _Measured(NamedTuple):
    """Of each turn, µs an op: by the clock, by who ran it, and of this process's processor; and what the server did."""

    times_us: dict[str, list[float]]
    processor_us: list[float]
    spent: Count


def _measure(context: Context) -> tuple[Figure, ...]:
    operands = draw_rnn(batch=1, hidden=256, seed=11)
    with context.session() as (service, session):
        rnn = upload(session, operands)
        _check(rnn, operands)
        service.warm_up(lambda: _run_here(rnn))
        measured = _take_turns(service, rnn, operands)
    return (_figure(measured),)


def _check(rnn: Rnn, operands: Rnn) -> None:
    expected = run_rnn(operands, range(_CHECKED_STEPS), NUMPY.sigmoid)
    check_close(run_rnn(rnn, range(_CHECKED_STEPS), FUSEWIRE.sigmoid).numpy(), expected, "the recurrent loop")


def _take_turns(service: Service, rnn: Rnn, operands: Rnn) -> _Measured:
    processor_us: list[float] = []
    ways = {
        "fusewire": lambda: [_us_an_op(_run_timed(rnn, processor_us))],
        "numpy": lambda: [_us_an_op(elapsed_ns(lambda: run_rnn(operands, range(_STEPS), NUMPY.sigmoid)))],
    }
    before = service.count()
    times_us = take_turns(_TURNS, ways)
    return _Measured(times_us, processor_us, service.count().since(before))


def _run_here(rnn: Rnn) -> None:
    run_rnn(rnn, range(_STEPS), FUSEWIRE.sigmoid).numpy()


def _run_timed(rnn: Rnn, processor_us: list[float]) -> int:
    """How long the loop takes; adds what it takes of this process's processor time, in µs an op."""
    began_ns = process_time_ns()
    time_ns = elapsed_ns(lambda: _run_here(rnn))
    processor_us.append(_us_an_op(process_time_ns() - began_ns))
    return time_ns


def _us_an_op(time_ns: int) -> float:
    return time_ns / 1e3 / (_STEPS * RNN_OPS)


def _figure(measured: _Measured) -> Figure:
    times_us, processor_us, spent = measured
    ours, numpy = summarise(times_us["fusewire"]), summarise(times_us["numpy"])
    return Figure(
        name="rnn",
        what="RNN loop B1 H256, one client, an op",
        value=ours.median,
        unit="µs",
        peer=Peer("NumPy in its process", numpy.median, ours.median / numpy.median),
        spread=ours.spread,
        notes=(
            f"{summarise(processor_us).median:.2f} µs of the client's processor time",
            f"device thread {spent.device_thread_ns / 1e3 / spent.ops:.2f} µs an op",
        ),
        raw={**times_us, "processor": processor_us},
    )


RNN = Scenario(("rnn",), _measure)
