"""The documents for readers: README runs, links lead somewhere, promises have tests, and what is to be short is so."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from fusewire.testing import serve_subprocess
from fusewire_server.config.config import Device, Limits, Listen
from loadtests.microbenchmarks.catalogue import choose
from tests.faults import bystander
from tests.faults import server as servers
from tests.faults import test_attacks as attacks
from tests.faults import test_costly_frames as costly_frames
from tests.faults import test_cut_connections as cut_connections
from tests.faults import test_drain as drain
from tests.faults import test_first_reads as first_reads
from tests.faults import test_full_disk as full_disk
from tests.faults import test_host_memory as host_memory
from tests.faults import test_large_op as large_op
from tests.patience import HANGS_S

_ROOT = Path(__file__).parents[1]
_DOCUMENTS = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md"), _ROOT / "deploy" / "README.md"])
_SECURITY = _ROOT / "docs" / "security.md"
_DECISIONS = _ROOT / "docs" / "decisions"
_LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)(?:#(?P<heading>[^)]*))?\)")
_TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>test_\w+)`")
_SOURCE = re.compile(r"`(?P<path>[\w./]+/[\w]+\.(?:py|h|md|proto|toml))`")
_README_TARGET, _README_HTTP = "localhost:7423", "localhost:7424"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _headings(path: Path) -> set[str]:
    """As links name them: in small letters, joined by hyphens."""
    titles = re.findall(r"^#+ (.+)$", _text(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_program_in_readme_runs() -> None:
    program, _ = re.findall(r"```python\n(.*?)```", _text(_ROOT / "README.md"), re.DOTALL)
    assert _README_TARGET in program
    with serve_subprocess("cpu") as server:
        command = [sys.executable, "-c", program.replace(_README_TARGET, server.grpc)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=True)
    assert re.search(r"^99\.\d% correct$", ran.stdout, re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_curl_session_in_readme_works_as_printed() -> None:
    (session,) = re.findall(r"```console\n(.*?)```", _text(_ROOT / "README.md"), re.DOTALL)
    commands = re.findall(r"^\$ (.+)$", session, re.MULTILINE)
    with serve_subprocess("cpu") as server:
        printed = []
        for command in commands:
            run = ["bash", "-c", command.replace(_README_HTTP, server.http)]
            ran = subprocess.run(run, capture_output=True, text=True, timeout=HANGS_S, check=True)
            printed.append(f"$ {command}\n{ran.stdout.rstrip()}\n")
    assert "".join(printed) == session


def test_every_block_of_readme_is_run_or_has_a_reason() -> None:
    """By the language of each block or its first words: the test that runs it, or why none does."""
    runs = {
        "mermaid": "a drawing",
        "import numpy": "tests/test_documents.py::test_the_program_in_readme_runs",
        "import fusewire.torch": "tests/torch/test_readme.py::test_the_second_program_of_the_readme_learns",
        "make demo": "it runs all tests, and these hold the parts of the demo (tests/client/examples)",
        "pip install": "tests/deploy/test_installation.py::test_a_server_that_was_installed_as_readme_says_serves",
        "console": "tests/test_documents.py::test_the_curl_session_in_readme_works_as_printed",
    }
    blocks = re.findall(r"^```([^\n]*)\n([^\n]*)\n.*?^```$", _text(_ROOT / "README.md"), re.MULTILINE | re.DOTALL)
    kinds = [" ".join(first.split()[:2]) if language in ("", "python") else language for language, first in blocks]
    assert kinds == [*runs]
    for path, _, test in (each.partition("::") for each in runs.values() if "::" in each):
        assert f"\ndef {test}(" in _text(_ROOT / path)


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    for link in _LINK.finditer(_text(document)):
        target = (document.parent / link["path"]) if link["path"] else document
        assert target.exists(), link[0]
        assert not link["heading"] or link["heading"] in _headings(target), link[0]


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_every_source_that_is_named_is_there(document: Path) -> None:
    """From the root, or within a package."""
    packages = [_ROOT, *(init.parent for init in _ROOT.glob("*/*/__init__.py"))]
    for source in _SOURCE.finditer(_text(document)):
        assert any((package / source["path"]).is_file() for package in packages), source[0]


def test_the_index_lists_every_decision_with_its_title() -> None:
    index = re.findall(r"^(\d+)\. \[(.+)\]\((.+)\)$", _text(_DECISIONS / "README.md"), re.MULTILINE)
    pages = {path.name: _text(path).partition("\n")[0] for path in _DECISIONS.glob("[0-9]*.md")}
    assert {name: f"# {number}. {title}" for number, title, name in index} == pages


def test_the_commands_of_decisions_name_figures_that_there_are() -> None:
    pages = "\n".join(map(_text, _DECISIONS.glob("[0-9]*.md")))
    named = re.findall(r"loadtests bench --only ([\w ]+)`", " ".join(pages.split()))
    assert named
    assert choose("cpu", frozenset(" ".join(named).split()))


def _promises() -> list[str]:
    """The lines of the table of promises."""
    _, _, promised = _text(_SECURITY).partition("## What is promised")
    return [line for line in promised.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]


def test_each_promise_names_the_tests_that_show_it() -> None:
    for promise in _promises():
        shown_by = [*_TEST.finditer(promise.rpartition(" | ")[2])]
        assert shown_by, promise
        for test in shown_by:
            assert re.search(rf"^def {test['name']}\(", _text(_ROOT / test["path"]), re.MULTILINE), test[0]


def test_the_limits_of_promises_are_those_of_their_tests() -> None:
    limits = {
        "test_long_messages_without_a_token_take_little_memory": f"{bystander.STRANGERS_GROWTH_BYTES >> 20} MiB; "
        f"{bystander.LEFT_BYTES >> 20} MiB; {bystander.STEP_S:g} s; {bystander.NEWCOMER_S:g} s",
        "test_silent_connections_do_not_shut_newcomers_out_for_long": f"{attacks.RECOVERY_S:g} s; "
        f"{bystander.STEP_S:g} s",
        "test_inspection_answers_the_health_check_within_a_second": f"{bystander.HEALTH_S:g} s",
        "test_a_server_ends_in_time_beside_a_session": f"`limits.drain_s` + {drain.WITHIN_S - drain.DRAIN_S:g} s",
        "test_a_server_ends_in_time_beside_costly_frames": "`limits.drain_s` + "
        f"{costly_frames.WITHIN_S - costly_frames.DRAIN_S:g} s",
        "test_a_stopped_client_is_noticed": f"{attacks.NOTICED_S:g} s",
        "test_silence_is_noticed_on_both_sides_and_the_session_goes_on": f"{cut_connections.NOTICED_WITHIN_S:g} s",
        "test_a_session_that_is_closed_without_a_connection_leaves_nothing_on_the_server": ""
        f"{cut_connections.PARTED_WITHIN_S:g} s if it can be reached, else `limits.resume_grace_s`",
        "test_a_token_that_is_revoked_through_a_symbolic_link_ends_its_sessions": f"{attacks.REVOKED_S:g} s",
        "test_what_fails_takes_little_for_each_byte_that_came": f"{host_memory.A_BYTE} bytes; "
        f"{host_memory.BASIS_BYTES >> 20} MiB; {host_memory.UNEXPLAINED_BYTES >> 20} MiB",
        "test_a_quiet_client_waits_little_longer_than_beside_honest_clients": "; ".join(
            f"{ratio:g} ×" for ratio in costly_frames.MOST_RATIO.values()
        ),
        "test_a_quiet_client_on_another_front_end_waits_little_longer": "; ".join(
            f"{ratio:g} ×" for ratio in costly_frames.MOST_RATIO_OVER_FRONT_ENDS.values()
        ),
        "test_a_busy_machine_makes_plans_late_and_fails_no_program": f"none; {servers.PLANNED_WITHIN_S:g} s in which "
        "the processors are free",
        "test_a_first_read_beside_busy_processes_takes_at_most_two_seconds": "three later reads and 5 ms; "
        f"{first_reads.MOST_BESIDE_BUSY_PROCESSES_S:g} s",
        "test_a_large_product_makes_nobody_wait_for_its_end": f"{large_op.MOST_STEP_S:g} s",
        "test_programs_are_compiled_when_a_full_disk_has_room_again": f"none; {full_disk.MADE_AGAIN_WITHIN_S:g} s",
    }
    promised = {test["name"]: promise.split(" | ")[3] for promise in _promises() for test in _TEST.finditer(promise)}
    assert {name: promised[name] for name in limits} == limits


def test_the_settings_that_promises_name_are_there() -> None:
    named = re.findall(r"`(limits|device|listen)\.(\w+)`", _text(_SECURITY))
    sections = {"limits": fields(Limits), "device": fields(Device), "listen": fields(Listen)}
    there = {(section, each.name) for section, settings in sections.items() for each in settings}
    assert named
    assert {*named} - there == set()


def test_architecture_is_read_in_one_sitting() -> None:
    assert (_ROOT / "ARCHITECTURE.md").stat().st_size <= 11 << 10


def test_the_changelog_fits_a_screen() -> None:
    assert len(_text(_ROOT / "CHANGELOG.md").splitlines()) <= 60
