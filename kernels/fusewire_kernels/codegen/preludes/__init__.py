"""Text that starts every kernel."""

from functools import cache
from importlib.resources import files

from fusewire_kernels.codegen.dialect import dialect_of


@cache
def prelude(dialect: str) -> str:
    """Returns the prelude's source for the dialect of this name. Raises ValueError if there is none."""
    return "\n".join(map(_read, dialect_of(dialect).prelude))


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
