"""Small programs that train as people write it, each on a device and with seeds: they return what they have seen."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import distributions, nn
from torch.nn import functional as f
from torch.nn.utils import rnn

Program = Callable[[str], list[float]]


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Returns the same normal numbers for all devices."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def adversaries(device: str) -> list[float]:
    """A generator against a critic with spectral norms and a penalty on its gradient, which is derived again."""
    maker = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.BatchNorm1d(8), nn.Linear(8, 2)).to(device)
    first = nn.utils.parametrizations.spectral_norm(nn.Linear(2, 8))
    critic = nn.Sequential(first, nn.LeakyReLU(0.2), nn.Linear(8, 1)).to(device)
    of_maker = torch.optim.Adam(maker.parameters(), 0.01, betas=(0.5, 0.9))
    of_critic = torch.optim.RMSprop(critic.parameters(), 0.01)
    seen = []
    for step in range(3):
        real, noise = (normal(16, 2, seed=seed).to(device) for seed in (step, 100 + step))
        made = maker(noise)
        share = normal(16, 1, seed=200 + step).sigmoid().to(device)
        between = (share * real + (1 - share) * made.detach()).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        loss = f.softplus(-critic(real)).mean() + f.softplus(critic(made.detach())).mean()
        loss = loss + 0.1 * ((slope.norm(2, dim=1) - 1) ** 2).mean()
        _descend(of_critic, loss)
        of_making = f.softplus(-critic(maker(noise))).mean()
        _descend(of_maker, of_making)
        seen += [loss.item(), of_making.item()]
    return seen


def sequences_of_several_lengths(device: str) -> list[float]:
    """Packed sequences through a bidirectional network, and a packed list of them through another."""
    embedding, lengths = nn.Embedding(11, 6, padding_idx=0).to(device), torch.tensor([3, 7, 5, 1])
    gated = nn.GRU(6, 5, num_layers=2, bidirectional=True, batch_first=True).to(device)
    projected, head = nn.LSTM(6, 5, proj_size=3).to(device), nn.Linear(10, 2).to(device)
    words = [(torch.arange(1, length + 1) % 10 + 1).to(device) for length in lengths.tolist()]
    layers = nn.ModuleList([embedding, gated, projected, head])
    optimizer, seen = torch.optim.Adagrad(layers.parameters(), 0.1), []
    for _ in range(3):
        padded = embedding(rnn.pad_sequence(words, batch_first=True))
        packed, final = gated(rnn.pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False))
        states, _ = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0)
        last = states[torch.arange(4, device=device), (lengths - 1).to(device)]
        listed, _ = projected(rnn.pack_sequence([embedding(each) for each in words], enforce_sorted=False))
        parts = rnn.unpad_sequence(*rnn.pad_packed_sequence(listed))
        loss = f.cross_entropy(head(last), torch.tensor([0, 1, 1, 0], device=device)) + final.square().mean()
        loss = loss + sum(part.mean() for part in parts)
        _descend(optimizer, loss)
        seen.append(loss.item())
    return seen


def gradients_of_each_sample(device: str) -> list[float]:
    """Gradients and derivatives of a net by `torch.func`, and gradients through steps that were learnt by."""
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    parameters = {name: each.detach() for name, each in net.named_parameters()}
    points, classes = normal(6, 4).to(device), (torch.arange(6) % 2).to(device)

    def loss(given: Any, point: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return f.cross_entropy(torch.func.functional_call(net, given, (point[None],)), label[None])

    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, points, classes)
    norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in each.values()]).norm(dim=0)
    curved = torch.func.hessian(lambda x: torch.func.functional_call(net, parameters, (x[None],)).sum())(points[0])
    learnt = {name: each.requires_grad_() for name, each in parameters.items()}
    for _ in range(2):
        slopes = torch.autograd.grad(loss(learnt, points[0], classes[0]), [*learnt.values()], create_graph=True)
        learnt = {name: x - 0.1 * slope for (name, x), slope in zip(learnt.items(), slopes, strict=True)}
    loss(learnt, points[1], classes[1]).backward()
    after = [x.grad.sum().item() for x in parameters.values() if x.grad is not None]
    return [*norms.tolist(), *curved.flatten().tolist(), *after]


def stopping_early(device: str) -> list[float]:
    """Stops when the validation gets worse, and goes on from the best state, which was saved."""
    net = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), 0.05, amsgrad=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    x, y = normal(32, 4).to(device), normal(32, 1, seed=4).to(device)
    seen, least, best = [], math.inf, io.BytesIO()
    parts = {"net": net, "optimizer": optimizer, "scheduler": scheduler}
    for _ in range(12):
        _descend(optimizer, f.l1_loss(net(x[:24]), y[:24]))
        with torch.no_grad():
            seen.append(f.l1_loss(net(x[24:]), y[24:]).item())
        scheduler.step(seen[-1])
        if seen[-1] < least:
            least, best = seen[-1], io.BytesIO()
            torch.save({name: part.state_dict() for name, part in parts.items()}, best)
    best.seek(0)
    for name, state in torch.load(best, weights_only=True).items():
        parts[name].load_state_dict(state)
    seen.append(f.l1_loss(net(x[24:]), y[24:]).item())
    _descend(optimizer, f.l1_loss(net(x[:24]), y[:24]))
    return [*seen, f.l1_loss(net(x[24:]), y[24:]).item()]


def actor_and_critic(device: str) -> list[float]:
    """A policy of three actions and a value of each state, with clipped ratios."""
    body, policy, value = nn.Linear(4, 16).to(device), nn.Linear(16, 3).to(device), nn.Linear(16, 1).to(device)
    groups = [{"params": policy.parameters(), "lr": 5e-3}, {"params": [*body.parameters(), *value.parameters()]}]
    optimizer, seen, states = torch.optim.AdamW(groups, lr=0.01), [], normal(5, 4).to(device)
    for step in range(3):
        hidden = body(states).tanh()
        acts, actions = distributions.Categorical(logits=policy(hidden)), (torch.arange(5, device=device) + step) % 3
        returns, values = (actions == 1).float(), value(hidden).squeeze(-1)
        advantage = returns - values.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-5)
        chance = acts.log_prob(actions)
        ratio = (chance - chance.detach()).exp()
        loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        loss = loss + 0.5 * f.smooth_l1_loss(values, returns) - 0.01 * acts.entropy().mean()
        _descend(optimizer, loss)
        seen.append(loss.item())
        states = states.roll(1, 0) * 0.9
    return seen


def _descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


PROGRAMS: list[Program] = [
    adversaries,
    sequences_of_several_lengths,
    gradients_of_each_sample,
    stopping_early,
    actor_and_critic,
]
