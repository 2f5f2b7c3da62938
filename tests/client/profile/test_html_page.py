"""The page holds all that it needs, allows its own style and script alone, and no text of a program can break out."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from hypothesis import given

import fusewire_server
from fusewire._profile.html_page import json_for_html, page_data, page_text
from fusewire._profile.timeline import Timeline
from tests.client.profile.drawn import Drawn, sessions

_EMPTY = Timeline(1, ("main thread",), (), (), (), {"sessions": 0, "threads": 0}, None, ())
_COLOURS = re.compile(r"--(back|card|text|soft|line|band|faint|link|accent|bad|warn): (#\w+);")


def _element(page: str, tag: str) -> str:
    (found,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return str(found)


def test_the_policy_allows_the_pages_own_style_and_script_alone() -> None:
    page = page_text(_EMPTY)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        digest = b64encode(sha256(_element(page, tag).encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]


def test_the_page_loads_nothing() -> None:
    page = page_text(_EMPTY)
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["data:,", "#timeline", "https://ui.perfetto.dev"]
    assert not re.search(r"url\(|@import|fetch\(|import\(|XMLHttp|\bon\w+=\"|style=\"|innerHTML", page)


@given(sessions())
def test_names_of_files_and_ops_stay_within_the_data(drawn: Drawn) -> None:
    page = page_text(drawn.timeline)
    (raw,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(raw) == json.loads(json.dumps(page_data(drawn.timeline)))
    assert page.count("</script>") == 2


def test_json_has_no_letter_that_html_knows() -> None:
    text = json_for_html({"</script><!--": "&amp;@@DATA@@\u2028"})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {"</script><!--": "&amp;@@DATA@@\u2028"}


def test_colours_are_those_of_the_servers_page() -> None:
    page = Path(fusewire_server.__file__).parent / "inspect" / "page" / "style.css"
    assert _COLOURS.findall(page_text(_EMPTY)) == _COLOURS.findall(page.read_text(encoding="utf-8"))
