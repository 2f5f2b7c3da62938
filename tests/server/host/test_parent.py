"""The end of standard input."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.patience import HANGS_S

PROGRAM = "import signal; from fusewire_server.host.parent import end_with_stdin; end_with_stdin(); signal.pause()"


def test_the_end_of_standard_input_ends_the_process_as_sigterm_does() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE) as process:
        process.communicate(b"whatever is said before does not matter", timeout=HANGS_S)
    assert process.returncode == -signal.SIGTERM
