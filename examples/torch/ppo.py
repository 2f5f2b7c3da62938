"""Learns to balance poles on carts by proximal policy optimisation.

`python examples/torch/ppo.py fusewire gym` takes the carts of gymnasium, if it is installed.

Sources: J. Schulman et al., Proximal policy optimization algorithms (2017), and for the carts A. Barto, R. Sutton and
C. Anderson, Neuronlike adaptive elements that can solve difficult learning control problems (1983).
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import fusewire.torch

CARTS, LENGTH, EPOCHS, RATE = 64, 32, 4, 3e-3  # LENGTH: moves of each cart in a round
DISCOUNT, TRACE, CLIP = 0.99, 0.95, 0.2


def moved(state: torch.Tensor, push: torch.Tensor, start: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns states (carts, 4) a fiftieth of a second after pushes to the left (0) or right (1), and who has fallen.

    A state is place, speed, angle and turning speed. Whose pole falls begins anew at `start`.
    """
    _, speed, angle, turning = state.unbind(1)
    sine, cosine = angle.sin(), angle.cos()
    driven = (20 * push - 10 + 0.05 * turning.square() * sine) / 1.1
    turned = (9.8 * sine - cosine * driven) / (0.5 * (4 / 3 - 0.1 * cosine.square() / 1.1))
    changes = torch.stack([speed, driven - 0.05 * turned * cosine / 1.1, turning, turned], 1)
    after = state + 0.02 * changes
    has_fallen = (after[:, 0].abs() > 2.4) | (after[:, 2].abs() > 0.2095)
    return torch.where(has_fallen[:, None], start, after), has_fallen.float()


class Carts:
    """Carts with a `state` on the device."""

    def __init__(self, device: str, *, captured: bool) -> None:
        self.state = self._start(device)
        self._moved = fusewire.torch.step(moved) if captured else moved

    def step(self, push: torch.Tensor) -> torch.Tensor:
        """Pushes the carts (carts,), and returns 1 for those whose pole has fallen."""
        self.state, fallen = self._moved(self.state, push, self._start(str(push.device)))
        return fallen

    def _start(self, device: str) -> torch.Tensor:
        return (0.1 * torch.rand(CARTS, 4) - 0.05).to(device)


class GymnasiumCarts:
    """The same carts of gymnasium, which move on the CPU. Here a pole has fallen after 500 moves too."""

    def __init__(self, device: str) -> None:
        from gymnasium import make_vec, vector  # noqa: PLC0415 - only these carts need it

        begins_anew = {"autoreset_mode": vector.AutoresetMode.SAME_STEP}
        self._carts = make_vec("CartPole-v1", CARTS, vectorization_mode="sync", vector_kwargs=begins_anew)
        self.state = torch.from_numpy(self._carts.reset(seed=0)[0]).to(device)

    def step(self, push: torch.Tensor) -> torch.Tensor:
        state, _, has_fallen, has_ended, _ = self._carts.step(push.cpu().long().numpy())
        self.state = torch.from_numpy(state).to(push.device)
        return torch.from_numpy(has_fallen | has_ended).float().to(push.device)


class Policy(nn.Module):
    """For states (..., 4) the score (...,) of a push to the right, and the value (...,)."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.value = (nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1)) for _ in range(2))

    def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.score(state)[..., 0], self.value(state)[..., 0]


def log_likelihood(score: torch.Tensor, push: torch.Tensor) -> torch.Tensor:
    return -functional.binary_cross_entropy_with_logits(score, push, reduction="none")


def train(
    device: str, rounds: int = 50, *, captured: bool = False, carts: Any = None
) -> tuple[Policy, list[float], list[float]]:
    """Returns the policy, the loss of each update, and of each round the moves for each fall.

    If `captured`, the moves, the choice of pushes, the advantages and each update are one message each.
    """
    torch.manual_seed(0)  # weights and luck are drawn on the CPU, so they are the same on each device
    policy = Policy().to(device)
    carts = carts or Carts(device, captured=captured)
    # With `capturable`, Adam counts its steps on the device, as a captured step needs it. The CPU does not take it.
    optimizer = torch.optim.Adam(policy.parameters(), lr=RATE, capturable=device != "cpu")

    def choose(state: torch.Tensor, luck: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            score, value = policy(state)
            push = (luck < torch.sigmoid(score)).float()
            return push, log_likelihood(score, push), value

    def judge(values: torch.Tensor, fallen: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            later, advantage = policy(state)[1], torch.zeros_like(values[0])
            found: list[torch.Tensor] = []
            for value, fell in zip(values.flip(0), fallen.flip(0), strict=True):
                # Each move is worth 1, and what comes later counts only for poles that have not fallen.
                advantage = 1 + DISCOUNT * (1 - fell) * (later + TRACE * advantage) - value
                later = value
                found.insert(0, advantage)
            return torch.stack(found)

    def update(state: torch.Tensor, push: torch.Tensor, before: torch.Tensor, *judged: torch.Tensor) -> torch.Tensor:
        (value, advantage), (score, new_value) = judged, policy(state)
        ratio = torch.exp(log_likelihood(score, push) - before)
        gain = (advantage - advantage.mean()) / advantage.std()
        loss = -torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
        loss = loss + 0.5 * functional.mse_loss(new_value, value + advantage)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    if captured:
        choose, judge, update = fusewire.torch.step(choose), fusewire.torch.step(judge), fusewire.torch.step(update)
    losses, moves_for_each_fall = [], []
    for _ in range(rounds):
        played = []
        for _ in range(LENGTH):
            state = carts.state
            chosen = choose(state, torch.rand(CARTS).to(device))
            played.append((state, *chosen, carts.step(chosen[0])))
        *seen, fallen = map(torch.stack, zip(*played, strict=True))
        advantage = judge(seen[-1], fallen, carts.state)
        losses += [update(*seen, advantage) for _ in range(EPOCHS)]
        moves_for_each_fall.append(CARTS * LENGTH / fallen.sum().clamp(min=1))
    return policy, [loss.item() for loss in losses], [moves.item() for moves in moves_for_each_fall]


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "fusewire"
    carts = GymnasiumCarts(device) if "gym" in sys.argv else None
    _, losses, moves = train(device, captured="captured" in sys.argv, carts=carts)
    print(f"loss {losses[0]:.3f} → {losses[-1]:.3f}, a pole falls after {moves[0]:.0f} → {moves[-1]:.0f} moves")
