"""Marks data whose fields are described in the OpenAPI document by the text below each field."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict


class Described:
    """Base of a dataclass with such fields. Each text tells the meaning of its field and the unit."""

    __slots__ = ()

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)
