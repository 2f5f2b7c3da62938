"""Trains a small transformer to write a nursery rhyme, letter by letter.

Source: A. Radford et al., Language models are unsupervised multitask learners (2019), for the order of the layers.
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional

import fusewire.torch

BLOCKS, HEADS, WIDTH, CONTEXT, BATCH, RATE = 2, 4, 64, 32, 16, 3e-3
BETAS = 0.9, 0.95
VERSES = ("lay in the house that", "ate the malt that", "killed the rat that", "worried the cat that")
ANIMALS = ("the malt that", "the rat that", "the cat that", "the dog that")
TEXT = "\n".join(
    "This is " + " ".join([ANIMALS[last], *reversed(VERSES[: last + 1]), "Jack built."]) for last in range(len(VERSES))
)
LETTERS = sorted(set(TEXT))


class Block(nn.Module):
    """Attention to earlier letters, then a network for each letter; both add to their input (batch, length, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_network = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.asked, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.network = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        parts = self.asked(self.before_attention(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.joined(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.network(self.before_network(x))


class Gpt(nn.Module):
    """Scores (batch, length, letters) of the letter that follows each of the letters (batch, length)."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(BLOCKS)], nn.LayerNorm(WIDTH))
        self.scores = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        x = self.letters(letters) + self.places.weight[: letters.shape[1]]
        return self.scores(self.blocks(x))


def numbers(device: str) -> torch.Tensor:
    """Returns the text as numbers of letters."""
    return torch.tensor([LETTERS.index(letter) for letter in TEXT]).to(device)


def train(device: str, steps: int = 300, *, captured: bool = False) -> tuple[Gpt, list[float]]:
    """Returns the network, and the loss of each step. If `captured`, a whole step is one message."""
    torch.manual_seed(0)  # weights are drawn on the CPU, so they are the same on each device
    net = Gpt().to(device)
    # With `capturable`, AdamW counts its steps on the device, as a captured step needs it. The CPU does not take it.
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, betas=BETAS, capturable=device != "cpu")
    pieces = numbers(device).unfold(0, CONTEXT + 1, 1).contiguous()

    def step(chosen: torch.Tensor) -> torch.Tensor:
        piece = pieces[chosen]
        loss = functional.cross_entropy(net(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    if captured:
        step = fusewire.torch.step(step)
    losses = [step(torch.randint(len(pieces), (BATCH,)).to(device)) for _ in range(steps)]
    return net, [loss.item() for loss in losses]


def written(net: Gpt, device: str, length: int = 100) -> str:
    """Returns the beginning of the text, and what the network writes after it."""
    last = numbers(device)[None, :CONTEXT]
    found = []
    with torch.no_grad():
        for _ in range(length):
            found.append(net(last)[:, -1:].argmax(2))
            last = torch.cat([last[:, 1:], found[-1]], 1)
    return TEXT[:CONTEXT] + "".join(LETTERS[number] for number in torch.cat(found, 1)[0].tolist())


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "fusewire"
    net, losses = train(device, captured="captured" in sys.argv)
    print(f"loss {losses[0]:.3f} → {losses[-1]:.3f}")
    print(written(net, device))
