"""Through a real server: gradients in loops and functions, and of loops, are those of NumPy's formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import fusewire as fw
from tests.contract.service import Service
from tests.patience import HANGS_S

_STEPS, _WIDTH = 40, 8
_RANDOM = np.random.default_rng(0)
_INPUTS = _RANDOM.standard_normal((_STEPS, _WIDTH))
_WEIGHTS = _RANDOM.standard_normal((_WIDTH, _WIDTH)) / _WIDTH

Values = npt.NDArray[np.float64]


def _recurrent(weights: Any, inputs: Any) -> Any:
    start = fw.zeros(_WIDTH)
    return fw.fori_loop(_STEPS, lambda i, h: fw.tanh(h @ weights + inputs[i]), start).sum()


def _by_formula() -> tuple[Values, Values]:
    states = [np.zeros(_WIDTH)]
    for row in _INPUTS:
        states.append(np.tanh(states[-1] @ _WEIGHTS + row))
    cotangent, by_weights, by_inputs = np.ones(_WIDTH), np.zeros_like(_WEIGHTS), np.zeros_like(_INPUTS)
    for step in reversed(range(_STEPS)):
        by_inputs[step] = cotangent * (1 - states[step + 1] ** 2)
        by_weights += np.outer(states[step], by_inputs[step])
        cotangent = _WEIGHTS @ by_inputs[step]
    return by_weights, by_inputs


def test_a_loop_is_differentiated(service: Service) -> None:
    with service.connect() as session:
        for _ in range(3):  # op by op at first, and by plans
            found = fw.grad(_recurrent, (0, 1))(session.array(_WEIGHTS), session.array(_INPUTS))
            for gradient, expected in zip(found, _by_formula(), strict=True):
                np.testing.assert_allclose(gradient.numpy(timeout=HANGS_S), expected, rtol=1e-9, atol=1e-12)


def test_a_loop_trains(service: Service) -> None:
    """A gradient in the body of a loop, and in a function that is recorded once, descends as NumPy's does."""
    goal = _INPUTS[:, :1]
    expected = np.zeros((_WIDTH, 1))
    for _ in range(_STEPS):
        expected -= 0.01 * 2 * _INPUTS.T @ (_INPUTS @ expected - goal)

    def loss(weights: Any, inputs: Any, goal: Any) -> Any:
        return ((inputs @ weights - goal) ** 2).sum()

    def step(weights: Any, inputs: Any, goal: Any) -> Any:
        return weights - 0.01 * fw.grad(loss)(weights, inputs, goal)

    with service.connect() as session:
        inputs, goals = session.array(_INPUTS), session.array(goal)
        looped = fw.fori_loop(_STEPS, lambda i, w: step(w, inputs, goals), session.array(np.zeros((_WIDTH, 1))))
        called, known = session.array(np.zeros((_WIDTH, 1))), fw.function(step)
        for _ in range(_STEPS):
            called = known(called, inputs, goals)
        for found in (looped, called):
            np.testing.assert_allclose(found.numpy(timeout=HANGS_S), expected, rtol=1e-9, atol=1e-12)
