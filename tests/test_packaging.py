"""What is installed: four whole and typed packages, and a client that needs its base dependencies only."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fusewire.testing import serve_subprocess
from tests.patience import HANGS_S

REPOSITORY = Path(__file__).parent.parent
SOURCE_ROOTS = {
    "protos": ("fusewire_protos",),
    "kernels": ("fusewire_kernels",),
    "server": ("fusewire_server",),
    "client": ("fusewire", "fusewire_cli", "fusewire_torch"),
}
PACKAGES = [package for packages in SOURCE_ROOTS.values() for package in packages]
CLIENT_DEPENDENCIES = {"numpy", "grpcio", "protobuf", "msgpack"}
COMPILED = "fusewire__mypyc"  # the code of all compiled modules, where they are compiled
# What these bring: gRPC needs typing_extensions.
CLIENT_MODULES = ["fusewire", "fusewire_protos", COMPILED, "numpy", "grpc", "google", "msgpack", "typing_extensions"]
EXTRAS = {"server", "cuda12", "cuda13", "cli", "demo", "torch", "load", "dev"}

# Prints which of the names in argv[1] an import of fusewire asked for, with none of them importable.
IMPORT_FUSEWIRE_WITHOUT = """
import json, sys

class Refuse:
    def __init__(self, names):
        self.names, self.asked_for = set(names), set()

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            self.asked_for.add(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

refuse = Refuse(json.loads(sys.argv[1]))
sys.meta_path.insert(0, refuse)
import fusewire
print(json.dumps(sorted(refuse.asked_for)))
"""

# Computes on the server at argv[1] with only the modules named in argv[2] importable beside Python's own, and prints
# what it reads.
COMPUTE_WITH = """
import json, sys

allowed = {*sys.stdlib_module_names, *json.loads(sys.argv[2])}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
import fusewire, numpy
with fusewire.connect(sys.argv[1]) as session:
    large = session.array(numpy.arange(1 << 20, dtype=numpy.float32))
    state = large[:4]
    for _ in range(100):
        state = fusewire.maximum(state * 0.5, 1).astype(fusewire.bfloat16).astype(fusewire.float32)
    print(json.dumps([state.numpy().tolist(), (large - 1).numpy()[-2:].tolist()]))
"""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return project


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    environment = {**os.environ, "FUSEWIRE_BUILD_PACK": "0"}  # its kernels would take minutes
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True, timeout=HANGS_S)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize(("source_root", "packages"), SOURCE_ROOTS.items())
def test_a_source_root_holds_its_packages_and_nothing_loose(source_root: str, packages: tuple[str, ...]) -> None:
    python_files = (REPOSITORY / source_root).rglob("*.py")
    top_level_names = {path.relative_to(REPOSITORY / source_root).parts[0] for path in python_files}
    assert top_level_names == set(packages)


@pytest.mark.parametrize("source_root", SOURCE_ROOTS)
def test_the_wheel_holds_every_file_of_each_package(source_root: str, wheel_names: set[str]) -> None:
    root = REPOSITORY / source_root
    sources = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and not {"__pycache__", "packs"} & {*path.parts}
    }
    assert sources <= wheel_names


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_that_it_is_typed(package: str, wheel_names: set[str]) -> None:
    assert f"{package}/py.typed" in wheel_names


def test_the_wheel_holds_nothing_beside_the_packages_and_its_metadata(wheel_names: set[str]) -> None:
    top_level_names = {name.partition("/")[0] for name in wheel_names if name.partition(".")[0] != COMPILED}
    (metadata_folder,) = top_level_names - set(PACKAGES)
    assert metadata_folder.endswith(".dist-info")


def test_base_dependencies_are_the_clients_only(project: dict[str, Any]) -> None:
    names = {dependency.partition(">")[0] for dependency in project["dependencies"]}
    assert names == CLIENT_DEPENDENCIES


def test_the_extras_are_the_documented_ones(project: dict[str, Any]) -> None:
    assert set(project["optional-dependencies"]) == EXTRAS


def test_fusewire_imports_without_the_service_its_extras_or_cuda() -> None:
    absent = ["fusewire_kernels", "fusewire_server", "cupy", "cuda", "fastapi", "uvicorn", "uvloop"]
    absent += [
        "ml_dtypes",
        "rich",
        "matplotlib",
    ]  # gRPC itself loads its health and reflection where they are installed
    command = [sys.executable, "-W", "error", "-c", IMPORT_FUSEWIRE_WITHOUT, json.dumps(absent)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == []


def test_a_client_computes_with_nothing_but_its_base_dependencies() -> None:
    with serve_subprocess("cpu") as server:
        command = [sys.executable, "-W", "error", "-c", COMPUTE_WITH, server.grpc, json.dumps(CLIENT_MODULES)]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == [[1.0] * 4, [2.0**20 - 3, 2.0**20 - 2]]
