"""PyTorch's device "fusewire": `import fusewire.torch`, then `model.to("fusewire")`. Needs `fusewire[torch]`."""

from fusewire_torch import compile_backend, connect, explain, session, step

__all__ = ["compile_backend", "connect", "explain", "session", "step"]
