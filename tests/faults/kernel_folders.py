"""New folders for a server's compiled kernels and temporary files, and what killed processes have left in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE, is_whole
from fusewire_kernels.compile.cache_eviction import ENTRY_PREFIX, UNIT_PREFIX, WORKER_PREFIX
from tests.shell_programs import shell_program

COMPILER_NAME = "cc"

# Stands for a compiler that takes long: it begins to compile only when a file does not exist.
_COMPILER = """\
while [ -e {long} ]; do sleep 0.1; done
exec {compiler} "$@"
"""


class Folders:
    """The cache of a server and its folder for temporary files, both new, and a compiler that can be made slow."""

    def __init__(self, parent: Path) -> None:
        self.cache, self.temporary, self.takes_long = parent / "cache", parent / "temporary", parent / "long"
        self.cache.mkdir()
        self.temporary.mkdir()
        script = _COMPILER.format(long=self.takes_long, compiler=shutil.which(COMPILER_NAME))
        compiler = shell_program(parent / COMPILER_NAME, script)
        self.environment = {
            CACHE_VARIABLE: str(self.cache),
            "TMPDIR": str(self.temporary),
            "CC": str(compiler),
            # A server starts sooner if Python finds what it has compiled for servers of other tests.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(parent.parent / "bytecode"),
        }

    def are_tidy(self) -> bool:
        """Returns whether nothing is left of workers and compilers."""
        return not self.of_workers() and not self.unfinished()

    def of_workers(self) -> set[Path]:
        return set(self.cache.glob(f"{WORKER_PREFIX}*"))

    def unfinished(self) -> list[Path]:
        """Returns the files that compilers are writing, or have left behind."""
        kept = (UNIT_PREFIX, ENTRY_PREFIX, "tidied")
        files = [path for path in self.cache.rglob("*") if not path.name.startswith((*kept, WORKER_PREFIX))]
        return [*files, *self.temporary.iterdir()]

    def damaged(self) -> list[Path]:
        """Returns the compiled files that are not whole, and the entries without a file."""
        units = [unit for unit in self.cache.glob(f"{UNIT_PREFIX}*") if not is_whole(unit)]
        return units + [entry for entry in self.cache.glob(f"{ENTRY_PREFIX}*") if not entry.exists()]
