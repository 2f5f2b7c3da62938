"""Compiles the recorder of ops, and PyTorch's way to it: each extension module is written beside its source.

`python build_recorder.py` needs Cython, setuptools, a C compiler and Python's headers, and says which of them is
missing. Modules that are newer than their sources, and than the parts that these include, stay as they are. If a module
cannot be compiled, old ones are removed.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import copy2, which
from tempfile import TemporaryDirectory

SOURCES = Path("client")
FOLDERS = (SOURCES / "fusewire" / "_recording", SOURCES / "fusewire_torch")
_PARTS = "compiled/*.pxi"
_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


class CannotCompileError(Exception):
    """Something that compiling needs is missing. The message names it and says what to install."""


def modules_of(root: Path) -> dict[Path, Path]:
    """Returns the sources below `root`, each with the path of its module."""
    sources = [source for folder in FOLDERS for source in sorted((root / folder).glob("*.pyx"))]
    return {source: source.with_name(source.stem + _SUFFIX) for source in sources}


def bring_up_to_date(root: Path) -> None:
    """Compiles what is missing or older than its source. Raises CannotCompileError, or what the compilers raise."""
    modules = modules_of(root)
    outdated = [each for each in modules.items() if _is_outdated(*each)]
    try:
        if outdated:
            check_tools({"Cython": "cython", "setuptools": "setuptools"})
        for source, module in outdated:
            _compile(source, module, ".".join(source.relative_to(root / SOURCES).with_suffix("").parts))
    except BaseException:
        for module in modules.values():
            module.unlink(missing_ok=True)
        raise


def _is_outdated(source: Path, module: Path) -> bool:
    sources = (source, *source.parent.glob(_PARTS))
    return not module.exists() or module.stat().st_mtime < max(each.stat().st_mtime for each in sources)


def check_tools(packages: Mapping[str, str]) -> None:
    """Raises CannotCompileError if a package, a C compiler or Python's headers are missing.

    `packages` maps the name of each package to the name by which pip installs it.
    """
    for package in packages:
        if find_spec(package) is None:
            installed = " ".join(packages.values())
            raise CannotCompileError(f"{package} is missing: run `{sys.executable} -m pip install {installed}`")
    if sys.platform != "win32":  # there setuptools looks for the compiler, and Python brings its headers
        _check_compiler(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
        _check_headers(Path(sysconfig.get_path("include")))


def _check_compiler(command: str) -> None:
    name = shlex.split(command)[0]
    if which(name) is None:
        raise CannotCompileError(
            f"there is no C compiler {name!r}: install gcc (on Debian and Ubuntu `apt-get install gcc libc6-dev`, on "
            "Fedora `dnf install gcc`), or name another compiler in the variable CC"
        )


def _check_headers(folder: Path) -> None:
    if not (folder / "Python.h").exists():
        raise CannotCompileError(
            f"Python's headers are missing: there is no {folder / 'Python.h'}; install them (on Debian and Ubuntu "
            "`apt-get install python3-dev`, on Fedora `dnf install python3-devel`)"
        )


def _compile(source: Path, module: Path, name: str) -> None:
    # Imported here, so that a build that compiles nothing does not need them.
    from Cython.Build import cythonize  # noqa: PLC0415
    from setuptools import Distribution, Extension  # noqa: PLC0415

    flags = [] if sys.platform == "win32" else ["-O2", "-g0"]
    with TemporaryDirectory() as folder:
        extensions = cythonize([Extension(name, [str(source)], extra_compile_args=flags)], build_dir=folder, quiet=True)
        command = Distribution({"name": "fusewire", "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        copy2(command.get_ext_fullpath(name), module)


if __name__ == "__main__":
    try:
        bring_up_to_date(Path(__file__).parent)
    except CannotCompileError as reason:
        sys.exit(f"The recorder of ops cannot be compiled: {reason}")
