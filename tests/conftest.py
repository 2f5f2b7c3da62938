"""What all tests share."""

from hypothesis import settings

# Machines that run tests are busy: how long one example takes says nothing.
settings.register_profile("fusewire", deadline=None)
settings.load_profile("fusewire")
