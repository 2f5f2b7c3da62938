"""Makes the page of a profile: one file of HTML with its data, style and script, which asks for nothing outside. Pure.

The page's policy allows this style and this script alone, by their digests. The data are JSON, which no browser runs.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from fusewire._profile.summary import shares_of, summary_of
from fusewire._profile.timeline import Timeline

_FOLDER = "page"


def page_text(timeline: Timeline) -> str:
    """Returns the page as HTML."""
    style, script = _read("page.css"), _read("page.js")
    parts = {
        "POLICY": f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": json_for_html(page_data(timeline)),
    }
    pieces = _read("page.html").split("@@")
    return "".join([parts[piece] if place % 2 else piece for place, piece in enumerate(pieces)])


def page_data(timeline: Timeline) -> dict[str, Any]:
    """Returns the data of the page. Texts that come again are in a table, by their place in it."""
    texts: dict[str, int] = {}

    def place(text: str) -> int:
        return texts.setdefault(text, len(texts))

    blocks = [
        (b.track, place(b.kind), b.began_ns, b.ended_ns, place(b.label), b.segment, place(b.line), dict(b.facts))
        for b in timeline.blocks
    ]
    segments = [
        (place(s.label), place(s.line), s.ops, s.iterations, place(s.why_cut), place(", ".join(filter(None, s.names))))
        for s in timeline.segments
    ]
    head, *_, device = summary_of(timeline)
    return {
        "head": head,
        "device": device,
        "shares": shares_of(timeline),
        "length": timeline.length_ns,
        "notes": timeline.notes,
        "tracks": timeline.tracks,
        "blocks": blocks,
        "segments": segments,
        "series": [(each.name, each.unit, each.points) for each in timeline.series],
        "texts": [*texts],
    }


def json_for_html(data: object) -> str:
    """Returns JSON in which nothing can end the element that holds it, whatever names and paths the data have."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _read(name: str) -> str:
    return files(__package__).joinpath(_FOLDER, name).read_text(encoding="utf-8")
