"""Compiles the recorder of ops when the package is installed or a wheel is built.

Where that fails, because there is no C compiler or because Python's headers are missing, the installation succeeds, and
ops are recorded in Python.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SCRIPT = "build_recorder.py"
_MODULES = f"client/fusewire/_recording/*{sysconfig.get_config_var('EXT_SUFFIX')}"


class RecorderBuildHook(BuildHookInterface[Any]):
    """Builds the extension modules beside their sources, and adds them to wheels that are not editable."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Is called by hatchling before it collects the files of a wheel. `version` is "editable" or "standard"."""
        built = subprocess.run([sys.executable, _SCRIPT], cwd=self.root, capture_output=True, text=True, check=False)
        if built.returncode:
            reason = built.stderr.strip().rpartition("\n")[2]
            self.app.display_warning(f"fusewire will record ops in Python, which is slower: {reason}")
            return
        build_data["pure_python"], build_data["infer_tag"] = False, True
        if version != "editable":
            modules = Path(self.root).glob(_MODULES)
            build_data["force_include"].update({str(path): f"fusewire/_recording/{path.name}" for path in modules})
