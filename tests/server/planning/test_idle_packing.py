"""An idle server has kernels compiled once, and takes that process with it when it ends."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from fusewire_server.planning.idle_packing import IDLE_LOOKS, command_for, pack_when_idle
from tests.patience import HANGS_S
from tests.server.world import until

_AT_ONCE_S = 0.0


def _writes(path: Path) -> tuple[str, ...]:
    return sys.executable, "-c", f"open({str(path)!r}, 'a').write('made')"


def test_kernels_are_compiled_once_no_session_has_been_open_for_a_while(tmp_path: Path) -> None:
    looks: list[bool] = []

    def is_idle() -> bool:
        looks.append(len(looks) != 3)  # a session is open at the fourth look
        return looks[-1]

    asyncio.run(asyncio.wait_for(pack_when_idle(_writes(tmp_path / "pack"), is_idle, _AT_ONCE_S), HANGS_S))
    assert (tmp_path / "pack").read_text(encoding="utf-8") == "made"
    assert len(looks) == 4 + IDLE_LOOKS


def test_a_server_that_is_used_compiles_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        looks = 0

        def is_idle() -> bool:
            nonlocal looks
            looks += 1
            return looks % IDLE_LOOKS != 0

        packing = asyncio.create_task(pack_when_idle(_writes(tmp_path / "pack"), is_idle, _AT_ONCE_S))
        await until(lambda: looks >= 5 * IDLE_LOOKS)
        packing.cancel()

    asyncio.run(test())
    assert not (tmp_path / "pack").exists()


def test_the_process_ends_with_the_server(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    text = f"import os, time; open({str(begun)!r}, 'w').write(str(os.getpid())); time.sleep({HANGS_S})"

    async def test() -> None:
        packing = asyncio.create_task(pack_when_idle((sys.executable, "-c", text), lambda: True, _AT_ONCE_S))
        await until(lambda: begun.exists() and begun.read_text(encoding="utf-8"))
        packing.cancel()
        await asyncio.gather(packing, return_exceptions=True)
        await until(lambda: not _runs(int(begun.read_text(encoding="utf-8"))))

    asyncio.run(test())


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False


def test_why_kernels_are_not_compiled_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    for command, reason in (((sys.executable, "-c", "exit('no room')"), "no room"), (("/nowhere",), "/nowhere")):
        asyncio.run(pack_when_idle(command, lambda: True, _AT_ONCE_S))
        assert reason in caplog.messages[-1]


def test_the_command_names_the_architecture() -> None:
    assert command_for("sm_90")[2:] == ("fusewire_server", "warm", "--architecture", "sm_90", "--yielding")
