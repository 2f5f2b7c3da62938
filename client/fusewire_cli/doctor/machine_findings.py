"""Tells what this machine has. None of it can fail, because a client needs none of it."""

from __future__ import annotations

import ctypes.util
import os
import platform
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from fusewire_cli.doctor.finding import Finding, State

_PACKAGES = ("fusewire", "numpy", "grpcio", "protobuf", "msgpack", "uvloop", "rich", "fastapi", "uvicorn")
_CUPY_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
_NVRTC_PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")
_TORCH_FROM, _TORCH_BELOW = (2, 11), (2, 16)  # the versions with which the device "fusewire" is tested
_GPUS = Path("/proc/driver/nvidia/gpus")
_COMPILED = "fusewire__mypyc"  # the code of the server's compiled modules


def machine_findings() -> Iterator[Finding]:
    """Yields Python, packages, and what a server on this machine would use."""
    compiler = _compiler()
    for name, text in (
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        ("packages", ", ".join(_installed(_PACKAGES))),
        ("torch", _torch()),
        ("server", _server()),
        ("compiler", compiler or "none: a CPU server here would run op by op"),
        ("packs", _packs(has_compiler=compiler is not None)),
        ("gpu", ", ".join(gpu_models(_GPUS)) or "none"),
        ("cupy", ", ".join(_installed(_CUPY_PACKAGES)) or "none; a GPU server needs 'fusewire[server,cuda13]'"),
        ("nvrtc", ", ".join(_installed(_NVRTC_PACKAGES)) or ctypes.util.find_library("nvrtc") or "none"),
    ):
        yield Finding(name, State.OK, text)


def gpu_models(folder: Path) -> list[str]:
    """Returns the models of the GPUs that NVIDIA's driver shows in a folder of /proc."""
    lines = [line for path in sorted(folder.glob("*/information")) for line in path.read_text().splitlines()]
    return [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]


def _torch() -> str:
    """Tells PyTorch's version, and whether its device "fusewire" is tested with it."""
    installed = next(_installed(("torch",)), None)
    if installed is None:
        return "none; the device of PyTorch needs 'fusewire[torch]'"
    numbers = re.match(r"(\d+)\.(\d+)", installed.removeprefix("torch "))
    if numbers and _TORCH_FROM <= tuple(map(int, numbers.groups())) < _TORCH_BELOW:
        return installed
    start, end = (".".join(map(str, each)) for each in (_TORCH_FROM, _TORCH_BELOW))
    return f'{installed}: the device "fusewire" is tested with torch>={start},<{end}'


def _server() -> str:
    if find_spec("fusewire_server") is None:
        return "none"
    if find_spec(_COMPILED) is not None:
        return "compiled"
    return "not compiled: a server here takes fewer steps a second; an installation beside a C compiler compiles it"


def _compiler() -> str | None:
    names = filter(None, (os.environ.get("CC"), "cc", "gcc", "clang"))  # as a server looks for one
    return next((path for name in names if (path := shutil.which(name))), None)


def _packs(*, has_compiler: bool) -> str:
    """Tells the packs of compiled kernels that a server would look into."""
    package = find_spec("fusewire_kernels")  # of the server; it is not imported
    roots = [Path(place) / "packs" for place in (package and package.submodule_search_locations) or ()]
    roots.append(Path(os.environ.get("FUSEWIRE_CACHE_DIR") or "~/.cache/fusewire").expanduser() / "packs")
    found = {index.parent.name for root in roots for index in root.glob("*/index.json")}
    if found:
        return ", ".join(sorted(found))
    without = (
        "a server here compiles ops as they come" if has_compiler else "NumPy would run all ops of a CPU server here"
    )
    return f"none: {without}; `fusewire warm` makes one"


def _installed(packages: tuple[str, ...]) -> Iterator[str]:
    for package in packages:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
