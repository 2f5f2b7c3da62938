// schedule: points 1
extern "C" __global__ void __launch_bounds__(1024) fw_569b695fb05cf8a177ac(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
    const int64_t *sizes = values.sizes;
    slots += blockIdx.z * columns;
    fw_operand operands[4];
    #pragma unroll
    for (int n = 0; n < 4; n++) operands[n] = values.operands[n];
    if (blockIdx.y > 0) {
    #pragma unroll
    for (int n = 0; n < 4; n++) operands[n] = all_operands[blockIdx.y * (int64_t)4 + n];
    }
    if (blockIdx.z > 0 && slots[operands[3].column] == 0) return;
    const int64_t n0 = sizes[0];
    const uint64_t *a0 = (const uint64_t *)(slots + operands[0].column);
    const uint64_t *a1 = (const uint64_t *)(slots + operands[1].column);
    const uint64_t *a2 = (const uint64_t *)(slots + operands[2].column);
    float *o0 = (float *)(slots[operands[3].column] + operands[3].byte_offset);
    fw_wait_for_kernels_before();
    const int64_t points = n0;
    fw_let_next_kernel_start();
    #pragma unroll 1  /* an unrolled loop begins with a division, to count its trips */
    for (int64_t point = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; point < points; point += gridDim.x * (int64_t)blockDim.x) {
        const int64_t i0 = point;
        const uint64_t v0 = *a0;
        const uint64_t v1 = *a1;
        const uint64_t v2 = *a2;
        const int64_t v3 = i0;
        const uint64_t v4 = fw_cast_i64_u64(v3);
        const uint64_t v5 = fw_add_u64(v0, v4);
        const uint64_t v6 = fw_random_bits_u64(v5, v1, v2);
        const double v7 = fw_normal_of_bits_u64(v6);
        const float v8 = fw_cast_f64_f32(v7);
        o0[i0] = fw_canonical_f32(v8);
    }
}
