"""How many arrays of a session live on its server, as the inspection tells."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request

import torch

from fusewire import Session
from fusewire.testing.server_process import ServerProcess

HANGS_S = 30.0


def live_handles(server: ServerProcess, session: Session) -> int:
    """Waits for the work recorded so far, and asks. Asks again if the server says that it is too busy to answer."""
    torch.fusewire.synchronize()
    deadline_s = time.monotonic() + HANGS_S
    while True:
        try:
            with urllib.request.urlopen(f"http://{server.http}/v1/sessions/{session.id}", timeout=HANGS_S) as answer:
                return int(json.load(answer)["live_handles"])
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline_s:
                raise
