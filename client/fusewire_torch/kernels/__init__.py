"""PyTorch's ops.

A file holds those of a topic, as a table that says how each is recorded.
"""

from fusewire_torch.kernels import (
    arrangement,
    complex,  # noqa: A004  # the topic of a folder
    creation,
    elementwise,
    images,
    linear_algebra,
    networks,
    reduction,
)

_FOLDERS = (arrangement, complex, creation, elementwise, images, linear_algebra, networks, reduction)
TABLES = tuple(table for folder in _FOLDERS for table in folder.TABLES)
