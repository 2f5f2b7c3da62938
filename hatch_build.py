"""Compiles what is compiled of Fusewire when the package is installed or a wheel is built.

Without the recorder of ops there is no package: where it cannot be compiled, because there is no C compiler or because
Python's headers are missing, the build fails and says what to install. Without the server's modules the same sources
run as Python, slower. Without the kernels of single ops a server compiles the kernel of an op when a client first uses
the op. Kernels take two to three minutes of a processor; they are left out if FUSEWIRE_BUILD_PACK is 0.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_RECORDER = "build_recorder.py"
_SERVER = "build_server.py"
_PACKS = "kernels/fusewire_kernels/packs"
# Not by PYTHONPATH: of its folders, pip's build environment drops those that an editable installation has too.
_PACK = """
import runpy, sys
sys.path[:0] = ["protos", "kernels"]
runpy.run_module("fusewire_kernels.packing", run_name="__main__", alter_sys=True)
"""
_MODULES = f"*/**/*{sysconfig.get_config_var('EXT_SUFFIX')}"


class CompilingBuildHook(BuildHookInterface[Any]):
    """Builds modules and kernels inside the sources, and adds them to wheels that are not editable."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Is called by hatchling before it collects the files of a wheel. `version` is "editable" or "standard"."""
        self._build_recorder(version, build_data)
        self._build_server(version, build_data)
        if os.environ.get("FUSEWIRE_BUILD_PACK") != "0":
            self._build_pack(version, build_data)

    def _build_recorder(self, version: str, build_data: dict[str, Any]) -> None:
        built = self._run([_RECORDER], os.environ)
        if built.returncode:
            self.app.abort(built.stderr.strip())
        build_data["pure_python"], build_data["infer_tag"] = False, True
        if version != "editable":
            sources = Path(self.root, "client")
            names = {str(path): path.relative_to(sources).as_posix() for path in sources.glob(_MODULES)}
            build_data["force_include"].update(names)

    def _build_server(self, version: str, build_data: dict[str, Any]) -> None:
        built = self._run([_SERVER], os.environ)
        if built.returncode:
            reason = built.stderr.strip().rpartition("\n")[2]
            self.app.display_warning(f"the server runs as Python, because it cannot be compiled: {reason}")
        elif version != "editable":
            sys.path.insert(0, self.root)
            modules = importlib.import_module("build_server").modules_of(Path(self.root))
            names = {str(path): Path(*path.relative_to(self.root).parts[1:]).as_posix() for path in modules}
            build_data["force_include"].update(names)

    def _build_pack(self, version: str, build_data: dict[str, Any]) -> None:
        """Makes the pack of C kernels. One that the sources hold already is made again only if kernels are missing."""
        built = self._run(["-c", _PACK, str(Path(self.root, _PACKS))], os.environ)
        if built.returncode:
            reason = built.stderr.strip().rpartition("\n")[2]
            self.app.display_warning(f"fusewire will compile the kernels of single ops in use: {reason}")
            return
        build_data["pure_python"], build_data["infer_tag"] = False, True
        if version != "editable":
            packs, root = Path(self.root, _PACKS).rglob("*.*"), Path(self.root, "kernels")
            build_data["force_include"].update({str(path): path.relative_to(root).as_posix() for path in packs})

    def _run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Runs Python in the folder of the sources."""
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)
