"""What the doctor tells of this machine."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from fusewire_cli.doctor import machine_findings as machine
from fusewire_cli.doctor.finding import State
from fusewire_cli.doctor.machine_findings import gpu_models, machine_findings


def test_the_machine_is_described_and_nothing_is_a_fault() -> None:
    findings = list(machine_findings())
    names = [finding.name for finding in findings]
    assert names == ["python", "packages", "torch", "server", "compiler", "packs", "gpu", "cupy", "nvrtc"]
    assert {finding.state for finding in findings} == {State.OK}
    assert all(finding.text for finding in findings)
    assert "numpy " in findings[1].text


def test_the_compiler_that_cc_names_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "owncc"
    own.touch(mode=0o755)
    monkeypatch.setenv("CC", str(own))
    assert next(each.text for each in machine_findings() if each.name == "compiler") == str(own)


@pytest.mark.parametrize("version", ["2.11.0", "2.13.0+cpu", "2.15.1"])
def test_a_tested_torch_is_told_by_its_version(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "version", lambda name: version)
    assert machine._torch() == f"torch {version}"


@pytest.mark.parametrize("version", ["1.13.1", "2.10.0", "2.16.0.dev20270101", "3.0.0", "unknown"])
def test_of_an_untested_torch_the_tested_versions_are_told(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "version", lambda name: version)
    assert machine._torch() == f'torch {version}: the device "fusewire" is tested with torch>=2.11,<2.16'


def test_without_torch_it_is_told_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(machine, "version", absent)
    assert machine._torch() == "none; the device of PyTorch needs 'fusewire[torch]'"


@pytest.mark.parametrize(
    ("there", "text"),
    [((), "none"), (("fusewire_server",), "not compiled"), (("fusewire_server", "fusewire__mypyc"), "compiled")],
)
def test_it_is_told_whether_the_server_is_compiled(
    there: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "find_spec", lambda name: object() if name in there else None)
    assert machine._server().startswith(text)


def test_without_a_compiler_the_consequence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert "op by op" in next(each.text for each in machine_findings() if each.name == "compiler")


def test_gpus_are_named_by_their_driver(tmp_path: Path) -> None:
    assert gpu_models(tmp_path / "absent") == []
    for bus in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / bus).mkdir()
        (tmp_path / bus / "information").write_text("Model: \t\t NVIDIA H100\nIRQ: 1\n")
    assert gpu_models(tmp_path) == ["NVIDIA H100", "NVIDIA H100"]
