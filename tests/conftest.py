"""What all tests share."""

import pytest
from hypothesis import settings

# Machines that run tests are busy: how long one example takes says nothing.
settings.register_profile("fusewire", deadline=None)
settings.load_profile("fusewire")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The smoke test first: whoever broke everything learns it at once."""
    items.sort(key=lambda item: item.path.name != "test_smoke.py")
