"""Compiles the recorder of ops when the package is installed or a wheel is built.

The extension modules lie beside their sources. Where there is no C compiler, or Python's headers are missing, nothing
is compiled, and the installed package records ops in Python. The installation succeeds either way.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from shutil import copy2
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = Path("client/fusewire/_recording")
_PACKAGE = "fusewire._recording"
_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


class RecorderBuildHook(BuildHookInterface[Any]):
    """Builds the extension modules beside their sources, and adds them to wheels that are not editable."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Is called by hatchling before it collects the files of a wheel. `version` is "editable" or "standard"."""
        sources = sorted((Path(self.root) / _FOLDER).glob("*.pyx"))
        try:
            for source in sources:
                _bring_up_to_date(source)
        except Exception as reason:  # noqa: BLE001  # whatever is missing, the recorder in Python replaces this one
            for source in sources:
                _built_from(source).unlink(missing_ok=True)  # it may be older than its source
            self.app.display_warning(f"fusewire will record ops in Python, which is slower: {reason}")
            return
        build_data["pure_python"], build_data["infer_tag"] = False, True
        if version != "editable":
            places = {str(_built_from(source)): f"fusewire/_recording/{_built_from(source).name}" for source in sources}
            build_data["force_include"].update(places)


def _built_from(source: Path) -> Path:
    return source.with_name(source.stem + _SUFFIX)


def _bring_up_to_date(source: Path) -> None:
    built = _built_from(source)
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        _compile(source, built)


def _compile(source: Path, built: Path) -> None:
    # Imported here, because an installation without build isolation may lack them.
    from Cython.Build import cythonize  # noqa: PLC0415
    from setuptools import Distribution, Extension  # noqa: PLC0415

    with TemporaryDirectory() as folder:
        name = f"{_PACKAGE}.{source.stem}"
        extension = Extension(name, [str(source)], extra_compile_args=["-O2", "-g0"] if sys.platform != "win32" else [])
        modules = cythonize([extension], build_dir=folder, quiet=True)
        command = Distribution({"name": "fusewire", "ext_modules": modules}).get_command_obj("build_ext")
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        copy2(command.get_ext_fullpath(name), built)
