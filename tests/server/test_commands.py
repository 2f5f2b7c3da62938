"""The server's commands: what they print, what they leave in files, and their exit status."""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from fusewire_kernels import packing
from fusewire_kernels.compile.kernel_pack import PACKAGE_FOLDER
from fusewire_protos.address import Address
from fusewire_protos.errors import Unauthenticated
from fusewire_server.access.tokens import Authenticator, Scope
from fusewire_server.commands import main
from fusewire_server.config.config import SETTINGS, Config, Loaded
from tests.patience import HANGS_S

SERVE_WITHOUT_FASTAPI = """
import sys
sys.modules["fastapi"] = None
from fusewire_server.commands import main
sys.exit(main(["serve"]))
"""

SERVE_AT_SIGHUP = """
import os, signal, sys
from fusewire_server import commands
load = commands.load
def load_at_sighup(*arguments):
    os.kill(os.getpid(), signal.SIGHUP)
    return load(*arguments)
commands.load = load_at_sighup
sys.exit(commands.main(["serve", "--grpc", "nonsense"]))
"""


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SETTINGS:
        monkeypatch.delenv("FUSEWIRE_" + name.upper().replace(".", "__"), raising=False)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def mint(token_file: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["token", "mint", "--token-file", str(token_file), "--tenant", "lab", *more]) == 0
    return capsys.readouterr().out.strip()


