"""Compiles the recorder of ops: each extension module is written beside its source.

`python build_recorder.py` needs Cython, setuptools, a C compiler and Python's headers. Modules that are newer than
their sources stay as they are. If a module cannot be compiled, old ones are removed, and ops are recorded in Python.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from shutil import copy2
from tempfile import TemporaryDirectory

FOLDER = Path("client/fusewire/_recording")
_PACKAGE = "fusewire._recording"
_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def modules_of(root: Path) -> dict[Path, Path]:
    """Returns the sources below `root`, each with the path of its module."""
    return {source: source.with_name(source.stem + _SUFFIX) for source in sorted((root / FOLDER).glob("*.pyx"))}


def bring_up_to_date(root: Path) -> None:
    """Compiles what is missing or older than its source. Raises what the compilers raise."""
    modules = modules_of(root)
    try:
        for source, module in modules.items():
            if not module.exists() or module.stat().st_mtime < source.stat().st_mtime:
                _compile(source, module)
    except BaseException:
        for module in modules.values():
            module.unlink(missing_ok=True)
        raise


def _compile(source: Path, module: Path) -> None:
    # Imported here, so that a build that compiles nothing does not need them.
    from Cython.Build import cythonize  # noqa: PLC0415
    from setuptools import Distribution, Extension  # noqa: PLC0415

    name = f"{_PACKAGE}.{source.stem}"
    flags = [] if sys.platform == "win32" else ["-O2", "-g0"]
    with TemporaryDirectory() as folder:
        extensions = cythonize([Extension(name, [str(source)], extra_compile_args=flags)], build_dir=folder, quiet=True)
        command = Distribution({"name": "fusewire", "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        copy2(command.get_ext_fullpath(name), module)


if __name__ == "__main__":
    bring_up_to_date(Path(__file__).parent)
