"""Runs calls in every manner: each sent alone, all in one program, and all in a loop, also within a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fusewire as fw
from tests.differential.calls import Call
from tests.differential.draw import Host

Results = list[list[Host]]
# Their shapes depend on values, so that they wait.
_WAITING = (
    *("argwhere", "nonzero", "flatnonzero", "bincount", "unique", "unique_counts", "unique_inverse", "unique_all"),
    *("place", "trim_zeros", "union1d", "intersect1d", "setdiff1d", "setxor1d"),
)
# Their results are no arrays on the server.
_OF_THIS_MACHINE = (
    *("iscomplexobj", "isrealobj", "ndim", "shape", "size"),
    *("diag_indices", "diag_indices_from", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from"),
)
OUT_OF_LOOPS = frozenset((*_WAITING, *_OF_THIS_MACHINE))


def one_by_one(session: fw.Session, calls: Sequence[Call]) -> Results:
    """Each call is sent before the next is made."""
    results = []
    for call in calls:
        made = call.results(fw, [session.array(each) for each in call.arrays])
        session.flush_all(session.recorder())
        results.append(made)
    return _read(results)


class Pack:
    """Calls whose operands have been uploaded once, so that they are one program each time that they run."""

    def __init__(self, session: fw.Session, calls: Sequence[Call]) -> None:
        self._session = session
        self._calls = calls
        self._arrays = [[session.array(each) for each in call.arrays] for call in calls]

    def together(self) -> Results:
        """Returns the results of all calls, recorded one after another and sent together."""
        return _read(self._results())

    def in_a_loop(self, iterations: int) -> Results:
        """Returns what the last iteration gives of a loop whose body makes all calls."""
        return _read(self._looped(iterations, self._start()))

    def in_a_function(self, iterations: int) -> Results:
        """Returns the same of a recorded function that holds the loop, at the second call of it."""
        run, start = fw.function(lambda start: self._looped(iterations, start)), self._start()
        run(start)
        return _read(run(start))

    def _start(self) -> list[list[fw.Array]]:
        shapes = [[(each.shape, each.dtype) for each in of_call] for of_call in self._results()]
        return [[fw.zeros(shape, dtype=dtype) for shape, dtype in of_call] for of_call in shapes]

    def _looped(self, iterations: int, start: list[list[fw.Array]]) -> Any:
        body: Callable[[Any, Any], Any] = lambda i, carry: self._results()  # noqa: E731
        return fw.fori_loop(iterations, body, start)

    def _results(self) -> list[list[fw.Array]]:
        return [call.results(fw, arrays) for call, arrays in zip(self._calls, self._arrays, strict=True)]


def _read(results: Sequence[Sequence[Any]]) -> Results:
    """Reads all results together; those that are known without a server are values of NumPy's already."""
    coming = [[each.future() if isinstance(each, fw.Array) else None for each in of_call] for of_call in results]
    return [
        [np.asarray(each if future is None else future.result()) for each, future in zip(*pair, strict=True)]
        for pair in zip(results, coming, strict=True)
    ]
