"""Serves the page, and reads what a real browser shows of it. Skips where Chromium is missing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from fusewire_protos.address import Address
from fusewire_server.access.tokens import Authenticator
from fusewire_server.engine.launch_records import Records
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.server import InspectionServer, bind
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from tests.patience import HANGS_S
from tests.server.inspect.examples import RECORDS, SESSION, SNAPSHOT, FixedSnapshots, RememberingControl, record

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing: pip install 'fusewire[dev]'")
_CHROMIUM, _DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NEEDS_CHROMIUM = pytest.mark.skipif(
    not (_CHROMIUM and _DRIVER), reason="Chromium is missing: apt install chromium-driver"
)
MANY = 200
CROWD = tuple(
    replace(SESSION, session=f"{each:012x}", name=f"worker-{each}", wait_reason="credit", live_bytes=each << 20)
    for each in range(MANY)
)
CROWDED = replace(SNAPSHOT, sessions=CROWD, stats=replace(SNAPSHOT.stats, sessions=MANY))

_T = TypeVar("_T")


class Moving(FixedSnapshots):
    """Gives snapshots of a server that has done more each time."""

    async def fresh(self) -> Snapshot:
        told = await super().fresh()
        totals = replace(told.stats.totals, ops=told.stats.totals.ops + 1_000)
        self.snapshot = replace(told, stats=replace(told.stats, totals=totals))
        return told


class Launching(RememberingControl):
    """Tells of a hundred thousand launches in the last minute, and of a few more each time."""

    def __init__(self) -> None:
        super().__init__()
        self._has_told = False

    async def launch_records(self, positions: object, most: int) -> list[Records]:
        now_ns = time.monotonic_ns()
        count, since_ns = (10, 10**7) if self._has_told else (100_000, 60 * 10**9)
        step_ns = since_ns // count
        self._has_told = True
        records = [
            record(now_ns - since_ns + each * step_ns, step_ns // 2, each % 90, (each + 1) % 90, program=1 + each % 2)
            for each in range(count)
        ]
        return [RECORDS._replace(records=b"".join(records))]


@contextmanager
def serving(
    snapshot: Snapshot = SNAPSHOT,
    *,
    authenticator: Authenticator | None = None,
    control: RememberingControl | None = None,
    port: int = 0,
) -> Iterator[str]:
    """Serves the page for a snapshot, and gives its address without a fragment."""
    app = create_app(Moving(snapshot), authenticator, control or Launching())
    server = InspectionServer(app, bind(Address("127.0.0.1", port)))
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop(HANGS_S)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser. At its end its console has no errors but failed requests, and none that the page's policy forbids."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"):
        options.add_argument(argument)
    options.binary_location = _CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(_DRIVER))
    driver.set_script_timeout(HANGS_S)
    try:
        yield driver
        told = [each["message"] for each in driver.get_log("browser")]
    finally:
        driver.quit()
    assert [each for each in told if "Failed to load resource" not in each] == []


def soon(read: Callable[[], _T]) -> _T:
    """What `read` returns once it is true."""
    ends_s = time.monotonic() + HANGS_S
    while time.monotonic() < ends_s:
        found = read()
        if found:
            return found
    raise AssertionError("the page does not show it")


def texts(browser: Any, selector: str) -> list[str]:
    """The texts of the elements that a selector finds."""
    found: list[str] = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)", selector
    )
    return found
