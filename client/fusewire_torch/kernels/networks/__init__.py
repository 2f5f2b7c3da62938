"""Layers, losses."""

from fusewire_torch.kernels.networks import attention, bags, ctc, embeddings, losses, normalisation, recurrent

TABLES = tuple(module.TABLE for module in (attention, bags, ctc, embeddings, losses, normalisation, recurrent))
