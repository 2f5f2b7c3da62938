"""Drawn loops: the same loop in NumPy and in Fusewire, and what it carries, steps through, keeps, reads, changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

STATES = 3  # the results of the last iterations
ROWS = 40
_COLUMNS = 4
_FACTORS = (2, 3, -1, 2, 3)

_UPLOADED = np.arange(5 * _COLUMNS).reshape(5, 1, _COLUMNS) % 7 - 3
_NEVER = 1 << 30

Look = Callable[[Any], object]
Upload = Callable[[Any], Any]


class Uploads(Enum):
    """The arrays that an iteration takes beside the states and rows."""

    NONE = "none"
    IN_TURN = "one of a few that were uploaded before the loop"
    NEW = "one that is uploaded in this iteration"


class Step(NamedTuple):
    """An op of the body; `left` and `right` choose among what is known at this place."""

    name: str
    left: int
    right: int


class Drawn(NamedTuple):
    """A loop. The states of one, two and three iterations before are known at its first op."""

    steps: tuple[Step, ...]
    iterations: int
    uploads: Uploads
    keeps_every: int  # a value is kept of each so many iterations; 0: only the last states
    keeps: int | None  # the op whose result is kept; None: the state
    reads_at: frozenset[int]  # the iterations at whose end the client reads the state
    inner_iterations: int  # those of a loop within each iteration
    widens_at: int  # from this iteration on the states have another shape
    breaks_at: tuple[int, int]  # the iteration and the op before which the loop ends


def drawn_steps(least: int) -> st.SearchStrategy[tuple[Step, ...]]:
    steps = st.builds(Step, st.sampled_from([*_OPS]), st.integers(0, 9), st.integers(0, 9))
    return st.lists(steps, min_size=least, max_size=6).map(tuple)


def drawn_loops(most_iterations: int) -> st.SearchStrategy[Drawn]:
    never = st.just(_NEVER)
    return st.builds(
        Drawn,
        drawn_steps(least=1),
        st.integers(1, most_iterations),
        st.sampled_from([Uploads.NONE, Uploads.NONE, Uploads.IN_TURN, Uploads.NEW]),
        st.sampled_from([0, 0, 1, 2, 7, 50]),
        st.one_of(st.none(), st.integers(0, 5)),
        st.one_of(st.just(frozenset()), st.frozensets(st.integers(0, most_iterations), max_size=3)),
        st.sampled_from([0, 0, 0, 2, 25]),
        st.one_of(never, st.integers(0, most_iterations)),
        st.tuples(st.one_of(never, st.integers(0, most_iterations)), st.integers(0, 5)),
    )


def data(dtype: Any) -> list[Any]:
    """The rows through which a loop steps, and its first states."""
    rows = np.arange(ROWS * _COLUMNS).reshape(ROWS, _COLUMNS)
    return [(each % 17 - 8).astype(dtype) for each in (rows, *[rows[:1] * number for number in (3, 5, 7)])]


def nothing(_: Any) -> None:
    """Looks at no state."""


def unchanged(array: Any) -> Any:
    """What NumPy computes with needs no upload."""
    return array


class Way(NamedTuple):
    """How a loop is run: in NumPy or Fusewire, with which uploads. Each state is shown to `look`.

    `read` gets the states of the iterations that the loop reads.
    """

    xp: Any
    upload: Upload = unchanged
    read: Look = nothing
    look: Look = nothing


def run(loop: Drawn, way: Way, rows: Any, states: Sequence[Any]) -> list[Any]:
    """Runs a loop. Returns the values that it keeps, and its last states."""
    uploads_of = _uploads(loop, way, str(rows.dtype).removeprefix("fusewire."))
    kept: list[Any] = []
    for iteration in range(loop.iterations):
        if iteration == loop.widens_at:
            states = [way.xp.concatenate([state, state * 2]) for state in states]
        known = [*states, rows[iteration % ROWS : iteration % ROWS + 1], *uploads_of(iteration)]
        results = _results(loop, way.xp, known, iteration)
        if results is None:
            break
        states = [*states[1:], _next_state(loop, way.xp, states, results[-1])]
        if loop.keeps_every and iteration % loop.keeps_every == 0:
            kept.append(states[-1] if loop.keeps is None else results[loop.keeps % len(results)])
        if iteration in loop.reads_at:
            way.read(states[-1])
        way.look(states[-1])
    return [*kept, *states]


def _uploads(loop: Drawn, way: Way, dtype: str) -> Callable[[int], list[Any]]:
    """Returns a function that returns the uploaded arrays that an iteration takes."""
    arrays = [each.astype(dtype) for each in _UPLOADED]
    if loop.uploads is Uploads.NONE:
        return lambda _: []
    if loop.uploads is Uploads.NEW:
        return lambda iteration: [way.upload(arrays[iteration % len(arrays)])]
    uploaded = [way.upload(each) for each in arrays[:3]]
    return lambda iteration: [uploaded[iteration % len(uploaded)]]


def _results(loop: Drawn, xp: Any, known: Sequence[Any], iteration: int) -> list[Any] | None:
    """Returns the results of the ops of one iteration, or None if the loop ends within it."""
    found = [*known]
    for number, step in enumerate(loop.steps):
        if (iteration, number) == loop.breaks_at:
            return None
        found.append(result_of(step, xp, found, iteration))
    return found[len(known) :]


def result_of(step: Step, xp: Any, known: Sequence[Any], iteration: int) -> Any:
    """Returns the result of an op. It has the shape of a row if all that is known has."""
    left, right = known[step.left % len(known)], known[-1 - step.right % len(known)]
    return _OPS[step.name](xp, left, right, iteration)


def _next_state(loop: Drawn, xp: Any, states: Sequence[Any], result: Any) -> Any:
    following = result + states[0] * 0  # of the shape of the states
    for _ in range(loop.inner_iterations):
        following = xp.maximum(following - states[1], following * -2)
    return following


def _times_a_fraction(_xp: Any, a: Any, _b: Any, iteration: int) -> Any:
    """Integers have no fractions; they are shifted."""
    return a * 0.5 ** (iteration % 6) if "float" in str(a.dtype) else a + iteration % 6


_OPS: dict[str, Callable[[Any, Any, Any, int], Any]] = {
    "add": lambda xp, a, b, iteration: a + b,
    "subtract": lambda xp, a, b, iteration: a - b,
    "maximum": lambda xp, a, b, iteration: xp.maximum(a, b),
    "an equal factor": lambda xp, a, b, iteration: a * 3,
    "a number that grows": lambda xp, a, b, iteration: a + iteration * 5,
    "a factor that repeats": lambda xp, a, b, iteration: a * _FACTORS[iteration % len(_FACTORS)],
    "a fraction that shrinks": _times_a_fraction,
    "a sum": lambda xp, a, b, iteration: a.sum(axis=1, keepdims=True) - b,
    "two products": lambda xp, a, b, iteration: a @ (b.T @ b),
    "a window": lambda xp, a, b, iteration: a + b[:, iteration % 2 : iteration % 2 + 1],
}
