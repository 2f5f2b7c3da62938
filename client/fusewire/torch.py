"""PyTorch's device "fusewire": `import fusewire.torch`, then `model.to("fusewire")`. Needs `fusewire[torch]`."""

from fusewire_torch import connect, session, step

__all__ = ["connect", "session", "step"]
