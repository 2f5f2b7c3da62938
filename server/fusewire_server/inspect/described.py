"""Marks data whose fields are described in the OpenAPI document by the text below each field.

Each text tells the meaning of the field and its unit.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Described:
    """Base of a dataclass with such fields."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)


class DescribedModel(BaseModel):
    """Base of a Pydantic model with such fields."""

    model_config = ConfigDict(use_attribute_docstrings=True)
