"""Each example computes on a server what it computes in NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from examples import (
    conjugate_gradient,
    fft_filter,
    gru,
    kalman,
    kmeans,
    life,
    mandelbrot,
    mlp,
    nbody,
    options,
    pca,
    q_learning,
    regression,
    transformer_block,
)
from fusewire.testing import ServerProcess, serve_subprocess
from tests.patience import HANGS_S

FOLDER = Path(__file__).parent.parent.parent / "examples"
Example = Callable[[Any, Callable[[Any], Any]], Any]  # takes the array module, and what makes its arrays


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serve_subprocess("cpu") as server:
        yield server


@pytest.fixture(scope="module")
def session(server: ServerProcess) -> Iterator[fw.Session]:
    with fw.connect(server.grpc) as session:
        yield session


def _random(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape)


def _descended(xp: Any, a: Callable[[Any], Any]) -> regression.Line:
    x, y = regression.points(500)
    return regression.descended(xp, a(x), a(y), 50)


EXAMPLES: dict[str, Example] = {
    "regression solved": lambda xp, a: regression.solved(xp, *map(a, regression.points(500))),
    "regression descended": _descended,
    "gru": lambda xp, a: gru.states(xp, gru.Cell(*map(a, gru.cell(8, 6))), a(_random(20, 3, 8))),
    "transformer block": lambda xp, a: transformer_block.passed(
        xp, transformer_block.Block(*map(a, transformer_block.block(16))), a(_random(2, 7, 16)), 4
    ),
    "k-means": lambda xp, a: kmeans.centres_of(xp, a(kmeans.blobs(4, 50)), a(kmeans.blobs(4, 50)[::50])),
    "pca": lambda xp, a: pca.components(xp, a(pca.cloud(300)), 2),
    "mandelbrot": lambda xp, a: mandelbrot.counts(xp, 60, 40, 30),
    "life": lambda xp, a: life.played(xp, a(life.board(12)), 30),
    "kalman": lambda xp, a: kalman.followed(xp, a(kalman.tracks(20, 30)[1])),
    "options by formula": lambda xp, a: options.formula(xp, 100.0, a(np.linspace(80, 120, 5))),
    "options by simulation": lambda xp, a: options.simulated(xp, 100.0, a(np.linspace(80, 120, 5)), a(_random(20_000))),
    "conjugate gradient": lambda xp, a: conjugate_gradient.solved(xp, xp.ones((20, 20)), 40),
    "fft filter": lambda xp, a: fft_filter.filtered(xp, a(fft_filter.signals()[1])),
    "fft filter's notes": lambda xp, a: fft_filter.notes(xp, a(fft_filter.signals()[1]), 3),
    "n-body": lambda xp, a: nbody.moved(xp, nbody.Bodies(*map(a, nbody.cluster(30))), 20),
    "q-learning": lambda xp, a: q_learning.learnt(xp, a(q_learning.successors()), *map(a, q_learning.draws(300, 4))),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_equal_to_its_twin_in_numpy(name: str, session: fw.Session) -> None:
    expected, found = EXAMPLES[name](np, np.asarray), EXAMPLES[name](fw, session.array)
    several = isinstance(expected, tuple)
    for wanted, array in zip(expected if several else (expected,), found if several else (found,), strict=True):
        np.testing.assert_allclose(array.numpy(), wanted, rtol=1e-9, atol=1e-12)
        assert array.numpy().dtype == np.asarray(wanted).dtype


def test_a_network_learns_as_by_gradients_written_by_hand(session: fw.Session) -> None:
    points, signs = mlp.spirals(40)
    weights = mlp.Weights(*map(session.array, mlp.start()))
    _, losses = mlp.trained(weights, session.array(points), session.array(signs), 30)
    expected = _losses_by_hand(mlp.start(), points, signs, 30)
    np.testing.assert_allclose([float(each) for each in losses], expected, rtol=1e-9)
    assert expected[-1] < expected[0]


def _losses_by_hand(weights: mlp.Weights, points: Any, signs: Any, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        hidden = np.tanh(points @ weights.first + weights.bias)
        margin = signs * (hidden @ weights.second + weights.offset)
        losses.append(float(np.logaddexp(0, -margin).mean()))
        outer = -signs / (1 + np.exp(margin)) / len(signs)
        inner = outer[:, None] * weights.second * (1 - hidden**2)
        slopes = (points.T @ inner, inner.sum(axis=0), hidden.T @ outer, outer.sum())
        weights = mlp.Weights(*[each - mlp.RATE * down for each, down in zip(weights, slopes, strict=True)])
    return losses


def test_the_networks_find_what_they_look_for() -> None:
    points, signs = mlp.spirals(40)
    assert _losses_by_hand(mlp.start(), points, signs, 3000)[-1] < 0.3
    line = regression.solved(np, *regression.points(10_000))
    assert abs(line.slope - regression.SLOPE) < 0.01
    tables = q_learning.learnt(np, q_learning.successors(), *q_learning.draws(15_000, 2))
    assert all(q_learning.walk(table) < 25 for table in tables)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_an_example_runs_by_itself(path: Path, server: ServerProcess) -> None:
    command = [sys.executable, "-W", "error", str(path)]
    environment = {**os.environ, "FUSEWIRE_TARGET": server.grpc}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip()
