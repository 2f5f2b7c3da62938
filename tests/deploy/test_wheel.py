"""A wheel with everything compiled fits other Linux systems, and serves where nothing else is installed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.deploy.dockerfile import PROJECT
from tests.deploy.engine import output_of
from tests.deploy.setting_up import COMMANDS

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(2400)]

BUILDS_WITHIN_S = 1200.0
PROGRAM = PROJECT / "tests" / "deploy" / "installed_program.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    environment = {**os.environ, "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"}
    command = ("make", "--silent", "wheel", f"PYTHON={sys.executable}", f"WHEELS={folder}")
    output_of(command, environment, BUILDS_WITHIN_S, PROJECT)
    (wheel,) = folder.iterdir()
    return wheel


def test_a_wheel_names_the_c_library_that_it_needs(wheel: Path) -> None:
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert re.fullmatch(rf"fusewire-[\d.]+-{version}-{version}-(manylinux(_\d+_|20)\d+_x86_64\.?)+\.whl", wheel.name)


def test_a_program_runs_with_a_wheel_in_an_environment_that_holds_nothing_else(wheel: Path, tmp_path: Path) -> None:
    python = tmp_path / "bare" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    output_of((sys.executable, "-m", "venv", str(tmp_path / "bare")), environment, BUILDS_WITHIN_S)
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:")
    output_of((*pip, f"{wheel}[server]"), environment, BUILDS_WITHIN_S)
    for path in (os.environ["PATH"], str(tmp_path)):  # with a compiler for the loop, and without any
        command = (str(python), "-W", "error", str(PROGRAM))
        output_of(command, {**environment, "PATH": path}, BUILDS_WITHIN_S, tmp_path)
