"""Programs that learn from data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy

from tests.programs.data import Upload, drawn


def kmeans(np: Any, upload: Upload) -> list[Any]:
    X = upload(drawn(0).normal(size=(300, 2)))
    k = 4
    C = X[:k].copy()
    for _ in range(10):
        d = ((X[:, None, :] - C[None, :, :]) ** 2).sum(-1)
        lab = d.argmin(1)
        C = np.stack([X[lab == j].mean(0) if (lab == j).any() else C[j] for j in range(k)])
    return [C, np.bincount(lab, minlength=k)]


def logistic_regression(np: Any, upload: Upload) -> list[Any]:
    X = upload(drawn(2).normal(size=(200, 5)))
    y = upload((drawn(3).random(200) > 0.5).astype(float))
    w = np.zeros(5)
    for _ in range(100):
        p = 1 / (1 + np.exp(-X @ w))
        w -= 0.1 * X.T @ (p - y) / len(y)
    acc = np.mean((p > 0.5) == (y == 1))
    return [w, acc]


def two_layers_by_adam(np: Any, upload: Upload) -> list[Any]:
    r = drawn(4)
    X = upload(r.normal(size=(64, 8)))
    Y = np.eye(3)[upload(r.integers(0, 3, 64))]
    W1 = upload(r.normal(size=(8, 16)) * 0.1)
    b1 = np.zeros(16)
    W2 = upload(r.normal(size=(16, 3)) * 0.1)
    b2 = np.zeros(3)
    params = [W1, b1, W2, b2]
    m = [np.zeros_like(p) for p in params]
    v = [np.zeros_like(p) for p in params]
    losses = []
    for t in range(1, 31):
        W1, b1, W2, b2 = params
        h = np.maximum(X @ W1 + b1, 0)
        z = h @ W2 + b2
        z -= z.max(axis=1, keepdims=True)
        e = np.exp(z)
        p = e / e.sum(axis=1, keepdims=True)
        loss = -np.log((p * Y).sum(1)).mean()
        losses.append(float(loss))
        dz = (p - Y) / len(X)
        gW2 = h.T @ dz
        gb2 = dz.sum(0)
        dh = dz @ W2.T
        dh[h <= 0] = 0
        gW1 = X.T @ dh
        gb1 = dh.sum(0)
        for i, g in enumerate([gW1, gb1, gW2, gb2]):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * g**2
            params[i] = params[i] - 0.01 * (m[i] / (1 - 0.9**t)) / (np.sqrt(v[i] / (1 - 0.999**t)) + 1e-08)
    return [np.array(losses)] + params


def nearest_neighbours(np: Any, upload: Upload) -> list[Any]:
    r = drawn(20)
    X = upload(r.normal(size=(50, 3)))
    y = upload(r.integers(0, 3, 50))
    q = upload(r.normal(size=(10, 3)))
    d = np.sqrt(((q[:, None] - X[None]) ** 2).sum(2))
    nn = np.argpartition(d, 5, axis=1)[:, :5]
    v = y[nn]
    cnt = np.stack([(v == c).sum(1) for c in range(3)], axis=1)
    return [cnt.argmax(1)]


def naive_bayes(np: Any, upload: Upload) -> list[Any]:
    r = drawn(21)
    X = upload(r.normal(size=(90, 4)))
    y = upload(numpy.repeat([0, 1, 2], 30))
    mu = np.array([X[y == c].mean(0) for c in range(3)])
    var = np.array([X[y == c].var(0) for c in range(3)])
    lp = -0.5 * (np.log(2 * np.pi * var)[None] + (X[:, None] - mu[None]) ** 2 / var[None]).sum(-1)
    return [lp.argmax(axis=1)]


def hinge_loss(np: Any, upload: Upload) -> list[Any]:
    r = drawn(22)
    X = upload(r.normal(size=(60, 2)))
    y = upload(numpy.where(r.random(60) > 0.5, 1.0, -1.0))
    w = np.zeros(2)
    b = 0.0
    for _ in range(50):
        m = y * (X @ w + b) < 1
        w = w - 0.01 * (w - (X[m] * y[m][:, None]).sum(0) / 60)
        b = b + 0.01 * y[m].sum() / 60
    return [w, b]


def attention(np: Any, upload: Upload) -> list[Any]:
    r = drawn(35)
    x = upload(r.normal(size=(2, 6, 8)))
    W = [upload(r.normal(size=(8, 8))) for _ in range(3)]
    q, k, v = [x @ w for w in W]
    q, k, v = [t.reshape(2, 6, 2, 4).transpose(0, 2, 1, 3) for t in (q, k, v)]
    s = q @ k.swapaxes(-1, -2) / np.sqrt(4)
    mask = np.triu(np.ones((6, 6), dtype=bool), k=1)
    s = np.where(mask, -np.inf, s)
    s = s - s.max(-1, keepdims=True)
    p = np.exp(s)
    p /= p.sum(-1, keepdims=True)
    return [np.einsum("bhij,bhjd->bhid", p, v).transpose(0, 2, 1, 3).reshape(2, 6, 8)]


def lstm(np: Any, upload: Upload) -> list[Any]:
    r = drawn(36)
    W = upload(r.normal(size=(12, 16)) * 0.3)
    h = np.zeros((3, 4))
    c = np.zeros((3, 4))
    xs = upload(r.normal(size=(10, 3, 8)))
    sg = lambda z: 1 / (1 + np.exp(-z))
    out = []
    for x in xs:
        z = np.concatenate([x, h], axis=1) @ W
        i, f, o, g = np.split(z, 4, axis=1)
        c = sg(f) * c + sg(i) * np.tanh(g)
        h = sg(o) * np.tanh(c)
        out.append(h)
    return [np.stack(out)]


def qlearning(np: Any, upload: Upload) -> list[Any]:
    r = drawn(12)
    Q = upload(numpy.zeros((16, 4)))
    for _ in range(60):
        s = int(r.integers(16))
        a = int(r.integers(4))
        s2 = (s + [1, -1, 4, -4][a]) % 16
        rew = 1.0 if s2 == 15 else 0.0
        Q[s, a] += 0.5 * (rew + 0.9 * np.max(Q[s2]) - Q[s, a])
    return [Q, Q.argmax(axis=1)]


def cross_entropy_method(np: Any, upload: Upload) -> list[Any]:
    r = drawn(13)
    mu = np.zeros(4)
    sd = np.ones(4) * 2
    target = upload(numpy.array([1.0, 2.0, 3.0, 4.0]))
    for _ in range(10):
        x = mu + sd * upload(r.normal(size=(50, 4)))
        sc = -((x - target) ** 2).sum(1)
        el = x[np.argsort(sc)[-10:]]
        mu, sd = (el.mean(0), el.std(0) + 0.001)
    return [mu, sd]


def confusion(np: Any, upload: Upload) -> list[Any]:
    r = drawn(18)
    t = upload(r.integers(0, 4, 100))
    p = upload(r.integers(0, 4, 100))
    C = np.zeros((4, 4), dtype=int)
    np.add.at(C, (t, p), 1)
    prec = np.diag(C) / C.sum(axis=0)
    return [C, prec, (t == p).mean()]


def roc_auc(np: Any, upload: Upload) -> list[Any]:
    r = drawn(19)
    y = upload(r.integers(0, 2, 80))
    s = upload(r.random(80))
    o = np.argsort(-s)
    yt = y[o]
    tp = np.cumsum(yt)
    fp = np.cumsum(1 - yt)
    return [np.trapezoid(tp / tp[-1], fp / fp[-1])]


def early_stopping(np: Any, upload: Upload) -> list[Any]:
    x = upload(numpy.array(5.0))
    best = np.inf
    pat = 0
    for i in range(200):
        x = x - 0.1 * 2 * x
        l = (x**2).item()
        if l < best - 1e-06:
            best = l
            pat = 0
        else:
            pat += 1
            if pat >= 3:
                break
    return [i, best]


def batches(np: Any, upload: Upload) -> list[Any]:
    X = upload(drawn(33).random((50, 3)))
    perm = drawn(34).permutation(50)
    tot = 0
    for b in range(0, 50, 8):
        batch = X[perm[b : b + 8]]
        tot += batch.sum()
    return [tot]


def naive_bayes_and_neighbours(np: Any, upload: Upload) -> list[Any]:
    r = drawn(50)
    X = upload(numpy.vstack([r.normal(2, 1, (30, 2)), r.normal(-1, 1, (30, 2))]))
    y = upload(numpy.repeat([1, 0], 30))
    params = {}
    for c in np.unique(y):
        Xc = X[y == c]
        params[c] = (Xc.mean(0), Xc.var(0), len(Xc) / len(X))
    scores = []
    for c in (0, 1):
        m, v, prior = params[c]
        scores.append(np.log(prior) - 0.5 * (np.log(2 * np.pi * v) + (X - m) ** 2 / v).sum(axis=1))
    bayes = np.argmax(np.array(scores), axis=0)
    votes = []
    for x in X[::10]:
        near = np.argsort(np.sqrt(((X - x) ** 2).sum(axis=1)))[:5]
        votes.append(Counter(y[near]).most_common(1)[0][0])
    sizes: Counter[Any] = Counter(y)
    return [bayes, np.array(votes), sizes[0], sizes[1], len(set(y)), np.mean(bayes == y)]
