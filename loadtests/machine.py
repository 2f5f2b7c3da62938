"""Describes the machine that the figures were measured on."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("fusewire", "numpy", "grpcio", "protobuf", "msgpack", "uvloop", "torch", "cupy-cuda13x", "cupy-cuda12x")


def describe() -> dict[str, object]:
    """Returns the processor, the cores, the versions, and the load of the machine at the time of the call."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "compiler": _first_line("cc", "--version"),
        "gpu": _first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
        "packages": {package: found for package in _PACKAGES if (found := _version(package))},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command: str, *arguments: str) -> str | None:
    path = shutil.which(command)
    if path is None:
        return None
    done = subprocess.run((path, *arguments), capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0] if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
