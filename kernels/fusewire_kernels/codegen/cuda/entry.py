"""What each CUDA kernel that a plan launches begins with: the statements that read its parameters. Pure."""

from __future__ import annotations

WAIT, LET_NEXT_START = "fw_wait_for_kernels_before();", "fw_let_next_kernel_start();"
MOST_SIZES, MOST_OPERANDS = 48, 12  # of a launch, passed as parameters: the numbers in the prelude


def instance_lines(sizes: int, arity: int) -> list[str]:
    """Returns the statements that turn the parameters of a launch into the parameters of one instance of one row.

    The last of the `arity` operands is a result.
    """
    of_instance = f"blockIdx.y * (int64_t){arity}"
    # A captured graph may have more rows than a submission. The address of a result is zero in the others alone.
    skip = f"if (blockIdx.z > 0 && slots[operands[{arity - 1}].column] == 0) return;"
    lines = [
        f"const int64_t *sizes = {'values.sizes' if sizes <= MOST_SIZES else 'all_sizes'};",
        "slots += blockIdx.z * columns;",
    ]
    if arity > MOST_OPERANDS:
        return [*lines, f"const fw_operand *operands = all_operands + {of_instance};", skip]
    return [
        *lines,
        f"fw_operand operands[{arity}];",
        "#pragma unroll",
        f"for (int n = 0; n < {arity}; n++) operands[n] = values.operands[n];",
        "if (blockIdx.y > 0) {",
        "#pragma unroll",
        f"for (int n = 0; n < {arity}; n++) operands[n] = all_operands[{of_instance} + n];",
        "}",
        skip,
    ]
