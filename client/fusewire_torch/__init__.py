"""PyTorch's device.

Its tensors are plain `torch.Tensor` whose elements are arrays on a Fusewire server.

Importing this package registers the device and its kernels with PyTorch. The first tensor connects to the server that
`FUSEWIRE_TARGET` names, unless `connect` was called.
"""

from fusewire._recording.compiled_modules import import_compiled

import_compiled("fusewire_torch.storage")  # which says how to compile it, before another module needs it

from fusewire_torch.captured.compiled_graphs import compile_backend, teach_compiling  # noqa: E402
from fusewire_torch.captured.step import step  # noqa: E402
from fusewire_torch.connection import connect, session  # noqa: E402
from fusewire_torch.device import register_device  # noqa: E402
from fusewire_torch.dispatch.registration import register_kernels  # noqa: E402
from fusewire_torch.explaining import explain  # noqa: E402
from fusewire_torch.moving import teach_moving  # noqa: E402
from fusewire_torch.profiling import teach_profiling  # noqa: E402
from fusewire_torch.saving import teach_saving  # noqa: E402
from fusewire_torch.storage_calls import teach_storages  # noqa: E402

__all__ = ["compile_backend", "connect", "explain", "session", "step"]

register_device()
register_kernels()
teach_saving()
teach_storages()
teach_moving()
teach_profiling()
teach_compiling()
