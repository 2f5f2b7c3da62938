"""What all tests share."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

import pytest
from hypothesis import settings

import build_server
from fusewire._profile import profile
from fusewire_kernels import build
from fusewire_kernels.verify import verify_pass
from fusewire_protos import grpc_environment
from fusewire_server.planning.worker import VERIFY_VARIABLE, WORDS_SUFFIX
from tests.effort import DEEP, USUAL
from tests.patience import HANGS_S

os.environ.update(grpc_environment.lacking(os.environ))  # as wherever Fusewire runs, whichever test imports gRPC first

pytest_plugins = ["tests.bounds", "tests.event_loops", "tests.fail_skipped"]

build.after_pass = verify_pass

_ROOT = Path(__file__).parent.parent
_FAULTS = pytest.StashKey[Path]()  # of the whole run: a process that pytest-xdist has started has none
_MOST_SHOWN = 5  # a broken pass may fail every program

settings.register_profile("fusewire", USUAL)
settings.register_profile("deep", DEEP)  # `pytest --hypothesis-profile deep`, for whoever has an hour
settings.load_profile("fusewire")


@pytest.fixture
def no_other_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the sessions that other tests have left open, which a profile would tell too."""
    monkeypatch.setattr(profile, "_sessions", WeakSet())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The smoke test first: whoever broke everything learns it at once."""
    items.sort(key=lambda item: item.path.name != "test_smoke.py")


def pytest_configure(config: pytest.Config) -> None:
    """Planners of the servers that tests start verify too, and leave what fails in a folder of the run."""
    if not hasattr(config, "workerinput"):  # the processes of pytest-xdist inherit the variable
        if any(module.exists() for module in build_server.modules_of(_ROOT)) and build_server.are_outdated(_ROOT):
            raise pytest.UsageError("sources are newer than what is compiled of them: run `python build_server.py`")
        config.stash[_FAULTS] = Path(tempfile.mkdtemp(prefix="fusewire-faults-"))
        os.environ[VERIFY_VARIABLE] = str(config.stash[_FAULTS])


@pytest.hookimpl(trylast=True)  # when the last server has been stopped
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A plan that broke a rule fails the run, though no test may have looked at it."""
    if _faults(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What went wrong in planners, and where the programs are that bring it about."""
    faults = _faults(config)
    for fault in faults[:_MOST_SHOWN]:
        terminalreporter.section(f"a server's planner failed: {fault.with_suffix('')}.*", red=True)
        terminalreporter.write_line(fault.read_text(encoding="utf-8"))
    if len(faults) > _MOST_SHOWN:
        terminalreporter.write_line(f"and of {len(faults) - _MOST_SHOWN} programs more: {config.stash[_FAULTS]}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leaves the folder to whoever mends what is in it."""
    if _FAULTS in config.stash:
        with suppress(OSError):  # it is not empty
            config.stash[_FAULTS].rmdir()


def _faults(config: pytest.Config) -> list[Path]:
    return sorted(config.stash[_FAULTS].glob(f"*{WORDS_SUFFIX}")) if _FAULTS in config.stash else []


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A self-signed certificate of this machine, and its key, as files."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl command to make a certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    command += [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=HANGS_S)
    return cert, key
