"""What the peer asks of JAX, with NumPy in its place: this needs neither JAX nor a GPU."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loadtests.peers.jax_loops import JaxLoops
from loadtests.workloads.loops import Loop, check_close, draw_rnn, result_in_numpy, run_rnn

_LOOP = Loop(draw_rnn(2, 8, seed=1), run_rnn)


def _fori_loop(first: int, end: int, body: Callable[[int, Any], Any], state: Any) -> Any:
    for index in range(first, end):
        state = body(index, state)
    return state


class _Jax:
    """NumPy with the names of JAX. `compiled` holds what was compiled, `settings` what was set."""

    nn = SimpleNamespace(sigmoid=lambda x: 1 / (1 + np.exp(-x)), relu=lambda x: np.maximum(x, 0))
    numpy = SimpleNamespace(tanh=np.tanh, sqrt=np.sqrt, concatenate=np.concatenate)
    lax = SimpleNamespace(fori_loop=_fori_loop)

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.config = SimpleNamespace(update=self.settings.__setitem__)
        self.compiled: list[Callable[..., Any]] = []

    def device_put(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array

    def jit(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.compiled.append(function)
        return function


def test_products_are_true_float32() -> None:
    jax = _Jax()
    JaxLoops(jax, {})
    assert jax.settings == {"jax_default_matmul_precision": "highest"}


@pytest.mark.parametrize("command", ["jitted", "whole"])
def test_both_ways_come_to_the_result_of_numpy(command: str) -> None:
    loops = JaxLoops(_Jax(), {"rnn": _LOOP})
    check_close(getattr(loops, command)("rnn", 20), result_in_numpy(_LOOP, 20), command)
    assert getattr(loops, f"{command}_ns")("rnn", 20) > 0


def test_a_step_is_compiled_once_and_a_whole_loop_once_for_each_number_of_steps() -> None:
    jax = _Jax()
    loops = JaxLoops(jax, {"rnn": _LOOP})
    for steps in (3, 4, 4):
        loops.jitted("rnn", steps)
    assert len(jax.compiled) == 1
    for steps in (3, 4, 4):
        loops.whole("rnn", steps)
    assert len(jax.compiled) == 3
