"""The commands by which README installs and serves work in a new environment. The package is made of this tree."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import fusewire as fw
from tests.deploy.dockerfile import PROJECT

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(1500)]

DEADLINE_S = 60.0
INSTALLS_WITHIN_S = 600.0
TAKES_GIGABYTES = "cuda13"


def commands() -> list[list[str]]:
    """Returns the words of each command of README's block, without the comments."""
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n(pip install.*?)```", readme, re.DOTALL)
    return [line.partition("#")[0].replace("'", "").split() for line in block.splitlines()]


def test_a_server_that_was_installed_as_readme_says_serves(tmp_path: Path) -> None:
    *installations, serve = commands()
    programs = tmp_path / "environment" / "bin"
    subprocess.run((sys.executable, "-m", "venv", str(programs.parent)), check=True, timeout=INSTALLS_WITHIN_S)
    for program, action, wanted in installations:
        from_tree = wanted.replace("fusewire", str(PROJECT))
        installation = [str(programs / program), action, "--quiet", "--disable-pip-version-check", from_tree]
        if TAKES_GIGABYTES in wanted:
            installation.append("--dry-run")  # pip finds the packages, and installs none
        subprocess.run(installation, check=True, timeout=INSTALLS_WITHIN_S)
    environment = {**os.environ, "FUSEWIRE_LISTEN__GRPC": "127.0.0.1:0", "FUSEWIRE_LISTEN__HTTP": "127.0.0.1:0"}
    environment.pop("PYTHONPATH", None)
    command = (str(programs / serve[0]), *serve[1:])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as process:
        try:
            assert process.stdout is not None
            printed = json.loads(process.stdout.readline())
            with urllib.request.urlopen(f"http://{printed['http']}/readyz", timeout=DEADLINE_S) as answer:
                assert answer.read() == b"ready"
            with fw.connect(printed["grpc"], timeout=DEADLINE_S) as session:
                assert (session.array([1.0]) + 1).numpy(timeout=DEADLINE_S) == [2.0]
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()
