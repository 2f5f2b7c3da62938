"""The ways in which users run a loop on their own machine, beside Fusewire: libraries op by op, compilers, graphs.

Each library has a process of its own. A library that is absent, or cannot run a loop, is skipped and named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from loadtests.measuring.errors import NotAnswered, WrongResult
from loadtests.measuring.workers import Worker, Workers
from loadtests.peers import jax_loops, numpy_loops
from loadtests.peers.pytorch import compiled as torch_compiled
from loadtests.peers.pytorch import loops as torch_loops
from loadtests.peers.pytorch.graph import GRAPH_STEPS
from loadtests.workloads.loops import Floats, Loop, check_close

_FIRST_DEADLINE_S = 90.0  # the first command imports the library and compiles
_NUMPY_STEPS = 500
_OP_BY_OP_STEPS = 2_000
_MANY_STEPS = 10_000


class Way(NamedTuple):
    """A way to run a loop. `result` and `time` name commands of the library's process, with arguments LOOP STEPS."""

    name: str
    result: str
    time: str
    timed_steps: int


class LocalPeer(NamedTuple):
    """A library: `serve(connection, loops)` runs in its own process and answers the commands of the ways."""

    serve: Callable[..., None]
    ways: tuple[Way, ...]


LOCAL_PEERS: Mapping[str, tuple[LocalPeer, ...]] = {
    "cpu": (LocalPeer(numpy_loops.serve, (Way("NumPy", "result", "run_ns", _NUMPY_STEPS),)),),
    "cuda": (
        LocalPeer(
            torch_loops.serve,
            (
                Way("torch eager", "result", "run_ns", _OP_BY_OP_STEPS),
                Way(f"CUDA graph of {GRAPH_STEPS} eager cells", "replayed", "replay_ns", _MANY_STEPS),
            ),
        ),
        LocalPeer(
            torch_compiled.serve,
            (
                Way("torch.compile of the cell", "compiled", "compiled_ns", _OP_BY_OP_STEPS),
                Way("torch.compile, reduce-overhead", "reduced", "reduced_ns", _OP_BY_OP_STEPS),
                Way(f"CUDA graph of {GRAPH_STEPS} compiled cells", "graphed", "graphed_ns", _MANY_STEPS),
            ),
        ),
        LocalPeer(
            jax_loops.serve,
            (
                Way("jax.jit of the cell", "jitted", "jitted_ns", _OP_BY_OP_STEPS),
                Way("jax.lax.fori_loop", "whole", "whole_ns", _MANY_STEPS),
            ),
        ),
    ),
}


class Checked(NamedTuple):
    """The ways that came to the right result: name -> times it once, in ns a step. `skipped` names the others."""

    ways: Mapping[str, Callable[[], float]]
    skipped: tuple[str, ...]


class LocalPeers(Workers):
    """The processes of some libraries, which hold these loops. They run within the `with` block, on command."""

    def __init__(self, peers: Sequence[LocalPeer], loops: Mapping[str, Loop]) -> None:
        super().__init__([(peer.serve, (loops,)) for peer in peers])
        self._peers = peers

    def checked(self, loop: str, steps: int, expected: Floats) -> Checked:
        """Runs the loop once in each way, which may compile it. Raises WrongResult if a result is not `expected`.

        The processes do this at the same time. They do nothing else until a way is timed.
        """
        with ThreadPoolExecutor(len(self._peers)) as threads:
            check = partial(_checked, loop=loop, steps=steps, expected=expected)
            each = list(threads.map(check, self._peers, self._workers))
        ways = {name: way for part in each for name, way in part.ways.items()}
        return Checked(ways, tuple(words for part in each for words in part.skipped))


def _checked(peer: LocalPeer, worker: Worker, loop: str, steps: int, expected: Floats) -> Checked:
    ways: dict[str, Callable[[], float]] = {}
    skipped: dict[str, list[str]] = {}  # reason -> names
    for way in peer.ways:
        try:
            check_close(_result(worker, way, loop, steps), expected, f"the loop by {way.name}")
        except WrongResult:
            raise
        except NotAnswered as reason:
            worker.kill()
            skipped.setdefault(str(reason), []).append(way.name)
        except Exception as reason:  # noqa: BLE001 - the other ways are measured all the same
            skipped.setdefault(_first_line(reason), []).append(way.name)
        else:
            ways[way.name] = _timer(worker, way, loop)
    return Checked(ways, tuple(f"skipped: {', '.join(names)}: {reason}" for reason, names in skipped.items()))


def _result(worker: Worker, way: Way, loop: str, steps: int) -> Floats:
    worker.tell(way.result, loop, steps)
    result: Floats = worker.answer(_FIRST_DEADLINE_S)
    worker.ask(way.time, loop, way.timed_steps)  # what is compiled for so many steps is compiled now
    return result


def _timer(worker: Worker, way: Way, loop: str) -> Callable[[], float]:
    def step_ns() -> float:
        time_ns: int = worker.ask(way.time, loop, way.timed_steps)
        return time_ns / way.timed_steps

    return step_ns


def _first_line(reason: Exception) -> str:
    words = str(reason).strip() or type(reason).__name__
    return words.splitlines()[0]
