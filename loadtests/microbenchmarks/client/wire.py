"""Measures the bytes that the recurrent loop sends once the server knows the loop's programs.

All bytes of all numbered frames are counted: segments, frees, fetches and the acknowledgements in these frames.
Heartbeats are not counted: they have a few bytes each, and are sent only after an idle time.
"""

from __future__ import annotations

import fusewire as fw
from loadtests.measuring.figure import Figure
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import FUSEWIRE, Context, upload
from loadtests.workloads.loops import NUMPY, RNN_OPS, check_close, draw_rnn, run_rnn

_STEPS = 20_000
_CHECKED_STEPS = 200


def _measure(context: Context) -> tuple[Figure, ...]:
    operands = draw_rnn(batch=1, hidden=64, seed=3)
    with context.session() as (service, session):
        rnn = upload(session, operands)
        expected = run_rnn(operands, range(_CHECKED_STEPS), NUMPY)
        check_close(run_rnn(rnn, range(_CHECKED_STEPS), FUSEWIRE).numpy(), expected, "the recurrent loop")
        service.warm_up(lambda: run_rnn(rnn, range(1000), FUSEWIRE).numpy())
        before = session.stats
        run_rnn(rnn, range(_STEPS), FUSEWIRE).numpy()
        return _figures(before, session.stats)


def _figures(before: fw.SessionStats, after: fw.SessionStats) -> tuple[Figure, ...]:
    sent_bytes = after.sent_bytes - before.sent_bytes
    segments = after.segments - before.segments
    fragments, ops = after.fragments - before.fragments, after.ops_recorded - before.ops_recorded
    sizes = f"{sent_bytes} bytes, {segments} segments ({fragments} of them fragments), {ops} ops"
    return (
        Figure(
            name="wire_op",
            what="wire, steady RNN loop, an op",
            value=sent_bytes / (_STEPS * RNN_OPS),
            unit="bytes",
            notes=(sizes,),
        ),
        Figure(
            name="wire_segment",
            what="wire, steady RNN loop, a known segment",
            value=sent_bytes / segments,
            unit="bytes",
            notes=("with all other contents of the frames",),
        ),
    )


WIRE = Microbenchmark(("wire_op", "wire_segment"), _measure)
