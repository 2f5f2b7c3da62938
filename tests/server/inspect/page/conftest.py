"""A page that is served and a browser, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.browser import chromium
from tests.server.inspect.page.served_page import serving


@pytest.fixture
def page() -> Iterator[Callable[..., str]]:
    """Serves the page as `serving` does until the test ends, and returns its address."""
    with ExitStack() as servers:
        yield lambda *arguments, **options: servers.enter_context(serving(*arguments, **options))


@pytest.fixture
def browser(page: object) -> Iterator[Any]:
    with chromium() as browser:
        yield browser
