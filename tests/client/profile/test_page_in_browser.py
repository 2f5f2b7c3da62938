"""The page of a profile in a real browser: it shows the blocks and is used by keys, without an error or a request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.browser import NEEDS_CHROMIUM, chromium, soon, texts
from tests.client.peer import connect

pytestmark = [NEEDS_CHROMIUM, pytest.mark.usefixtures("no_other_sessions")]

_MOST_DRAW_MS = 50


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


def test_the_page_shows_the_blocks_and_tells_of_the_one_that_keys_pick(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    with connect().session as session, fw.profile(page) as p:
        x = session.array(np.ones((8, 8), np.float32))
        for step in range(300):
            x = fw.tanh(x @ x)
            if step % 3 == 0:
                x.numpy()
    browser.get(page.as_uri())
    canvas = browser.find_element("id", "timeline")
    assert soon(lambda: canvas.get_attribute("data-blocks")) == str(len(p.timeline.blocks))
    # Another process may have the processor while it is drawn.
    assert soon(lambda: browser.execute_script("draw(); return +canvas.dataset.drawMs <= arguments[0]", _MOST_DRAW_MS))
    assert texts(browser, "#head") == [p.summary[0]]
    assert texts(browser, "#lines li") == list(p.summary[1:5])
    assert texts(browser, "#device") == [p.summary[5]]
    _shows_colours(browser)
    canvas.send_keys("]")
    soon(lambda: "test_page_in_browser.py" in "".join(texts(browser, ".details dd")))
    for key in ("]", "+", "-", "\ue015", "\ue015", "\ue013", "\ue007"):  # down, down, up, enter
        canvas.send_keys(key)
    assert soon(lambda: texts(browser, ".details h3"))
    canvas.send_keys("\ue00c")  # escape
    soon(lambda: not texts(browser, ".details h3"))
    browser.find_element("id", "in").click()
    assert texts(browser, "#program-table tbody th")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def _shows_colours(browser: Any) -> None:
    """The canvas has the colours of your code, cuts and waits, and that of the program that computed most."""
    missing = browser.execute_script(
        """const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
        const seen = new Set();
        const hex = each => each.toString(16).padStart(2, "0");
        for (let at = 0; at < data.length; at += 4) seen.add("#" + [...data.slice(at, at + 3)].map(hex).join(""));
        const wanted = [theme("--code"), theme("--cut"), theme("--read"), colors().palette[0]];
        return wanted.filter(each => !seen.has(each.toLowerCase()));"""
    )
    assert missing == []
