"""Text that starts every kernel."""

from functools import cache
from importlib.resources import files

_FILES = {
    "c": ("c.h", "math.h", "order.h", "order_c.h"),
    "cuda": ("cuda.h", "math.h", "order.h", "order_cuda.h"),
}


@cache
def prelude(dialect: str) -> str:
    """Returns the prelude's source for `dialect`, "c" or "cuda". Raises ValueError for any other."""
    if dialect not in _FILES:
        raise ValueError(f"no prelude for dialect {dialect!r}; there is one for {', '.join(_FILES)}")
    return "\n".join(_read(name) for name in _FILES[dialect])


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
