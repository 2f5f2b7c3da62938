"""Five pointwise ops on a million float32, step after step, against NumPy op by op in the same process.

Each step works on the result of the one before, so that none is superfluous. The client keeps ahead of the server,
fetches nothing meanwhile and waits at the end for an element of the last result. Nothing asks for the results in
between: in `pointwise` one kernel may compute several steps of the loop and write only the last of them. In
`pointwise_kept` the user keeps every step's result, so that each step is written out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fusewire as fw
from loadtests.context import FUSEWIRE, Context, upload
from loadtests.figure import Figure, Peer, Scenario
from loadtests.programs import CHAIN_OPS, NUMPY, Chain, Floats, check_close, draw_chain, run_chain
from loadtests.turns import elapsed_ns, summarise, take_turns

_ELEMENTS = 1_000_000
_STEPS = 256  # enough for a steady stream of the largest segments
_KEPT_STEPS = 32
_NUMPY_STEPS = 8
_CHECKED_STEPS = 8
_TURNS = 5


def _measure(context: Context) -> tuple[Figure, ...]:
    operands = draw_chain(_ELEMENTS, seed=7)
    with context.session() as (service, session):
        chain = upload(session, operands)
        _check(chain, operands)
        ways = {
            "fusewire": lambda: [_ms_a_step(_STEPS, lambda: _run_to_the_end(chain))],
            "fusewire_keeping_all": lambda: [_ms_a_step(_KEPT_STEPS, lambda: _run_keeping_all(chain))],
            "numpy": lambda: [_ms_a_step(_NUMPY_STEPS, lambda: run_chain(operands, _NUMPY_STEPS, NUMPY))],
            "numpy_in_place": lambda: [_ms_a_step(_NUMPY_STEPS, lambda: _run_in_place(operands))],
        }
        service.warm_up(lambda: _run_to_the_end(chain))
        service.warm_up(lambda: _run_keeping_all(chain))
        times_ms = take_turns(_TURNS, ways)
    steady = f"{CHAIN_OPS} pointwise ops on 1 M float32, steady"
    return (
        _figure("pointwise", f"{steady}, a kernel may compute several steps", "fusewire", times_ms),
        _figure("pointwise_kept", f"{steady}, every step written out", "fusewire_keeping_all", times_ms),
    )


def _run_to_the_end(chain: Chain) -> None:
    run_chain(chain, _STEPS, FUSEWIRE)[0].numpy()


def _run_keeping_all(chain: Chain) -> None:
    """Every step's result stays alive, so that each must be written out."""
    x, b, z = chain
    kept = []
    for _ in range(_KEPT_STEPS):
        kept.append(x)
        x = fw.relu(fw.tanh(fw.sigmoid((x + b) * z)))
    x[0].numpy()


def _run_in_place(operands: Chain) -> Floats:
    """NumPy with every op writing over one array: what people write who mind the memory."""
    x: Floats = operands.x.copy()
    for _ in range(_NUMPY_STEPS):
        np.add(x, operands.b, out=x)
        np.multiply(x, operands.z, out=x)
        np.negative(x, out=x)
        np.exp(x, out=x)
        np.add(x, 1, out=x)
        np.divide(1, x, out=x)
        np.tanh(x, out=x)
        np.maximum(x, 0, out=x)
    return x


def _check(chain: Chain, operands: Chain) -> None:
    expected = run_chain(operands, _CHECKED_STEPS, NUMPY)
    check_close(_run_in_place(operands), run_chain(operands, _NUMPY_STEPS, NUMPY), "NumPy in place")
    check_close(run_chain(chain, _CHECKED_STEPS, FUSEWIRE).numpy(), expected, "five pointwise ops")


def _ms_a_step(steps: int, run: Callable[[], object]) -> float:
    return elapsed_ns(run) / 1e6 / steps


def _figure(name: str, what: str, way: str, times_ms: dict[str, list[float]]) -> Figure:
    ours, numpy, in_place = (summarise(times_ms[each]) for each in (way, "numpy", "numpy_in_place"))
    return Figure(
        name=name,
        what=what,
        value=ours.median,
        unit="ms",
        peer=Peer("NumPy, op by op", numpy.median, numpy.median / ours.median),
        spread=ours.spread,
        notes=(f"NumPy writing over one array: {in_place.median:.2f} ms",),
        raw={each: times_ms[each] for each in (way, "numpy", "numpy_in_place")},
    )


POINTWISE = Scenario(("pointwise", "pointwise_kept"), _measure)
