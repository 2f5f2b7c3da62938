"""The workers of `ppo` follow the gradient of their objective, and learn."""

from __future__ import annotations

import numpy as np
import pytest

from loadtests.scenarios import library
from loadtests.scenarios.agents import ppo
from loadtests.scenarios.scenario import Data, Floats

_STEP = 1e-6


def objective(weights: ppo.Weights, seen: ppo.Seen) -> float:
    """What a training minimises: the clipped objective of the policy, less, and the error of its values."""
    _, scores, values = ppo.outputs_of(library.numpy(), weights, seen.senses)
    chances = (seen.chosen * scores).sum(1, keepdims=True) - np.log(np.exp(scores).sum(1, keepdims=True))
    ratio = np.exp(chances - seen.chances)
    clipped = np.clip(ratio, 1 - ppo._CLIP, 1 + ppo._CLIP)
    followed = np.minimum(ratio * seen.advantages, clipped * seen.advantages).mean()
    return float(-followed + 0.5 * ((values - seen.returns) ** 2).mean())


def drawn() -> tuple[ppo.Weights, ppo.Seen]:
    random = np.random.default_rng(0)
    shapes = ((ppo._SENSES, ppo._WIDTH), (ppo._WIDTH, ppo._ACTIONS), (ppo._WIDTH, 1))
    weights = ppo.Weights(*[random.standard_normal(shape) / 4 for shape in shapes])
    chosen = np.eye(ppo._ACTIONS)[random.integers(0, ppo._ACTIONS, 40)]
    seen = (random.standard_normal((40, ppo._SENSES)), chosen, np.log(random.uniform(0.1, 0.5, (40, 1))))
    return weights, ppo.Seen(*seen, random.standard_normal((40, 1)), random.standard_normal((40, 1)))


def test_a_training_follows_the_gradient_of_the_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ppo, "_EPOCHS", 1)
    weights, seen = drawn()
    after = ppo.trained(library.numpy(), weights, seen)
    for number, (old, new) in enumerate(zip(weights, after, strict=True)):
        for place in ((0, 0), (3, 0), (old.shape[0] - 1, old.shape[1] - 1)):
            moved = []
            for step in (-_STEP, _STEP):
                changed = [each.copy() for each in weights]
                changed[number][place] += step
                moved.append(objective(ppo.Weights(*changed), seen))
            slope = (moved[1] - moved[0]) / (2 * _STEP)
            np.testing.assert_allclose((old[place] - new[place]) / ppo._RATE, slope, rtol=1e-4, atol=1e-8)


def test_a_worker_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    rewards: list[float] = []
    act = ppo.Worlds.act

    def noting(worlds: ppo.Worlds, actions: ppo.Numbers) -> Floats:
        rewards.append(float((given := act(worlds, actions)).mean()))
        return given

    monkeypatch.setattr(ppo.Worlds, "act", noting)
    xp = library.numpy()
    steps, value = ppo.SCENARIO.program(xp, Data(0, 0)), None
    for _ in range(150 * ppo._ROLLOUT):
        value = steps.send(value)
    per_rollout = np.reshape(rewards[: 149 * ppo._ROLLOUT], (-1, ppo._ROLLOUT)).mean(1)
    assert per_rollout[-20:].mean() > per_rollout[:20].mean() + 0.01
