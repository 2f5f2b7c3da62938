"""The recurrent loop of one client on the GPU, against torch in the client's own process, on the same GPU."""

from __future__ import annotations

from functools import partial

from loadtests.context import FUSEWIRE, Context, upload
from loadtests.figure import Figure, Peer, Scenario
from loadtests.peers.torch_loops import TorchLoop
from loadtests.programs import NUMPY, RNN_OPS, Rnn, check_close, draw_rnn, run_rnn
from loadtests.turns import elapsed_ns, summarise, take_turns

_STEPS = 4000
_GRAPH_STEPS = 100
_CHECKED_STEPS = 200
_TURNS = 5
_HIDDEN = 256


def _measure(context: Context, batch: int) -> tuple[Figure, ...]:
    operands = draw_rnn(batch, _HIDDEN, seed=11)
    torch = TorchLoop(operands)
    replay = torch.graph(_GRAPH_STEPS)
    with context.session() as (service, session):
        rnn = upload(session, operands)
        _check(rnn, operands, torch)
        service.warm_up(lambda: _run_here(rnn))
        torch.eager(_STEPS)
        times_us = take_turns(
            _TURNS,
            {
                "fusewire": lambda: [_us_an_op(elapsed_ns(lambda: _run_here(rnn)))],
                "torch_eager": lambda: [_us_an_op(elapsed_ns(lambda: torch.eager(_STEPS)))],
                "torch_graph": lambda: [_us_an_op(elapsed_ns(lambda: replay(_STEPS // _GRAPH_STEPS)))],
            },
        )
    return (_figure(batch, times_us),)


def _check(rnn: Rnn, operands: Rnn, torch: TorchLoop) -> None:
    expected = run_rnn(operands, range(_CHECKED_STEPS), NUMPY.sigmoid)
    check_close(run_rnn(rnn, range(_CHECKED_STEPS), FUSEWIRE.sigmoid).numpy(), expected, "the recurrent loop")
    check_close(torch.eager(_CHECKED_STEPS), expected, "the recurrent loop in torch")
    check_close(torch.graph(_CHECKED_STEPS)(1), expected, "the recurrent loop as a graph of torch")


def _run_here(rnn: Rnn) -> None:
    run_rnn(rnn, range(_STEPS), FUSEWIRE.sigmoid).numpy()


def _us_an_op(time_ns: int) -> float:
    return time_ns / 1e3 / (_STEPS * RNN_OPS)


def _figure(batch: int, times_us: dict[str, list[float]]) -> Figure:
    ours, eager, graph = (summarise(times_us[name]) for name in ("fusewire", "torch_eager", "torch_graph"))
    return Figure(
        name=f"rnn_torch_b{batch}",
        what=f"RNN loop B{batch} H{_HIDDEN}, one client, an op",
        value=ours.median,
        unit="µs",
        peer=Peer("torch eager", eager.median, ours.median / eager.median),
        spread=ours.spread,
        notes=(f"a CUDA graph of {_GRAPH_STEPS} eager steps in torch: {graph.median:.2f} µs",),
        raw=times_us,
    )


RNN_TORCH_B64 = Scenario(("rnn_torch_b64",), partial(_measure, batch=64))
RNN_TORCH_B1 = Scenario(("rnn_torch_b1",), partial(_measure, batch=1))
