"""A full disk under the cache of kernels: clients get right results, readiness tells, and programs compile later."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from tests.bounds import Bounded
from tests.faults.bystander import watching
from tests.faults.server import Inspector, serving, until

pytestmark = pytest.mark.faults

MADE_AGAIN_WITHIN_S = 25.0  # the server asks for a refused plan again after pauses that grow
_UNSHARE = shutil.which("unshare")


def _may_mount() -> bool:
    command = (_UNSHARE or "false", "--map-root-user", "--mount", "true")
    return subprocess.run(command, check=False, capture_output=True, timeout=20).returncode == 0


@pytest.mark.skipif(not _may_mount(), reason="needs the right to mount a disk in a user namespace")
def test_programs_are_compiled_when_a_full_disk_has_room_again(
    token: str, inspecting: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    with serving(token_file, "small_disk", {CACHE_VARIABLE: str(cache)}) as server:
        filler = Path(f"/proc/{server.pid}/root{cache}/filler")
        _fill(filler)
        inspector = Inspector(server, inspecting)
        with watching(server, token) as observed:
            until(lambda: "No space left" in _readiness(inspector)["trouble"])
            assert _readiness(inspector)["is_ready"]
            assert _compiled(inspector) == 0
            filler.unlink()
            compiled_s = until(lambda: _compiled(inspector) > 0, MADE_AGAIN_WITHIN_S)
            bounded("time until programs are compiled again", compiled_s, MADE_AGAIN_WITHIN_S, "s")
            until(lambda: _readiness(inspector)["trouble"] == "", MADE_AGAIN_WITHIN_S)
    observed.check(bounded)


def _fill(filler: Path) -> None:
    """Writes a file until its disk is full."""
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def _readiness(inspector: Inspector) -> dict[str, Any]:
    readiness: dict[str, Any] = inspector.ask("/readyz?verbose")
    return readiness


def _compiled(inspector: Inspector) -> int:
    """Returns the number of programs that run by a compiled plan."""
    return sum(program["tier"] == 1 for program in inspector.ask("/v1/programs")["programs"])
