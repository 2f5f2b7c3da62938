"""Statistics, time series and finance."""

from __future__ import annotations

from typing import Any

import numpy

from tests.programs.data import Upload, drawn


def bootstrap(np: Any, upload: Upload) -> list[Any]:
    x = upload(drawn(7).exponential(size=50))
    idx = upload(drawn(8).integers(0, 50, (200, 50)))
    m = x[idx].mean(axis=1)
    lo, hi = np.percentile(m, [2.5, 97.5])
    return [lo, hi, np.std(m, ddof=1)]


def black_scholes(np: Any, upload: Upload) -> list[Any]:
    S = upload(numpy.linspace(80, 120, 41))
    K = 100
    T = 1
    r = 0.05
    s = 0.2
    d1 = (np.log(S / K) + (r + s**2 / 2) * T) / (s * np.sqrt(T))
    d2 = d1 - s * np.sqrt(T)
    N = lambda x: 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return [S * N(d1) - K * np.exp(-r * T) * N(d2)]


def viterbi(np: Any, upload: Upload) -> list[Any]:
    r = drawn(9)
    A = upload(r.dirichlet(numpy.ones(3), 3))
    B = upload(r.dirichlet(numpy.ones(4), 3))
    obs = r.integers(0, 4, 20)
    T = np.log(A)
    d = np.log(B[:, obs[0]]) + np.log(1 / 3)
    back = []
    for o in obs[1:]:
        s = d[:, None] + T
        back.append(s.argmax(0))
        d = s.max(0) + np.log(B[:, o])
    path = [int(d.argmax())]
    for b in reversed(back):
        path.append(int(b[path[-1]]))
    return [np.array(path[::-1]), d.max()]


def moving_averages(np: Any, upload: Upload) -> list[Any]:
    x = upload(drawn(28).random(50))
    c = np.cumsum(np.insert(x, 0, 0))
    ma = (c[5:] - c[:-5]) / 5
    ma2 = np.convolve(x, np.ones(5) / 5, mode="valid")
    return [ma, ma2, np.allclose(ma, ma2)]


def means_of_groups(np: Any, upload: Upload) -> list[Any]:
    r = drawn(29)
    g = upload(r.integers(0, 5, 60))
    v = upload(r.random(60))
    u, inv, cnt = np.unique(g, return_inverse=True, return_counts=True)
    s = np.bincount(inv, weights=v)
    mean = s / cnt
    z = v - mean[inv]
    return [u, mean, z]


def autocorrelation(np: Any, upload: Upload) -> list[Any]:
    x = upload(drawn(30).normal(size=64))
    x = x - x.mean()
    c = np.correlate(x, x, mode="full")[63:]
    return [c / c[0]]


def portfolio(np: Any, upload: Upload) -> list[Any]:
    r = upload(drawn(40).normal(0.001, 0.02, (100, 4)))
    w = np.full(4, 0.25)
    cum = np.cumprod(1 + r @ w)
    dd = 1 - cum / np.maximum.accumulate(cum)
    cov = np.cov(r, rowvar=False)
    return [cum[-1], dd.max(), np.sqrt(w @ cov @ w), np.corrcoef(r.T)]


def run_lengths(np: Any, upload: Upload) -> list[Any]:
    x = upload(numpy.array([1, 1, 2, 2, 2, 3, 1, 1]))
    ch = np.flatnonzero(np.diff(x)) + 1
    st = np.concatenate(([0], ch))
    ln = np.diff(np.append(st, len(x)))
    return [x[st], ln, np.repeat(x[st], ln)]


def calibration(np: Any, upload: Upload) -> list[Any]:
    v = upload(numpy.linspace(0, 5, 30))
    noise = drawn(52).normal(0, 0.01, 30)
    i = 0.3 * v**2 + 1.2 * v + 0.1 + upload(noise)
    coef, cov = np.polyfit(v, i, 2, cov=True)
    fit = np.poly1d(coef)
    left = i - fit(v)
    r2 = 1 - np.sum(left**2) / np.sum((i - i.mean()) ** 2)
    for name, c, s in zip("abc", coef, np.sqrt(np.diag(cov)), strict=True):
        assert f"{name} = {c:.3f} ± {s:.3f}".startswith(name)
    np.testing.assert_allclose(np.polyval(coef, v), fit(v))
    return [coef, cov, r2, fit(2.5), fit.deriv()(1.0), np.double(3) * v, np.array([1, 2], ndmin=2).T]
