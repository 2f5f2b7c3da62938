"""Learns to swing pendulums up by soft actor-critic.

Source: T. Haarnoja et al., Soft actor-critic algorithms and applications (2018), here with a constant temperature. The
pendulum is that of gymnasium's Pendulum-v1.
"""

from __future__ import annotations

import copy
import math
import sys

import torch
from torch import nn
from torch.nn import functional

import fusewire.torch

COUNT, EPISODE, CAPACITY, BATCH, HIDDEN = 16, 200, 16_384, 128, 64
RATE, DISCOUNT, TEMPERATURE, FOLLOWED = 2e-3, 0.97, 0.1, 0.01
BETAS = 0.9, 0.99
KEPT = (3, 1, 3, 1)  # widths of what is kept of a move: the state, the action, the state after it and the reward


def start() -> torch.Tensor:
    """Returns drawn states (n, 3): cosine and sine of the angle from above, and the turning speed."""
    angle, speed = math.pi * (2 * torch.rand(COUNT) - 1), 2 * torch.rand(COUNT) - 1
    return torch.stack([angle.cos(), angle.sin(), speed], 1)


def swung(state: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the states (n, 3) a twentieth of a second after actions (n, 1) from -1 to 1, and the rewards (n, 1)."""
    cosine, sine, speed = state.split(1, 1)
    angle, torque = torch.atan2(sine, cosine), 2 * action
    reward = -(angle.square() + 0.1 * speed.square() + 0.001 * torque.square())
    speed = (speed + 0.05 * (15 * sine + 3 * torque)).clamp(-8, 8)
    angle = angle + 0.05 * speed
    return torch.cat([angle.cos(), angle.sin(), speed], 1), reward


def layers(inputs: int, outputs: int) -> nn.Module:
    hidden = (nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
    return nn.Sequential(*hidden, nn.Linear(HIDDEN, outputs))


class Critic(nn.Module):
    """Two values (n, 1) each of actions (n, 1) in states (n, 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = layers(4, 1), layers(4, 1)

    def forward(self, state: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.cat([state, action], 1)
        return self.first(both), self.second(both)


def chosen(actor: nn.Module, state: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns actions (n, 1) by normal noise (n, 1), and the logarithms of their likelihoods."""
    mean, log_width = actor(state).chunk(2, 1)
    log_width = log_width.clamp(-5, 2)
    raw = mean + log_width.exp() * noise
    normal = -0.5 * noise.square() - log_width - 0.5 * math.log(2 * math.pi)
    return torch.tanh(raw), normal - 2 * (math.log(2) - raw - functional.softplus(-2 * raw))


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(device: str, steps: int = 1000, *, captured: bool = False) -> tuple[nn.Module, list[float], list[float]]:
    """Returns the actor, and for each step the critic's loss and the mean reward.

    If `captured`, a move of all pendulums is one message, and what is learnt after it is another one.
    """
    torch.manual_seed(0)  # weights and noise are drawn on the CPU, so they are the same on each device
    actor, critic = layers(3, 2).to(device), Critic().to(device)
    slow_critic = copy.deepcopy(critic)
    # With `capturable`, Adam counts its steps on the device, as a captured step needs it. The CPU does not take it.
    of_actor, of_critic = (
        torch.optim.Adam(net.parameters(), lr=RATE, betas=BETAS, capturable=device != "cpu") for net in (actor, critic)
    )
    memory = torch.zeros(CAPACITY, sum(KEPT), device=device)

    def move(state: torch.Tensor, noise: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            action, _ = chosen(actor, state, noise)
            after, reward = swung(state, action)
            memory[places] = torch.cat([state, action, after, reward], 1)
            return after, reward.mean()

    def learn(places: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        state, action, after, reward = memory[places].split(KEPT, 1)
        with torch.no_grad():
            action_after, likelihood = chosen(actor, after, noise[0])
            worth = torch.minimum(*slow_critic(after, action_after)) - TEMPERATURE * likelihood
            goal = reward + DISCOUNT * worth
        first, second = critic(state, action)
        loss = functional.mse_loss(first, goal) + functional.mse_loss(second, goal)
        descend(of_critic, loss)
        action, likelihood = chosen(actor, state, noise[1])
        descend(of_actor, (TEMPERATURE * likelihood - torch.minimum(*critic(state, action))).mean())
        with torch.no_grad():
            for slow, fast in zip(slow_critic.parameters(), critic.parameters(), strict=True):
                slow.lerp_(fast, FOLLOWED)
        return loss.detach()

    if captured:
        move, learn = fusewire.torch.step(move), fusewire.torch.step(learn)
    losses, rewards = [], []
    for step in range(steps):
        if step % EPISODE == 0:
            state = start().to(device)
        first = step * COUNT % CAPACITY
        state, reward = move(state, torch.randn(COUNT, 1).to(device), torch.arange(first, first + COUNT).to(device))
        known = torch.randint(min((step + 1) * COUNT, CAPACITY), (BATCH,))
        losses.append(learn(known.to(device), torch.randn(2, BATCH, 1).to(device)))
        rewards.append(reward)
    return actor, [loss.item() for loss in losses], [reward.item() for reward in rewards]


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "fusewire"
    _, losses, rewards = train(device, captured="captured" in sys.argv)
    episodes = [sum(rewards[at : at + EPISODE]) / EPISODE for at in range(0, len(rewards), EPISODE)]
    print("mean reward of a step by episode:", *[f"{each:.2f}" for each in episodes])
