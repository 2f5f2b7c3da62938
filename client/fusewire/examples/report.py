"""Makes the report of the demo: two tables and a verdict, or JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from fusewire.examples.figures import (
    GOOD_ACCURACY,
    LARGEST_DIFFERENCE,
    LEAST_GOOD_RATE,
    MOST_PROGRAMS,
    Figures,
    Phase,
    ServerCount,
    per,
)

UNKNOWN = "–"


class Table(NamedTuple):
    """A table of the report. The first column holds text, aligned left. The others hold figures, aligned right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(figures: Figures) -> tuple[Table, Table]:
    """Returns the table of accuracies and the table of the work that the trainings took."""
    return _accuracy_table(figures), _work_table(figures)


def closing_lines(figures: Figures) -> list[str]:
    """Returns the lines that follow the tables. The last line is the verdict."""
    server = figures.server
    described = f"{server.backend} at {server.target}: {server.detail}"
    lines = [f"server: {described if server.backend else server.target}"]
    if figures.is_op_by_op:
        lines.append("tier 0 only: the server has no compiler, so every program ran op by op")
    lines.append(_programs_line(figures.together))
    lines.append(f"{figures.good_rates} of {len(figures.numpy)} learning rates reach {GOOD_ACCURACY:.0%}")
    return [*lines, _verdict(figures)]


def as_json(figures: Figures) -> str:
    """Returns all figures and the verdict as JSON."""
    together = figures.together
    document: dict[str, Any] = {
        "passed": figures.has_passed,
        "differences": figures.differences,
        "good_rates": figures.good_rates,
        "tier_0_only": figures.is_op_by_op,
        "distinct_programs": len(together.programs),
        "same_programs_in_all_clients": together.are_programs_shared,
        **asdict(figures),
    }
    return json.dumps(document, indent=2)


def plain(table: Table) -> str:
    """Returns the table as plain text, with the cells of each column padded to one width."""
    lines = (table.columns, *table.rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.columns))]
    return "\n".join((table.title, *(_line(line, widths) for line in lines)))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    figures = "".join(f"  {cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True))
    return f"  {first:<{widths[0]}}{figures}"


def _accuracy_table(figures: Figures) -> Table:
    clients = figures.together.clients
    rows = [
        (
            f"{numpy.learning_rate:g}",
            f"{numpy.accuracy:.4f}",
            f"{client.run.accuracy:.4f}",
            f"{difference:+.4f}",
            f"{client.run.losses[-1]:.4f}",
        )
        for numpy, client, difference in zip(figures.numpy, clients, figures.differences, strict=True)
    ]
    title = f"Held-out accuracy after {figures.epochs} epochs, {_clients(len(clients))} at once"
    return Table(title, ("learning rate", "NumPy", "Fusewire", "difference", "last loss"), tuple(rows))


def _work_table(figures: Figures) -> Table:
    first, alone, together = map(_work, (figures.first, figures.alone, figures.together))
    numpy = _numpy_work(figures)
    columns = ("", "NumPy", "first client", _clients(1), _clients(len(figures.together.clients)))
    rows = tuple((name, numpy.get(name, UNKNOWN), first[name], alone[name], together[name]) for name in alone)
    return Table("Work", columns, rows)


def _work(phase: Phase) -> dict[str, str]:
    clients = phase.clients
    sent_bytes = sum(client.sent_bytes for client in clients)
    return {
        "seconds": f"{phase.duration_s:.3f}",
        "ops recorded": f"{phase.ops:,}",
        "bytes sent": f"{sent_bytes:,}",
        "segments": f"{sum(client.segments for client in clients):,}",
        "of these fragments": f"{sum(client.fragments for client in clients):,}",
        "distinct programs": f"{len(phase.programs):,}",
        **_server_work(phase.server, phase.duration_s),
    }


def _server_work(server: ServerCount | None, duration_s: float) -> dict[str, str]:
    """Returns what only the server knows: a loop is recorded once, and its ops run in each iteration."""
    if server is None:
        return {}
    return {
        "ops run": f"{server.ops:,}",
        "µs an op": _figure(per(duration_s * 1e6, server.ops)),
        "launches": f"{server.launches:,}",
        "ops a launch": _figure(per(server.ops, server.launches)),
        "rows a launch": _figure(per(server.rows, server.submissions)),
        "device µs an op": _figure(per(server.device_ns / 1e3, server.ops)),
        "programs planned": f"{server.plans:,}",
        "kernels compiled": f"{server.kernels_compiled:,}",
        "buffers donated": f"{server.donations:,}",
    }


def _numpy_work(figures: Figures) -> dict[str, str]:
    """Returns the cells of NumPy's column. NumPy ran in one process, one learning rate after the other."""
    return {"seconds": f"{sum(run.duration_s for run in figures.numpy):.3f}"}


def _programs_line(together: Phase) -> str:
    count = f"{len(together.programs)} distinct {_programs(len(together.programs))}"
    if together.are_programs_shared:
        return f"{count}, the same in all {_clients(len(together.clients))}"
    each = ", ".join(str(len(client.programs)) for client in together.clients)
    return f"{count}, not the same in all clients (they sent {each}: a client that pauses sends shorter programs)"


def _verdict(figures: Figures) -> str:
    if figures.has_passed:
        shared = _shared_programs(figures.together)
        return f"PASSED: every accuracy is within {LARGEST_DIFFERENCE} of NumPy's, and all clients sent {shared}"
    return f"FAILED: {'; '.join(_shortcomings(figures))}"


def _shared_programs(together: Phase) -> str:
    count, shared = len(together.programs), len(together.shared_programs)
    if shared == count:
        return f"the same {count} programs" if count > 1 else "the same program"
    return f"{shared} of the {count} distinct programs"


def _shortcomings(figures: Figures) -> Iterator[str]:
    if not figures.agrees_with_numpy:
        worst = max(map(abs, figures.differences))
        yield f"an accuracy differs by {worst:.4f} from NumPy's, more than {LARGEST_DIFFERENCE}"
    if not figures.has_learned:
        yield f"a learning rate from {LEAST_GOOD_RATE} on does not reach {GOOD_ACCURACY:.0%}"
    if not figures.has_few_programs:
        together = figures.together
        count, shared = len(together.programs), len(together.shared_programs)
        yield (
            f"{count} distinct programs, {shared} of them sent by all clients; "
            f"required: at most {MOST_PROGRAMS}, and more than half sent by all clients"
        )


def _clients(count: int) -> str:
    return f"{count} client" if count == 1 else f"{count} clients"


def _programs(count: int) -> str:
    return "program" if count == 1 else "programs"


def _figure(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.2f}"
