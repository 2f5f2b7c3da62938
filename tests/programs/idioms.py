"""Idioms of NumPy: sorting, masks, text, one-hot codes."""

from __future__ import annotations

from typing import Any

import numpy

from tests.programs.data import Upload, drawn


def one_hot(np: Any, upload: Upload) -> list[Any]:
    lab = upload(numpy.array([0, 2, 1, 2]))
    oh = np.zeros((lab.size, lab.max() + 1))
    oh[np.arange(lab.size), lab] = 1
    txt = f"{oh.sum():.1f} {oh.mean():.3f} {lab.max()}"
    return [oh, txt]


def sorted_values(np: Any, upload: Upload) -> list[Any]:
    x = upload(drawn(42).integers(0, 100, 50))
    y = x.copy()
    y.sort()
    o = x.argsort(kind="stable")
    return [y, x[o], np.searchsorted(y, [10, 50]), np.unique(x)[:5], y[::-1][:3].tolist()]


def masks(np: Any, upload: Upload) -> list[Any]:
    x = upload(drawn(43).normal(size=(6, 4)))
    x[x < 0] = 0
    x[:, 1] = 7
    x[[0, 2]] *= 2
    m = x > 1
    x[m] = -x[m]
    y = x[~m.any(axis=1)]
    return [x, y, np.where(m.all(1))[0].size]


def printing(np: Any, upload: Upload) -> list[Any]:
    x = upload(numpy.arange(6.0).reshape(2, 3))
    return [
        str(x),
        "%.2f" % x.sum(),
        f"{x.mean():.3f}",
        str(x.shape),
        x.dtype.name,
        str(x[0, 0]),
        repr(float(x[1, 1])),
        round(float(x.std()), 3),
        int(x[1, 2]),
    ]
