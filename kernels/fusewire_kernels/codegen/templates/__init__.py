"""Text of whole algorithms."""

from functools import cache
from importlib.resources import files


@cache
def template(name: str) -> str:
    """Returns the text of the template in the file `name`."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
