"""Lists the microbenchmarks of each backend, in the order of the table."""

from __future__ import annotations

from collections.abc import Mapping

from loadtests.microbenchmarks.client.loop_programs import LOOP_PROGRAMS
from loadtests.microbenchmarks.client.recording import RECORDING
from loadtests.microbenchmarks.client.wire import WIRE
from loadtests.microbenchmarks.device.array_functions import ARRAY_FUNCTIONS, MANY_EQUATIONS
from loadtests.microbenchmarks.device.device_cells import DEVICE_CELLS
from loadtests.microbenchmarks.device.many_programs import MANY_PROGRAMS
from loadtests.microbenchmarks.device.transforms import TRANSFORMS
from loadtests.microbenchmarks.loops.fori import POINTWISE_FORI, STAGED_FORI
from loadtests.microbenchmarks.loops.never_seen import NEVER_SEEN
from loadtests.microbenchmarks.loops.planning import PLANNING
from loadtests.microbenchmarks.loops.pointwise import POINTWISE
from loadtests.microbenchmarks.loops.rnn import RNN, RNN_SMALL
from loadtests.microbenchmarks.loops.settling import SETTLING
from loadtests.microbenchmarks.loops.throughput import THROUGHPUT
from loadtests.microbenchmarks.loops.training import TRAINING
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.microbenchmarks.service.agent_step import AGENT_STEP
from loadtests.microbenchmarks.service.bulk_transfer import BULK_TRANSFER
from loadtests.microbenchmarks.service.engine_frames import ENGINE_FRAMES
from loadtests.microbenchmarks.service.far_ahead import FAR_AHEAD
from loadtests.microbenchmarks.service.loads import LOADS, RL_CLIENTS, RNN_CLIENTS
from loadtests.microbenchmarks.service.many_clients import MANY_CLIENTS
from loadtests.microbenchmarks.service.round_trip import ROUND_TRIP
from loadtests.microbenchmarks.service.scraping import SCRAPING
from loadtests.microbenchmarks.service.watching import WATCHING

_ON_EVERY_BACKEND = (
    RECORDING,
    THROUGHPUT,
    POINTWISE,
    POINTWISE_FORI,
    STAGED_FORI,
    NEVER_SEEN,
    SETTLING,
    AGENT_STEP,
    MANY_PROGRAMS,
    MANY_EQUATIONS,
    LOOP_PROGRAMS,
    WIRE,
    ROUND_TRIP,
    BULK_TRANSFER,
    MANY_CLIENTS,
    FAR_AHEAD,
    TRANSFORMS,
    WATCHING,
)
# These measure the server's host, whatever the device.
_ON_THE_HOST = (PLANNING, SCRAPING, ENGINE_FRAMES)

MICROBENCHMARKS: Mapping[str, tuple[Microbenchmark, ...]] = {
    "cpu": (RNN_SMALL, *_ON_EVERY_BACKEND, *_ON_THE_HOST, *LOADS),
    # What matters most comes first, in case the bench is cut off.
    "cuda": (RNN, DEVICE_CELLS, ARRAY_FUNCTIONS, RL_CLIENTS, TRAINING, *_ON_EVERY_BACKEND, RNN_CLIENTS),
}


def choose(backend: str, names: frozenset[str]) -> tuple[Microbenchmark, ...]:
    """Returns the microbenchmarks that measure the named figures, or all if `names` is empty.

    Raises ValueError for a name that is no figure of this backend.
    """
    microbenchmarks = MICROBENCHMARKS[backend]
    known = {name for microbenchmark in microbenchmarks for name in microbenchmark.names}
    if names - known:
        raise ValueError(f"unknown figure {', '.join(sorted(names - known))}; known are {', '.join(sorted(known))}")
    return tuple(microbenchmark for microbenchmark in microbenchmarks if not names or names & set(microbenchmark.names))
