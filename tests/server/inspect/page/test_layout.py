"""The layout of a graph of ops: each op lies below all that it reads, and in a place of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.browser import NEEDS_CHROMIUM

pytestmark = NEEDS_CHROMIUM

_LAYOUT = """const done = arguments[arguments.length - 1];
import("/ui/parts/layout.js").then(({ layout }) => done(arguments[0].map(layout)))"""


def _drawn(draw: random.Random) -> list[list[int]]:
    """What each op of a drawn graph reads."""
    return [
        sorted({draw.randrange(op) for _ in range(draw.randrange(3))}) if op else [] for op in range(draw.randrange(60))
    ]


def test_each_op_lies_below_what_it_reads_in_a_place_of_its_own(browser: Any, page: Callable[..., str]) -> None:
    draw = random.Random(0)
    graphs = [_drawn(draw) for _ in range(100)]
    browser.get(f"{page()}/ui/")
    for reads, entry in zip(graphs, browser.execute_async_script(_LAYOUT, graphs), strict=True):
        nodes = [(each["layer"], each["place"]) for each in entry["nodes"]]
        assert len({*nodes}) == len(nodes) == len(reads)
        assert all(0 <= layer < entry["layers"] and 0 <= place <= entry["width"] - 1 for layer, place in nodes)
        lines = {(line["from"], line["to"]): line["path"] for line in entry["lines"]}
        assert lines.keys() == {(producer, op) for op, producers in enumerate(reads) for producer in producers}
        for (producer, op), path in lines.items():
            first, last = nodes[producer][0], nodes[op][0]
            assert first < last
            assert (path[0], path[-1]) == ([*nodes[producer]], [*nodes[op]])
            assert [layer for layer, _ in path] == [*range(first, last + 1)]
