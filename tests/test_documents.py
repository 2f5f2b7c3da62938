"""The documents for readers: README's program runs, links lead somewhere, and what is to be short is short."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire.testing import serve_subprocess
from loadtests.microbenchmarks.catalogue import choose
from tests.patience import HANGS_S

_ROOT = Path(__file__).parents[1]
_DOCUMENTS = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md"), _ROOT / "deploy" / "README.md"])
_DECISIONS = _ROOT / "docs" / "decisions"
_LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)(?:#(?P<heading>[^)]*))?\)")
_SOURCE = re.compile(r"`(?P<path>[\w./]+/[\w]+\.(?:py|h|md|proto|toml))`")
_README_TARGET, _README_HTTP = "localhost:7423", "localhost:7424"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _headings(path: Path) -> set[str]:
    """As links name them: in small letters, joined by hyphens."""
    titles = re.findall(r"^#+ (.+)$", _text(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_program_in_readme_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", _text(_ROOT / "README.md"), re.DOTALL)
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
        "python": "tests/test_documents.py::test_the_program_in_readme_runs",
        "make demo": "it runs all tests, and these hold the parts of the demo (tests/client/examples)",
        "pip install": "tests/deploy/test_installation.py::test_a_server_that_was_installed_as_readme_says_serves",
        "console": "tests/test_documents.py::test_the_curl_session_in_readme_works_as_printed",
    }
    blocks = re.findall(r"^```([^\n]*)\n([^\n]*)\n.*?^```$", _text(_ROOT / "README.md"), re.MULTILINE | re.DOTALL)
    kinds = [language or " ".join(first.split()[:2]) for language, first in blocks]
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


def test_architecture_is_read_in_one_sitting() -> None:
    assert (_ROOT / "ARCHITECTURE.md").stat().st_size <= 10 << 10


def test_the_changelog_fits_a_screen() -> None:
    assert len(_text(_ROOT / "CHANGELOG.md").splitlines()) <= 60
