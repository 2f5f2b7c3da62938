"""What is told of a program, and how it was launched. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fusewire_server.figures import Described, counter, fact, gauge, part
from fusewire_server.inspect.snapshots.histogram import Histogram, histogram
from fusewire_server.inspect.snapshots.plan_views import CompiledView


def _form(entry: Any) -> str:
    return "ops" if entry.loaded is None else entry.loaded.launch_counts.form


def _launches(entry: Any) -> Any:
    return Launching() if entry.loaded is None else entry.loaded.launch_counts


@dataclass(frozen=True)
class Launching(Described):
    """How the device has launched many kernels or iterations by one call."""

    persistent_launches: int = counter("persistent_launches")
    """Number of launches that ran many iterations each."""
    graphs: int = gauge("graphs")
    """Number of captured graphs that are kept."""
    captured: int = counter("graphs_captured")
    """Number of graphs that were captured."""
    evicted: int = counter("graphs_evicted")
    """Number of graphs dropped to make room."""


@dataclass(frozen=True)
class ProgramView(Described):
    """One program."""

    digest: str = fact(read=lambda entry: entry.digest.hex())
    """Digest of the program, in hexadecimal digits."""
    is_fragment: bool = fact(default=False)
    """Whether it is a fragment: ops that a client recorded outside loops."""
    ops: int = fact(read="program.op_count", default=0)
    """Number of ops."""
    structure: str = fact(default="")
    """Digest of its ops and their operands without sizes. Programs with one structure differ in sizes or attributes."""
    inputs: tuple[str, ...] = fact(read="input_texts", default=())
    """Dtypes and shapes of its inputs, at most 8."""
    results: int = fact(read=lambda entry: len(entry.program.live), default=0)
    """Number of results that are kept."""
    tier: int = gauge(read=lambda entry: 2 if _launches(entry).graphs else entry.tier)
    """0 if the program runs op by op, 1 if it runs by a plan, 2 if captured graphs of this plan are kept."""
    state: str = fact(read="state.value")
    """State of its plan, such as unplanned, planning or loaded."""
    hits: int = counter(read="uses")
    """Number of segments that used it."""
    rows: int = counter()
    """Number of rows that the device has completed."""
    submissions: int = counter()
    """Number of submissions that had these rows."""
    row_ns: int = fact(default=0)
    """Estimated device time of a row in ns; 0 before one has run at this tier."""
    planning_ns: int = counter()
    """Time of planning in ns."""
    compiling_ns: int = counter()
    """Time of compiling in ns."""
    refusal: str = fact()
    """Why the program has no plan. Empty if it was not refused."""
    rows_per_launch: Histogram = counter(
        read=lambda entry: histogram(entry.rows_per_submission, entry.rows), default=Histogram()
    )
    """Rows of its submissions."""
    form: str = fact(read=_form, default="ops")
    """How it has run: `ops` one by one, the `launches` of its plan, `graphs` of these, or a `persistent` kernel for
    many iterations of a loop. `why_launched` of its plan says why a loop has no persistent kernel.
    """
    launching: Launching = part(Launching(), _launches)
    """How the device has launched its plan."""
    why_no_graph: str = fact(read=lambda entry: entry.loaded.why_no_graph if entry.loaded else "", default="")
    """Why its plan has no captured graph. Empty if it has one, or no plan."""
    why_not_persistent: str = fact(
        read=lambda entry: entry.loaded.why_not_persistent if entry.loaded else "", default=""
    )
    """Why its persistent kernel did not run the iterations that came last. Empty if it did, or if there is none."""


@dataclass(frozen=True)
class AlikeView(Described):
    """A program of the same ops as another."""

    digest: str
    """Digest of the program, in hexadecimal digits."""
    difference: str
    """What differs in it, so that it was planned for itself."""
    rows: int
    """Number of rows that the device has completed."""


@dataclass(frozen=True)
class ProgramDetail(Described):
    """A program and its plan."""

    program: ProgramView = part()
    """The program."""
    compiled: CompiledView | None = fact(default=None)
    """Its plan. Null as long as the program runs op by op."""
    alike: tuple[AlikeView, ...] = fact(default=())
    """Programs of the same ops for other sizes, which have plans of their own, at most 20: those of most rows."""
