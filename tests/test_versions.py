"""Versions: one line of them, told by the changelog, the package and the workflow that publishes it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import fusewire as fw

_ROOT = Path(__file__).parents[1]
_PROJECT: dict[str, Any] = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_VERSION = re.compile(r"0\.(\d+)\.(\d+)")
_WORKFLOW = _ROOT / ".github" / "workflows" / "ci.yml"
_CHECK_JSONSCHEMA = shutil.which(
    "check-jsonschema", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
)


def _changelog() -> list[str]:
    return re.findall(r"^## (.+)$", (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def _jobs() -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(_WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    return jobs


def _commands(job: str) -> str:
    return "\n".join(step["run"] for step in _jobs()[job]["steps"] if "run" in step)


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    assert _changelog()[0] == _PROJECT["project"]["version"] == fw.__version__


def test_the_changelog_goes_back_in_one_line_of_versions() -> None:
    versions = [tuple(map(int, found.groups())) for found in map(_VERSION.fullmatch, _changelog()) if found]
    assert len(versions) == len(_changelog())
    assert versions == sorted(set(versions), reverse=True)


@pytest.mark.skipif(_CHECK_JSONSCHEMA is None, reason="needs check-jsonschema")
def test_the_workflow_has_the_schema_of_workflows() -> None:
    command = (str(_CHECK_JSONSCHEMA), "--builtin-schema", "vendor.github-workflows", str(_WORKFLOW))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_workflow_tests_the_tree_the_image_and_the_wheels_before_it_publishes() -> None:
    assert _commands("tests") == ".ci/run"
    assert "make deploy-check" in _commands("image")
    assert "cibuildwheel" in _commands("wheels")
    assert set(_jobs()["release"]["needs"]) == {"tests", "image", "wheels"}


def test_a_wheel_is_built_for_each_python_that_is_supported() -> None:
    names = (each.rpartition(" ")[2] for each in _PROJECT["project"]["classifiers"])
    supported = {f"cp{name.replace('.', '')}" for name in names if re.fullmatch(r"3\.\d+", name)}
    assert {*_jobs()["wheels"]["strategy"]["matrix"]["python"]} == supported


def test_the_wheels_are_proven_by_a_program_that_there_is() -> None:
    (program,) = re.findall(r"\{project\}/(\S+)", _PROJECT["tool"]["cibuildwheel"]["test-command"])
    assert (_ROOT / program).is_file()
