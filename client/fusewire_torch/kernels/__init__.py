"""PyTorch's ops.

A file holds those of a topic, as a table that says how each is recorded.
"""

from fusewire_torch.kernels import (
    attention,
    bags,
    convolution,
    copies,
    creation,
    ctc,
    distances,
    embeddings,
    foreach,
    grids,
    indexing,
    linalg,
    losses,
    normalisation,
    ordering,
    pointwise,
    pools,
    products,
    random,
    rearranging,
    recurrent,
    reductions,
    resampling,
    scaling,
    scattering,
    special,
    views,
)

TABLES = tuple(
    module.TABLE
    for module in (
        attention,
        bags,
        convolution,
        copies,
        creation,
        ctc,
        distances,
        embeddings,
        foreach,
        grids,
        indexing,
        linalg,
        losses,
        normalisation,
        ordering,
        pointwise,
        pools,
        products,
        random,
        recurrent,
        reductions,
        resampling,
        scaling,
        scattering,
        special,
        rearranging,
        views,
    )
)
