"""Drawn nests of loops: a loop whose body is recorded once, in a loop of Python, and another one in its body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.drawn_loops import ROWS, STATES, Look, Step, drawn_steps, nothing, result_of

Body = Callable[[Any, Any], Any]
Repeat = Callable[[int, Body, Any], Any]


class Nest(NamedTuple):
    """A loop of Python. Each of its turns repeats a body, and then computes further ops.

    The body knows the states, the row that its index chooses, and the index. As often as `repeats` says, it computes
    its steps and chooses the next states among what it then knows.
    """

    steps: tuple[Step, ...]
    repeats: int
    chosen: tuple[int, ...]
    iterations: int  # of the body in each turn
    between: tuple[Step, ...]  # the further ops
    turns: int
    reads_at: frozenset[int]  # the turns in which the client reads a state behind the body's last iteration


def drawn_nests(most_iterations: int) -> st.SearchStrategy[Nest]:
    return st.builds(
        Nest,
        drawn_steps(least=1),
        st.sampled_from([1, 1, 1, 2, 12]),
        st.tuples(*[st.integers(0, 10)] * STATES),
        st.integers(1, most_iterations),
        drawn_steps(least=0),
        st.integers(1, 4),
        st.frozensets(st.integers(0, 3), max_size=3),
    )


def run_nest(nest: Nest, xp: Any, repeat: Repeat, arrays: Sequence[Any], read: Look = nothing) -> list[Any]:
    """Runs a nest on what `drawn_loops.data` gives. `repeat` runs a body. Returns the last states."""
    rows, *states = arrays
    for turn in range(nest.turns):
        states = [*repeat(nest.iterations, _body(nest, xp, rows, turn), tuple(states))]
        if turn in nest.reads_at:
            read(states[-1])
        states = _computed(nest.between, xp, states, turn)[-STATES:]
    return states


def in_python(iterations: int, body: Body, carry: Any, *, index: Callable[[int], Any], look: Look = nothing) -> Any:
    """Calls a body again and again. `index` makes its index of a number. The last carried value is shown to `look`."""
    for iteration in range(iterations):
        carry = body(index(iteration), carry)
        look(carry[-1])
    return carry


in_numpy = partial(in_python, index=np.int64)


def _body(nest: Nest, xp: Any, rows: Any, turn: int) -> Body:
    dtype = str(rows.dtype).removeprefix("fusewire.")

    def body(index: Any, states: Any) -> Any:
        row = xp.take(rows, index % ROWS, axis=0).reshape((1, rows.shape[1]))
        number = row * 0 + index.astype(dtype)
        for _ in range(nest.repeats):
            known = _computed(nest.steps, xp, [*states, row, number], turn)
            states = [known[-1 - choice % len(known)] for choice in nest.chosen]
        return tuple(states)

    return body


def _computed(steps: Sequence[Step], xp: Any, known: Sequence[Any], turn: int) -> list[Any]:
    """Returns what is known, and then the result of each step."""
    found = [*known]
    for step in steps:
        found.append(result_of(step, xp, found, turn))
    return found
