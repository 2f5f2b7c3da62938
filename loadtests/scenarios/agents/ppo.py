"""`ppo`: workers of reinforcement learning, each of which acts in eight worlds and trains its own policy.

As in proximal policy optimisation (Schulman et al., 2017), a worker acts for some steps and then trains on what it has
seen, by a clipped ratio of probabilities. The gradients are written out, because no library here computes any.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Floats, Scenario, Steps

_SENSES, _WIDTH, _ACTIONS, _WORLDS = 16, 64, 4, 8
_ROLLOUT = 32  # steps of all worlds between two trainings
_EPOCHS = 4
_RATE = 0.01
_CLIP = 0.2  # how far a ratio may be from 1 before it is no longer followed
_DISCOUNT = 0.95

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]


class Weights(NamedTuple):
    """The weights of a policy: of its layer, of the scores of the actions, and of the value of what is sensed."""

    layer: Any
    scores: Any
    value: Any


class Seen(NamedTuple):
    """What a worker has seen in a rollout, in all worlds: array[steps × worlds][…]."""

    senses: Array
    chosen: Array  # 1 for the chosen action, else 0
    chances: Array  # the logarithm of the probability with which it was chosen
    advantages: Array
    returns: Array


class Worlds:
    """The worlds of a worker, which NumPy simulates. Actions change what is sensed; calm senses are rewarded."""

    def __init__(self, data: Data) -> None:
        self._pushes, self._drift = data.normal(_ACTIONS, _SENSES), data.normal(_SENSES)
        self.senses = data.normal(_WORLDS, _SENSES)

    def act(self, actions: Numbers) -> Floats:
        """Takes an action in each world, and returns the rewards, float32[worlds][1]."""
        self.senses = np.sin(self.senses + self._pushes[actions] + self._drift)
        rewards: Floats = -np.abs(self.senses).mean(axis=1, keepdims=True)
        return rewards


class Rollout:
    """Notes the steps of a rollout."""

    def __init__(self) -> None:
        self._steps: list[tuple[Floats, ...]] = []

    def add(self, senses: Floats, outputs: Floats, actions: Numbers, rewards: Floats) -> None:
        """Notes a step. `outputs` is what the policy said: the scores of the actions, and the value."""
        scores, values = outputs[:, :_ACTIONS], outputs[:, _ACTIONS:]
        chosen = np.eye(_ACTIONS, dtype=np.float32)[actions]
        chances = (chosen * scores).sum(1, keepdims=True) - np.log(np.exp(scores).sum(1, keepdims=True))
        self._steps.append((senses, chosen, chances, rewards, values))

    def seen(self) -> Seen:
        """Returns all steps, with their returns: the rewards that follow, discounted."""
        senses, chosen, chances, rewards, values = map(np.stack, zip(*self._steps, strict=True))
        returns, following = np.empty_like(rewards), np.zeros_like(rewards[0])
        for step in reversed(range(len(rewards))):
            following = returns[step] = rewards[step] + np.float32(_DISCOUNT) * following
        parts = (senses, chosen, chances, returns - values, returns)
        return Seen(*[part.reshape(-1, part.shape[-1]) for part in parts])


def outputs_of(xp: Library, weights: Weights, senses: Any) -> tuple[Any, Any, Any]:
    """Returns the layer, the scores and the values of a policy."""
    layer = xp.tanh(senses @ weights.layer)
    return layer, layer @ weights.scores, layer @ weights.value


def trained(xp: Library, weights: Weights, seen: Seen) -> Weights:
    """Returns the weights after some epochs of gradient descent on a rollout."""
    senses, chosen, chances, advantages, returns = [xp.asarray(part) for part in seen]
    count = len(seen.senses)
    for _ in range(_EPOCHS):
        layer, scores, values = outputs_of(xp, weights, senses)
        odds = xp.exp(scores)
        likely = odds / odds.sum(1)[:, None]
        ratio = xp.exp(xp.log((likely * chosen).sum(1))[:, None] - chances)
        is_followed = ((ratio < 1 + _CLIP) | (advantages < 0)) & ((ratio > 1 - _CLIP) | (advantages > 0))
        by_scores = (likely - chosen) * (ratio * advantages * is_followed / count)
        by_values = (values - returns) / count
        by_layer = (by_scores @ weights.scores.T + by_values @ weights.value.T) * (1 - layer * layer)
        gradients = (senses.T @ by_layer, layer.T @ by_scores, layer.T @ by_values)
        weights = Weights(*[each - _RATE * by for each, by in zip(weights, gradients, strict=True)])
    return weights


def _program(xp: Library, data: Data) -> Steps:
    shapes = ((_SENSES, _WIDTH), (_WIDTH, _ACTIONS), (_WIDTH, 1))
    weights, worlds = Weights(*[xp.asarray(data.weights(*shape)) for shape in shapes]), Worlds(data)
    while True:
        rollout = Rollout()
        for _ in range(_ROLLOUT):
            senses = worlds.senses
            _, scores, values = outputs_of(xp, weights, xp.asarray(senses))
            outputs = yield xp.concat([scores.T, values.T]).T
            actions = (outputs[:, :_ACTIONS] + data.random.gumbel(size=(_WORLDS, _ACTIONS))).argmax(1)
            rollout.add(senses, outputs, actions, worlds.act(actions))
        weights = trained(xp, weights, rollout.seen())


SCENARIO = Scenario(
    name="ppo",
    what=f"uploads what is sensed in {_WORLDS} worlds, reads the actions, and after {_ROLLOUT} steps trains the policy",
    shows="how workers of reinforcement learning share a GPU",
    program=_program,
)
