// schedule: points 2
extern "C" __global__ void __launch_bounds__(1024) fw_25181ec2d78343a5447a(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
    const int64_t *sizes = values.sizes;
    slots += blockIdx.z * columns;
    fw_operand operands[5];
    #pragma unroll
    for (int n = 0; n < 5; n++) operands[n] = values.operands[n];
    if (blockIdx.y > 0) {
    #pragma unroll
    for (int n = 0; n < 5; n++) operands[n] = all_operands[blockIdx.y * (int64_t)5 + n];
    }
    if (blockIdx.z > 0 && slots[operands[4].column] == 0) return;
    const int64_t n0 = sizes[0];
    const int64_t n1 = sizes[1];
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0s0 = sizes[2];
    const float *a1 = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    const float *a2 = (const float *)(slots + operands[2].column);
    float *o0 = (float *)(slots[operands[3].column] + operands[3].byte_offset);
    const int64_t o0s0 = sizes[3];
    uint8_t *o1 = (uint8_t *)(slots[operands[4].column] + operands[4].byte_offset);
    const int64_t o1s0 = sizes[4];
    fw_wait_for_kernels_before();
    const int64_t points = n0 * n1;
    fw_let_next_kernel_start();
    #pragma unroll 1  /* an unrolled loop begins with a division, to count its trips */
    for (int64_t point = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; point < points; point += gridDim.x * (int64_t)blockDim.x) {
        int64_t rest = point;
        const int64_t i1 = fw_split_index(&rest, n1);
        const int64_t i0 = rest;
        const float v0 = a0[i0 * a0s0 + i1];
        const float v1 = a1[i1];
        const float v2 = *a2;
        const float v3 = v0 + v1;
        const float v4 = v3 * v2;
        const float v5 = fw_tanh_f32(v4);
        const uint8_t v6 = v0 > v2;
        o0[i0 * o0s0 + i1] = fw_canonical_f32(v5);
        o1[i0 * o1s0 + i1] = v6;
    }
}
