// schedule: points 2
extern "C" __global__ void __launch_bounds__(1024) fw_201d9bc80a69c56c8563(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
    const int64_t *sizes = values.sizes;
    slots += blockIdx.z * columns;
    fw_operand operands[3];
    #pragma unroll
    for (int n = 0; n < 3; n++) operands[n] = values.operands[n];
    if (blockIdx.y > 0) {
    #pragma unroll
    for (int n = 0; n < 3; n++) operands[n] = all_operands[blockIdx.y * (int64_t)3 + n];
    }
    if (blockIdx.z > 0 && slots[operands[2].column] == 0) return;
    const int64_t n0 = sizes[0];
    const int64_t n1 = sizes[1];
    const uint16_t *a0 = (const uint16_t *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0n = sizes[2];
    const int64_t a0g = sizes[3];
    const int64_t *a1 = (const int64_t *)(slots[operands[1].column] + operands[1].byte_offset);
    uint16_t *o0 = (uint16_t *)(slots[operands[2].column] + operands[2].byte_offset);
    const int64_t o0s0 = sizes[4];
    fw_wait_for_kernels_before();
    const int64_t points = n0 * n1;
    fw_let_next_kernel_start();
    #pragma unroll 1  /* an unrolled loop begins with a division, to count its trips */
    for (int64_t point = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; point < points; point += gridDim.x * (int64_t)blockDim.x) {
        int64_t rest = point;
        const int64_t i1 = fw_split_index(&rest, n1);
        const int64_t i0 = rest;
        const int64_t v1 = a1[i0];
        const float v2 = fw_load_f16(a0[fw_clip_i64(v1, 0, a0n - 1) * a0g + i1]);
        const int64_t v3 = i1;
        const float v4 = fw_cast_i64_f16(v3);
        const float v5 = fw_round_f16(v2 + v4);
        o0[i0 * o0s0 + i1] = fw_store_f16(fw_canonical_f32(v5));
    }
}
