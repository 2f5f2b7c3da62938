"""Lists the microbenchmarks of each backend, in the order of the table."""

from __future__ import annotations

from collections.abc import Mapping

from loadtests.microbenchmarks.bulk_transfer import BULK_TRANSFER
from loadtests.microbenchmarks.cold_start import COLD_START
from loadtests.microbenchmarks.engine_frames import ENGINE_FRAMES
from loadtests.microbenchmarks.far_ahead import FAR_AHEAD
from loadtests.microbenchmarks.loads import LOADS, LOADS_BESIDE_TORCH
from loadtests.microbenchmarks.many_clients import MANY_CLIENTS
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.microbenchmarks.planning import PLANNING
from loadtests.microbenchmarks.pointwise import POINTWISE
from loadtests.microbenchmarks.recording import RECORDING_COMPILED, RECORDING_PYTHON
from loadtests.microbenchmarks.rnn import RNN_B1_H256, RNN_B64_H256, RNN_B64_H1024
from loadtests.microbenchmarks.round_trip import ROUND_TRIP
from loadtests.microbenchmarks.scraping import SCRAPING
from loadtests.microbenchmarks.wire import WIRE

_ON_EVERY_BACKEND = (
    RECORDING_COMPILED,
    RECORDING_PYTHON,
    WIRE,
    ROUND_TRIP,
    BULK_TRANSFER,
    POINTWISE,
    RNN_B1_H256,
    MANY_CLIENTS,
    PLANNING,
    COLD_START,
    FAR_AHEAD,
    ENGINE_FRAMES,
    SCRAPING,
)

MICROBENCHMARKS: Mapping[str, tuple[Microbenchmark, ...]] = {
    "cpu": (*_ON_EVERY_BACKEND, *LOADS),
    "cuda": (*_ON_EVERY_BACKEND, RNN_B64_H256, RNN_B64_H1024, *LOADS_BESIDE_TORCH),
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
