"""Programs that work on images."""

from __future__ import annotations

from typing import Any

import numpy

from tests.programs.data import Upload, drawn


def sobel(np: Any, upload: Upload) -> list[Any]:
    im = upload(drawn(14).random((20, 20)))
    p = np.pad(im, 1, mode="edge")
    K = numpy.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
    gx = sum(K[i, j] * p[i : i + 20, j : j + 20] for i in range(3) for j in range(3))
    gy = sum(K.T[i, j] * p[i : i + 20, j : j + 20] for i in range(3) for j in range(3))
    return [np.hypot(gx, gy), np.arctan2(gy, gx)]


def equalised_histogram(np: Any, upload: Upload) -> list[Any]:
    im = upload(drawn(15).integers(0, 256, (30, 30)).astype(numpy.uint8))
    h, _ = np.histogram(im.flatten(), 256, (0, 256))
    c = h.cumsum()
    c = (c - c.min()) * 255 / (c.max() - c.min())
    return [c.astype("uint8")[im]]


def bilinear_resize(np: Any, upload: Upload) -> list[Any]:
    im = upload(drawn(16).random((8, 8)))
    ys = np.linspace(0, 7, 15)
    xs = np.linspace(0, 7, 15)
    y0 = np.floor(ys).astype(int)
    x0 = np.floor(xs).astype(int)
    y1 = np.minimum(y0 + 1, 7)
    x1 = np.minimum(x0 + 1, 7)
    wy = (ys - y0)[:, None]
    wx = (xs - x0)[None, :]
    return [
        im[np.ix_(y0, x0)] * (1 - wy) * (1 - wx)
        + im[np.ix_(y1, x0)] * wy * (1 - wx)
        + im[np.ix_(y0, x1)] * (1 - wy) * wx
        + im[np.ix_(y1, x1)] * wy * wx
    ]


def median_filter(np: Any, upload: Upload) -> list[Any]:
    im = upload(drawn(17).random((16, 16)))
    p = np.pad(im, 1, mode="reflect")
    st = np.stack([p[i : i + 16, j : j + 16] for i in range(3) for j in range(3)])
    return [np.median(st, axis=0)]


def grey_and_denoised(np: Any, upload: Upload) -> list[Any]:
    rgb = upload(drawn(51).integers(0, 256, (12, 10, 3), dtype=numpy.uint8))
    grey = np.dot(rgb[..., :3], [0.2989, 0.5870, 0.1140])
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(grey, 1, mode="edge"), (3, 3))
    smooth = np.median(windows, axis=(2, 3))
    counts, edges = np.histogram(smooth, bins="auto")
    contrast = np.vectorize(lambda v: 0 if v < 100 else 255 if v > 150 else int(v))(smooth)
    xx, yy = np.meshgrid(np.arange(10), np.arange(12), sparse=True)
    inside = (xx - 5) ** 2 + (yy - 6) ** 2 <= 16
    return [grey, smooth, counts, edges, contrast, smooth[inside].mean()]
