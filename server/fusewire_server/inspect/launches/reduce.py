"""Joins records of short submissions that lie in one pixel of a picture, so that a picture takes few bytes. Pure."""

from __future__ import annotations

import numpy as np

from fusewire_server.inspect.launches.columns import Rows, began_ns

MOST_REDUCED = 20_000  # records of an answer; beyond them the pixels are doubled
_MOST_ROWS = (1 << 16) - 1
_MOST_FAILED = (1 << 8) - 1


def reduced(rows: Rows, pixel_ns: int) -> Rows:
    """Returns records in the order of their beginnings, those of one program and device in one pixel joined.

    A joined record ends with the last of its submissions. It has the sums of `device_ns`, `count`, `iterations` and
    `result_bytes`, the mean of `rows` rounded up, the greatest `order_ns` and `queue_ns`, and all their sessions; the
    rest is that of the first. Submissions longer than a pixel stay as they are. If more than `MOST_REDUCED` are left,
    the pixels are doubled until fewer are.
    """
    if not len(rows):
        return rows
    in_order = rows[np.argsort(began_ns(rows), kind="stable")]
    found = _joined(in_order, pixel_ns)
    while len(found) > MOST_REDUCED:
        pixel_ns = max(2 * pixel_ns, 1000)
        found = _joined(in_order, pixel_ns)
    return found


def _joined(rows: Rows, pixel_ns: int) -> Rows:
    if pixel_ns <= 0:
        return rows
    pixels = began_ns(rows) // pixel_ns
    is_long = rows["device_ns"] > pixel_ns
    own = np.where(is_long, np.arange(1, len(rows) + 1), 0)
    order = np.lexsort((own, rows["program"], pixels, rows["device"]))
    sorted_rows = rows[order]
    keys = (pixels[order], sorted_rows["program"], sorted_rows["device"], own[order])
    is_first = np.ones(len(rows), bool)
    is_first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    firsts = np.flatnonzero(is_first)
    found = sorted_rows[firsts].copy()
    counts = np.add.reduceat(sorted_rows["count"].astype(np.int64), firsts)
    for name in ("device_ns", "iterations", "result_bytes"):
        found[name] = np.add.reduceat(sorted_rows[name], firsts)
    for name in ("ended_ns", "order_ns", "queue_ns"):
        found[name] = np.maximum.reduceat(sorted_rows[name], firsts)
    for name in ("low", "high"):
        found[name] = np.bitwise_or.reduceat(sorted_rows[name], firsts)
    rows_in_all = np.add.reduceat(sorted_rows["rows"].astype(np.int64) * sorted_rows["count"], firsts)
    found["rows"] = np.minimum(-(-rows_in_all // counts), _MOST_ROWS)
    found["failed"] = np.minimum(np.add.reduceat(sorted_rows["failed"].astype(np.int64), firsts), _MOST_FAILED)
    found["count"] = counts
    return found[np.argsort(began_ns(found), kind="stable")]
