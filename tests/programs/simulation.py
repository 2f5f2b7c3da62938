"""Programs that follow something through time."""

from __future__ import annotations

from typing import Any

import numpy

from tests.programs.data import Upload, drawn


def game_of_life(np: Any, upload: Upload) -> list[Any]:
    g = upload((drawn(1).random((32, 32)) < 0.3).astype(int))
    for _ in range(20):
        n = sum(np.roll(np.roll(g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        g = ((n == 3) | (g == 1) & (n == 2)).astype(int)
    return [g, g.sum()]


def nbody(np: Any, upload: Upload) -> list[Any]:
    r = drawn(5)
    pos = upload(r.normal(size=(20, 3)))
    vel = np.zeros((20, 3))
    mass = upload(r.random(20))
    for _ in range(20):
        d = pos[None] - pos[:, None]
        r2 = (d**2).sum(-1) + 0.01
        acc = (d * (mass[None, :, None] / r2[..., None] ** 1.5)).sum(1)
        vel += acc * 0.01
        pos += vel * 0.01
    return [pos, 0.5 * np.sum(mass * (vel**2).sum(1))]


def heat_equation(np: Any, upload: Upload) -> list[Any]:
    u = np.zeros((30, 30))
    u[0, :] = 100
    u[:, 0] = 50
    for _ in range(100):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return [u, u.max(), u.mean()]


def lorenz_by_runge_kutta(np: Any, upload: Upload) -> list[Any]:

    def f(s):
        x, y, z = s
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    s = upload(numpy.array([1.0, 1.0, 1.0]))
    out = []
    for _ in range(20):
        k1 = f(s)
        k2 = f(s + 0.005 * k1)
        k3 = f(s + 0.005 * k2)
        k4 = f(s + 0.01 * k3)
        s = s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(s)
    return [np.array(out)]


def ising(np: Any, upload: Upload) -> list[Any]:
    r = drawn(37)
    s = upload(r.choice([-1, 1], (16, 16)))
    for t in range(10):
        for par in (0, 1):
            nb = np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)
            i, j = np.indices(s.shape)
            dE = 2 * s * nb
            acc = (upload(r.random((16, 16))) < np.exp(-dE / 2.3)) & ((i + j) % 2 == par)
            s = np.where(acc, -s, s)
    return [s, s.mean()]


def random_walk(np: Any, upload: Upload) -> list[Any]:
    s = upload(drawn(27).choice([-1, 1], (10, 100)))
    w = np.cumsum(s, axis=1)
    hit = np.where(np.any(w > 5, axis=1), np.argmax(w > 5, axis=1), -1)
    return [w[:, -1], hit, w.max(1)]


def simulated_annealing(np: Any, upload: Upload) -> list[Any]:
    r = drawn(41)
    x = upload(r.normal(size=5))
    f = lambda x: (x**2 - 10 * np.cos(2 * np.pi * x) + 10).sum()
    cur = float(f(x))
    for t in range(40):
        n = x + upload(r.normal(size=5) * 0.1)
        e = float(f(n))
        if e < cur or r.random() < numpy.exp((cur - e) / 1.0):
            x, cur = (n, e)
    return [x, cur]


def pi_by_chance(np: Any, upload: Upload) -> list[Any]:
    p = upload(drawn(6).random((10000, 2)))
    inside = np.sqrt((p**2).sum(axis=1)) <= 1
    return [4 * np.count_nonzero(inside) / len(p)]
