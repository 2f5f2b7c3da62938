"""An element from each place."""

from fusewire_torch.kernels.elementwise import (
    bessel,
    foreach,
    optimizers,
    pointwise,
    polynomials,
    sample_gradients,
    scaling,
    special,
)

TABLES = tuple(
    module.TABLE for module in (bessel, foreach, optimizers, pointwise, polynomials, sample_gradients, scaling, special)
)
