"""Draws the plots of the HTML report as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatter

_SIZE_INCHES = (7.4, 2.6)
_INK, _SECOND, _PALE = "#1f4e79", "#b3541e", "#d9e2ec"

Draw = Callable[[Figure, Mapping[str, Any]], None]


def plots_of(document: Mapping[str, Any]) -> tuple[str, str | None, str]:
    """Returns three SVG plots: latency over time, a histogram of latencies, and rows a launch with session shares.

    The histogram is None if no step was measured.
    """
    histogram = None if document["histogram"] is None else _svg(_draw_histogram, document)
    return _svg(_draw_timeline, document), histogram, _svg(_draw_shares, document)


def _svg(draw: Draw, document: Mapping[str, Any]) -> str:
    rcParams["svg.fonttype"] = "none"
    rcParams["svg.hashsalt"] = "fusewire"  # the same document gives the same bytes
    figure = Figure(_SIZE_INCHES, layout="constrained")
    draw(figure, document)
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]


def _draw_timeline(figure: Figure, document: Mapping[str, Any]) -> None:
    axes = figure.subplots()
    intervals = [interval for interval in document["timeline"] if interval["steps"]]
    at_s = [interval["began_s"] + interval["length_s"] / 2 for interval in intervals]
    for field, label, colour in (("p50_s", "median", _INK), ("p99_s", "p99", _SECOND), ("max_s", "longest", "#888888")):
        axes.plot(at_s, [interval[field] * 1e3 for interval in intervals], label=label, color=colour, linewidth=1.2)
    measured = [interval for interval in document["timeline"] if interval["is_measured"]]
    axes.axvspan(measured[0]["began_s"], measured[-1]["began_s"] + measured[-1]["length_s"], color=_PALE, zorder=0)
    axes.set_yscale("log")
    _write_plain(axes.yaxis)
    _label(axes, "time since the load began, s (shaded: measured)", "latency, ms")
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))


def _draw_histogram(figure: Figure, document: Mapping[str, Any]) -> None:
    axes = figure.subplots()
    histogram = HdrHistogram.decode(document["histogram"])
    at_ms, counts = recorded_ms(histogram)
    edges = np.geomspace(max(at_ms.min(), 1e-3) * 0.99, at_ms.max() * 1.01, 60)
    axes.hist(at_ms, bins=edges.tolist(), weights=counts, color=_INK)
    axes.set_xscale("log")
    _write_plain(axes.xaxis)
    for field, label in (("p50_s", "median"), ("p99_s", "p99")):
        axes.axvline(document[field] * 1e3, color=_SECOND, linewidth=1)
        axes.annotate(label, (document[field] * 1e3, 0.98), xycoords=("data", "axes fraction"), fontsize=8, va="top")
    _label(axes, "latency, ms", "steps")


def _draw_shares(figure: Figure, document: Mapping[str, Any]) -> None:
    left, right = figure.subplots(1, 2)
    launches = document["rows_histogram"] or []
    left.bar([f"≤ {bucket['at_most']}" for bucket in launches], [bucket["count"] for bucket in launches], color=_INK)
    _label(left, "rows of a launch", "launches")
    sessions = [each for each in document["by_session"] if each["device_ns"] is not None]
    total = sum(each["device_ns"] for each in sessions) or 1
    shares = [100 * each["device_ns"] / total for each in sessions]
    right.bar([each["session"] for each in sessions], shares, color=_INK)
    _label(right, "session", "device time, %")


def recorded_ms(histogram: HdrHistogram) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Returns the recorded latencies in ms, ascending, and how often each was recorded."""
    # The iterator yields the same object each time and changes its contents, so the numbers are copied at once.
    pairs = [
        (item.value_iterated_to / 1e6, item.count_added_in_this_iter_step) for item in histogram.get_recorded_iterator()
    ]
    table = np.array(pairs, np.float64)
    return table[:, 0], table[:, 1]


def _write_plain(axis: Axis) -> None:
    """Makes a logarithmic axis show plain numbers at its ticks instead of powers of ten."""
    axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(which="both", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
