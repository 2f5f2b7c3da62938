"""Runs and times loops in JAX, in a process of its own: a compiled step called again and again, and a compiled loop.

Matrix products of float32 do not use TF32. JAX takes memory only as it needs it, because other processes share the GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from loadtests.measuring.errors import NotMeasured
from loadtests.measuring.timing import elapsed_ns
from loadtests.measuring.workers import answer_commands
from loadtests.peers.library_process import commands_of, imported
from loadtests.workloads.loops import Floats, Functions, Loop

_PREALLOCATION = "XLA_PYTHON_CLIENT_PREALLOCATE"


def serve(connection: Connection, loops: Mapping[str, Loop]) -> None:
    """Answers the commands `jitted`, `jitted_ns`, `whole` and `whole_ns`, each with the arguments LOOP STEPS."""
    os.environ[_PREALLOCATION] = "false"  # JAX reads it when it is imported
    commands = commands_of(lambda: JaxLoops(_jax_on_gpu(), loops), "jitted", "jitted_ns", "whole", "whole_ns")
    answer_commands(connection, commands)


def _jax_on_gpu() -> Any:
    """Returns JAX. Raises NotMeasured if it is not installed or does not use a GPU."""
    jax = imported("jax")
    if jax.default_backend() != "gpu":
        raise NotMeasured(f"jax uses no GPU here, but {jax.default_backend()}")
    return jax


class JaxLoops:
    """Loops on operands on JAX's default device."""

    def __init__(self, jax: Any, loops: Mapping[str, Loop]) -> None:
        jax.config.update("jax_default_matmul_precision", "highest")
        self._jax = jax
        self._loops = loops
        self._operands = {name: [jax.device_put(np.array(each)) for each in loops[name].operands] for name in loops}
        self._compiled: dict[tuple[str, int | None], Callable[..., Any]] = {}

    def jitted(self, name: str, steps: int) -> Floats:
        """Returns the state after so many calls of the compiled step."""
        return np.asarray(self._run_jitted(name, steps))

    def jitted_ns(self, name: str, steps: int) -> int:
        """Returns the time of so many calls of the compiled step, until the host has what the loop reads."""
        return elapsed_ns(lambda: np.asarray(self._loops[name].read(self._run_jitted(name, steps))))

    def whole(self, name: str, steps: int) -> Floats:
        """Returns the state after a `fori_loop` of so many steps, which is compiled as a whole."""
        return np.asarray(self._run_whole(name, steps))

    def whole_ns(self, name: str, steps: int) -> int:
        """Returns the time of a `fori_loop` of so many steps, until the host has what the loop reads."""
        return elapsed_ns(lambda: np.asarray(self._loops[name].read(self._run_whole(name, steps))))

    def _run_jitted(self, name: str, steps: int) -> Any:
        step = self._program(name, None)
        state, *others = self._operands[name]
        for _ in range(steps):
            state = step(state, *others)
        return state

    def _run_whole(self, name: str, steps: int) -> Any:
        return self._program(name, steps)(*self._operands[name])

    def _program(self, name: str, steps: int | None) -> Callable[..., Any]:
        """Returns the compiled loop of so many steps, or for None the compiled step."""
        if (name, steps) not in self._compiled:
            self._compiled[name, steps] = self._jax.jit(self._traced(self._loops[name], steps))
        return self._compiled[name, steps]

    def _traced(self, loop: Loop, steps: int | None) -> Callable[..., Any]:
        jax = self._jax
        functions = _functions(jax)

        def step(state: Any, *others: Any) -> Any:
            return loop.run(type(loop.operands)(state, *others), (None,), functions)

        def whole(state: Any, *others: Any) -> Any:
            return jax.lax.fori_loop(0, steps, lambda _, state: step(state, *others), state)

        return step if steps is None else whole


def _functions(jax: Any) -> Functions:
    return Functions(
        jax.nn.sigmoid,
        jax.numpy.tanh,
        jax.nn.relu,
        jax.numpy.sqrt,
        jax.numpy.concatenate,
        lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"),
    )
