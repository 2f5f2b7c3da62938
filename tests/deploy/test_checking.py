"""`make deploy-check` itself: it installs what it needs or says what is missing, and a skipped test fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.dockerfile import PROJECT
from tests.shell_programs import shell_program

SCRIPT = PROJECT / "tests" / "deploy" / "install_tools.sh"
TOOLS = ("promtool", "prometheus", "openssl", "systemd-analyze", "gcc", "curl")
ENGINE = ("podman", "debootstrap", "docker-compose")  # without docker


def program(folder: Path, name: str, text: str = "") -> None:
    shell_program(folder / name, text)


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the script on a machine that has only the programs in the folder, and what every Debian has."""
    (folder / "tr").symlink_to(shutil.which("tr") or "tr")
    environment = {"PATH": str(folder)}
    shell = shutil.which("sh") or "/bin/sh"
    return subprocess.run(
        (shell, str(SCRIPT)), env=environment, capture_output=True, text=True, check=False, timeout=30
    )


@pytest.mark.parametrize("engine", [ENGINE, ("docker",)])
def test_a_machine_that_has_everything_installs_nothing(engine: tuple[str, ...], tmp_path: Path) -> None:
    for name in TOOLS + engine:
        program(tmp_path, name)
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_docker_without_its_daemon_is_no_engine(tmp_path: Path) -> None:
    for name in TOOLS:
        program(tmp_path, name)
    program(tmp_path, "docker", "exit 1")
    assert run(tmp_path).stderr.split()[-1] == "docker-compose"


def test_who_may_not_install_is_told_what_is_missing(tmp_path: Path) -> None:
    for name in TOOLS[1:] + ENGINE[1:]:
        program(tmp_path, name)
    program(tmp_path, "id", "echo 1000")
    program(tmp_path, "apt-get", "exit 1")
    done = run(tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip().endswith(
        "may not install them: prometheus podman runc netavark aardvark-dns iptables catatonit"
    )


@pytest.mark.parametrize("user", ["0", "1000"])
def test_who_may_install_gets_what_is_missing(user: str, tmp_path: Path) -> None:
    for name in TOOLS + ENGINE[:-1]:
        program(tmp_path, name)
    program(tmp_path, "id", f"echo {user}")
    program(tmp_path, "sudo", '[ "$1" = -n ] && shift && "$@"')
    program(tmp_path, "true")
    installed = f'{shutil.which("cp")} "{tmp_path}/podman" "{tmp_path}/docker-compose"'
    program(tmp_path, "apt-get", f'echo "$@"; [ "$1" = update ] || {installed}')
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed, *commands = done.stdout.splitlines()
    assert printed == "make deploy-check installs by apt: docker-compose"
    assert commands[-1].split()[-1] == "docker-compose"


def test_an_installation_that_fails_ends_the_check(tmp_path: Path) -> None:
    program(tmp_path, "id", "echo 0")
    program(tmp_path, "apt-get", "exit 100")
    assert run(tmp_path).returncode != 0


@pytest.mark.parametrize(("arguments", "expected"), [((), 0), (("--fail-skipped",), 1)])
def test_a_skipped_test_fails_only_by_request(arguments: tuple[str, ...], expected: int, tmp_path: Path) -> None:
    test = "import pytest\n@pytest.mark.skipif(True, reason='no tool')\ndef test_it() -> None: pass\n"
    (tmp_path / "test_skipped.py").write_text(test, encoding="utf-8")
    plugins = ("-p", "no:cacheprovider", "-p", "tests.fail_skipped")
    command = (sys.executable, "-m", "pytest", "-q", *plugins, f"--rootdir={tmp_path}", *arguments, str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=PROJECT)
    assert done.returncode == expected, done.stdout
    assert "no tool" in done.stdout or not expected
