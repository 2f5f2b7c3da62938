"""The systemd unit: systemd accepts it, and it leaves a server time to drain."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from fusewire_server.config.config import load

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "fusewire.service"
SETTINGS = UNIT.with_name("fusewire.toml")
SYSTEMD_ANALYZE = shutil.which("systemd-analyze") or ""


@pytest.mark.skipif(not SYSTEMD_ANALYZE, reason="needs systemd-analyze")
def test_systemd_accepts_it(tmp_path: Path) -> None:
    # systemd asks whether the command exists; `true` stands for the installed one.
    unit = tmp_path / UNIT.name
    unit.write_text(
        UNIT.read_text(encoding="utf-8").replace("/opt/fusewire/bin/fusewire", "/bin/true"), encoding="utf-8"
    )
    command = (SYSTEMD_ANALYZE, "verify", "--man=no", str(unit))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    printed = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, printed) == (0, [])


def test_a_server_has_time_to_drain() -> None:
    (stop_s,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert float(stop_s) > load(SETTINGS, {}, {}).config.limits.drain_s + 2


def test_every_variable_is_known() -> None:
    variables = re.findall(r"^Environment=(\w+)=", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert variables == [CACHE_VARIABLE]


def test_its_settings_are_valid_and_closed() -> None:
    listen = load(SETTINGS, {}, {}).config.listen
    assert listen.tls_cert is not None
    assert listen.token_file is not None
    assert not listen.insecure_allow_remote
