"""Numerical methods and graphs."""

from __future__ import annotations

from typing import Any

import numpy

from tests.programs.data import Upload, drawn


def mandelbrot(np: Any, upload: Upload) -> list[Any]:
    y, x = np.mgrid[-1.5:1.5:40j, -2:1:60j]
    zr = np.zeros_like(x)
    zi = np.zeros_like(x)
    n = np.zeros(x.shape, dtype=int)
    for i in range(30):
        zr, zi = (zr * zr - zi * zi + x, 2 * zr * zi + y)
        m = zr * zr + zi * zi < 4
        n[m] += 1
        zr = np.clip(zr, -1000.0, 1000.0)
        zi = np.clip(zi, -1000.0, 1000.0)
    return [n]


def pagerank(np: Any, upload: Upload) -> list[Any]:
    M = upload((drawn(10).random((30, 30)) < 0.2).astype(float))
    M = M + np.eye(30)
    M /= M.sum(axis=0)
    v = np.ones(30) / 30
    while True:
        n = 0.85 * M @ v + 0.15 / 30
        if np.abs(n - v).sum() < 1e-10:
            break
        v = n
    return [v, np.argsort(-v)[:5]]


def shortest_paths(np: Any, upload: Upload) -> list[Any]:
    D = upload(drawn(11).integers(1, 20, (15, 15)).astype(float))
    np.fill_diagonal(D, 0)
    for k in range(15):
        D = np.minimum(D, D[:, k][:, None] + D[k, :][None, :])
    return [D]


def gram_schmidt(np: Any, upload: Upload) -> list[Any]:
    A = upload(drawn(23).normal(size=(6, 4)))
    Q = np.zeros_like(A)
    for j in range(4):
        v = A[:, j].copy()
        for i in range(j):
            v -= np.dot(Q[:, i], A[:, j]) * Q[:, i]
        Q[:, j] = v / np.sqrt(v @ v)
    return [np.abs(Q.T @ Q - np.eye(4)).max() < 1e-10, Q]


def conjugate_gradients(np: Any, upload: Upload) -> list[Any]:
    M = drawn(24).normal(size=(12, 12))
    A = upload(M @ M.T + 12 * numpy.eye(12))
    b = upload(drawn(25).normal(size=12))
    x = np.zeros(12)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(30):
        Ap = A @ p
        al = rs / (p @ Ap)
        x += al * p
        r -= al * Ap
        rn = r @ r
        if np.sqrt(rn) < 1e-10:
            break
        p = r + rn / rs * p
        rs = rn
    return [x]


def jacobi(np: Any, upload: Upload) -> list[Any]:
    M = drawn(38).random((6, 6)) + 6 * numpy.eye(6)
    A = upload(M)
    b = upload(drawn(39).random(6))
    D = np.diag(A)
    R = A - np.diagflat(D)
    x = np.zeros_like(b)
    for _ in range(50):
        x = (b - R @ x) / D
    return [x]


def greatest_eigenvalue(np: Any, upload: Upload) -> list[Any]:
    M = drawn(26).normal(size=(10, 10))
    A = upload(M + M.T + 20 * numpy.eye(10))
    v = np.ones(10)
    for _ in range(60):
        v = A @ v
        v /= np.sqrt(np.sum(v**2))
    return [v @ A @ v]


def fourier_by_sums(np: Any, upload: Upload) -> list[Any]:
    x = upload(drawn(31).normal(size=32))
    n = np.arange(32)
    k = n.reshape(-1, 1)
    re = np.cos(2 * np.pi * k * n / 32) @ x
    im = -np.sin(2 * np.pi * k * n / 32) @ x
    return [np.sqrt(re**2 + im**2)]


def sparse_product(np: Any, upload: Upload) -> list[Any]:
    r = drawn(32)
    i = upload(r.integers(0, 10, 40))
    j = upload(r.integers(0, 8, 40))
    v = upload(r.random(40))
    x = upload(r.random(8))
    y = np.zeros(10)
    np.add.at(y, i, v * x[j])
    return [y]


def polynomials(np: Any, upload: Upload) -> list[Any]:
    x = upload(numpy.linspace(0, 1, 10))
    V = np.vander(x, 3)
    return [V, np.polyval([1, 2, 3], x), np.interp(0.35, x, x**2)]


def edit_distance(np: Any, upload: Upload) -> list[Any]:
    a = numpy.frombuffer(b"kitten", numpy.uint8)
    b = upload(numpy.frombuffer(b"sitting", numpy.uint8).astype(int))
    prev = np.arange(len(b) + 1)
    for i, ca in enumerate(a):
        cur = [i + 1]
        sub = prev[:-1] + (b != int(ca))
        for j in range(len(b)):
            cur.append(min(int(prev[j + 1]) + 1, cur[-1] + 1, int(sub[j])))
        prev = np.array(cur)
    return [prev[-1]]


def heat_on_a_torus(np: Any, upload: Upload) -> list[Any]:
    u = upload(drawn(16).standard_normal((16, 12)))
    kx, ky = np.meshgrid(np.fft.fftfreq(16), np.fft.fftfreq(12), indexing="ij")
    decay = np.exp(-0.1 * (2 * np.pi) ** 2 * (kx**2 + ky**2))
    spectrum = np.fft.fft2(u)
    for _ in range(20):
        spectrum = spectrum * decay
    return [np.fft.ifft2(spectrum).real, np.fft.fftshift(np.abs(spectrum))]


def long_convolution(np: Any, upload: Upload) -> list[Any]:
    x, h = upload(drawn(17).standard_normal(100)), upload(np.hanning(9))
    n = len(x) + len(h) - 1
    product = np.fft.rfft(x, n) * np.fft.rfft(h, n)
    phases = np.angle(product * np.exp(0.5j))
    return [np.fft.irfft(product, n), np.convolve(x, h), np.cos(phases)]
