"""How many arrays of a session live on its server, as the inspection tells."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable

import torch

from fusewire import Session
from fusewire.testing.server_process import ServerProcess
from tests.patience import HANGS_S, Patience

_TIMES = 5


def live_handles(server: ServerProcess, session: Session) -> int:
    """Waits for the work recorded so far, and asks. Asks again if the server says that it is too busy to answer."""
    torch.fusewire.synchronize()
    patience = Patience()
    while True:
        try:
            with urllib.request.urlopen(f"http://{server.http}/v1/sessions/{session.id}", timeout=HANGS_S) as answer:
                return int(json.load(answer)["live_handles"])
        except urllib.error.HTTPError as error:
            if error.code != 503 or patience.is_exhausted():
                raise


def assert_long_loops_leave_no_more(
    run: Callable[[int], None], short: int, long: int, server: ServerProcess, session: Session
) -> None:
    """Runs a loop of many steps, and asserts that as many arrays live after it as after loops of few steps.

    How the last steps are cut decides whose results live still, so that a loop is compared with the most of several.
    """

    def left_after(steps: int) -> int:
        run(steps)
        return live_handles(server, session)

    most = max([left_after(short) for _ in range(_TIMES)])
    left, patience = left_after(long), Patience()
    while left > most and not patience.is_exhausted():
        left = left_after(short)  # a session tells of deaths a little later
    assert left <= most