def test_a_minted_token_is_printed_alone_on_standard_output(
    token_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = mint(token_file, capsys, "--scope", "inspect")
    assert Authenticator(token_file).identify(token).scope is Scope.INSPECT


def test_a_token_is_for_use_and_for_ever_unless_said_otherwise(
    token_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(mint(token_file, capsys, "--json"))
    assert made["expires"] is None
    assert Authenticator(token_file).identify(made["token"]).scope is Scope.USE


def test_a_token_may_be_given_days(token_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = json.loads(mint(token_file, capsys, "--days", "0.5", "--json"))
    assert made["expires"].endswith("+00:00")


@pytest.mark.parametrize("days", ["0", "-1", "nan", "soon"])
def test_a_wrong_number_of_days_is_a_usage_error(
    token_file: Path, capsys: pytest.CaptureFixture[str], days: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["token", "mint", "--token-file", str(token_file), "--tenant", "lab", f"--days={days}"])
    assert f"argument --days: expected a number above 0, not {days!r}\n" in capsys.readouterr().err
    assert not token_file.exists()


@pytest.mark.parametrize("days", ["99999999", "1e300"])
def test_more_days_than_there_are_dates_are_a_usage_error(
    token_file: Path, capsys: pytest.CaptureFixture[str], days: str
) -> None:
    assert main(["token", "mint", "--token-file", str(token_file), "--tenant", "lab", "--days", days]) == 2
    assert "no date is so far ahead" in capsys.readouterr().err
    assert not token_file.exists()


def test_a_revoked_token_is_no_longer_listed(token_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = mint(token_file, capsys)
    assert main(["token", "revoke", "--token-file", str(token_file), token.partition(".")[0]]) == 0
    assert main(["token", "ls", "--token-file", str(token_file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    with pytest.raises(Unauthenticated):
        Authenticator(token_file).identify(token)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_listing_shows_no_secret_and_no_hash(
    token_file: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    token_id, _, secret = mint(token_file, capsys).partition(".")
    assert main(["token", "ls", "--token-file", str(token_file), *form]) == 0
    listed = capsys.readouterr().out
    assert token_id in listed
    assert "lab" in listed
    assert secret not in listed
    assert token_file.read_text().split()[1] not in listed


def test_the_token_file_may_be_configured(
    token_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mint(token_file, capsys)
    config = tmp_path / "fusewire.toml"
    config.write_text(f"[listen]\ntoken_file = {json.dumps(str(token_file))}\n")
    assert main(["token", "ls", "--config", str(config)]) == 0
    monkeypatch.setenv("FUSEWIRE_LISTEN__TOKEN_FILE", str(token_file))
    assert main(["token", "ls"]) == 0


def test_a_failure_is_told_in_a_line_and_is_status_1(token_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mint(token_file, capsys)
    assert main(["token", "revoke", "--token-file", str(token_file), "nobody"]) == 1
    assert capsys.readouterr().err == f"fusewire: {token_file} has no token nobody\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["token", "ls"],
        ["config", "show", "--backend", "tpu"],
        ["config", "show", "--config", "absent.toml"],
        ["serve", "--grpc", "nonsense"],
        ["serve", "--grpc", "0.0.0.0:0", "--backend", "null"],
    ],
)
def test_a_wrong_configuration_is_told_in_a_line_and_is_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("fusewire: ")
    assert printed.count("\n") == 1


@pytest.mark.parametrize("command", [["config", "check"], ["token", "ls"], ["token", "mint", "--tenant", "lab"]])
def test_a_token_file_that_every_user_may_write_is_refused_by_every_command(
    token_file: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    mint(token_file, capsys)
    token_file.chmod(0o666)
    assert main([*command, "--token-file", str(token_file)]) == 2
    expected = f"fusewire: every user may write the token file {token_file}: run chmod o-w {token_file}\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize("arguments", [[], ["token"], ["config"], ["nonsense"], ["serve", "--nonsense"]])
def test_a_wrong_command_line_is_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)


def test_every_setting_is_shown_with_value_and_origin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEWIRE_LIMITS__HANDLES", "7")
    assert main(["config", "show", "--grpc", "127.0.0.1:0", "--insecure-allow-remote", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert set(shown) == set(SETTINGS)
    assert shown["limits.handles"] == {"value": 7, "origin": "environment FUSEWIRE_LIMITS__HANDLES"}
    assert shown["listen.grpc"] == {"value": "127.0.0.1:0", "origin": "flag --grpc"}
    assert shown["listen.insecure_allow_remote"]["value"] is True
    assert shown["listen.tls_cert"] == {"value": None, "origin": "default"}


def test_settings_are_shown_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SETTINGS)
    assert lines[0].split() == ["listen.grpc", "127.0.0.1:7423", "default"]


def test_serve_runs_the_service_with_the_flags_and_returns_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Config] = []

    def run(loaded: Loaded, load_again: Callable[[], Loaded]) -> int:
        assert load_again() == loaded
        served.append(loaded.config)
        return 1

    monkeypatch.setitem(sys.modules, "fusewire_server.app", argparse.Namespace(run=run))
    assert main(["serve", "--backend", "null", "--http", "[::1]:0", "--arena-bytes", "1 MiB"]) == 1
    (config,) = served
    assert (config.device.backend, config.device.arena_bytes) == ("null", 1 << 20)
    assert config.listen.http == Address("::1", 0)


def test_without_the_extra_serve_prints_what_to_type() -> None:
    command = [sys.executable, "-c", SERVE_WITHOUT_FASTAPI]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr == "fusewire serve needs fastapi: pip install 'fusewire[server]'\n"


def test_sighup_does_not_end_a_server_that_has_not_started_yet() -> None:
    command = [sys.executable, "-c", SERVE_AT_SIGHUP]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert finished.returncode == 2, finished.stderr


# ---- warm ----


class Packs:
    """Stands for the making of packs; notes what was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        monkeypatch.setenv("FUSEWIRE_CACHE_DIR", str(folder))
        monkeypatch.setattr(packing, "make_c_pack", partial(self.make, "c"))
        monkeypatch.setattr(packing, "make_cuda_pack", partial(self.make, "cuda"))
        self.is_made = False
        self.asked: list[tuple[str, str, Path]] = []

    def make(
        self, dialect: str, roots: Sequence[Path], target: str, progress: Callable[[int, int], None]
    ) -> Path | None:
        self.asked.append((dialect, target, roots[-1]))
        if self.is_made:
            return None
        progress(2000, 2000)
        return roots[-1] / dialect


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Packs:
    return Packs(monkeypatch, tmp_path)


def test_warm_compiles_for_the_processor_of_a_server_that_runs_there(
    packs: Packs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["warm", "--backend", "cpu", "--arena-bytes", "1 MiB"]) == 0
    assert packs.asked == [("c", platform.machine(), tmp_path / "packs")]
    printed = capsys.readouterr()
    assert printed.out == f"the kernels are in {tmp_path / 'packs' / 'c'}\n"
    assert printed.err == "2,000 of 2,000 kernels\n"


def test_warm_compiles_for_gpus_that_are_elsewhere(packs: Packs, tmp_path: Path) -> None:
    assert main(["warm", "--architecture", "sm_80", "--architecture", "sm_90"]) == 0
    assert packs.asked == [("cuda", name, tmp_path / "packs") for name in ("sm_80", "sm_90")]


def test_warm_keeps_kernels_in_the_package_of_an_image(packs: Packs) -> None:
    assert main(["warm", "--architecture", "sm_90", "--in-package"]) == 0
    assert packs.asked == [("cuda", "sm_90", PACKAGE_FOLDER)]


def test_warm_says_if_all_was_compiled_before(packs: Packs, capsys: pytest.CaptureFixture[str]) -> None:
    packs.is_made = True
    assert main(["warm", "--architecture", "sm_90"]) == 0
    assert capsys.readouterr().out == "all kernels were compiled already\n"


def test_warm_prints_json(packs: Packs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", "--architecture", "sm_90", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"made": [str(tmp_path / "packs" / "cuda")]}


def test_warm_names_a_folder_that_cannot_be_written(
    packs: Packs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(packing, "make_cuda_pack", refuse)
    assert main(["warm", "--architecture", "sm_90", "--in-package"]) == 2
    assert str(PACKAGE_FOLDER) in capsys.readouterr().err


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "fusewire_server", "config", "show", "--json"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=True)
    assert "limits.handles" in json.loads(finished.stdout)
