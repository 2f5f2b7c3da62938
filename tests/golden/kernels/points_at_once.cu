// schedule: points 1
extern "C" __global__ void __launch_bounds__(1024) fw_a91bfc4dea730f738beb(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
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
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const float *a1 = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    const float *a2 = (const float *)(slots + operands[2].column);
    float *o0 = (float *)(slots[operands[3].column] + operands[3].byte_offset);
    uint8_t *o1 = (uint8_t *)(slots[operands[4].column] + operands[4].byte_offset);
    fw_wait_for_kernels_before();
    const int64_t points = n0;
    fw_let_next_kernel_start();
    const float v2 = *a2;
    const int64_t apart = gridDim.x * (int64_t)blockDim.x;
    #pragma unroll 1  /* an unrolled loop begins with a division, to count its trips */
    for (int64_t first = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; first < points; first += 4 * apart) {
        float k0[4];
        float k1[4];
        #pragma unroll
        for (int n = 0; n < 4; n++) {
            const int64_t i0 = first + n * apart;
            if (i0 < points) {
                const float v0 = a0[i0];
                k0[n] = v0;
                const float v1 = a1[i0];
                k1[n] = v1;
            }
        }
        #pragma unroll
        for (int n = 0; n < 4; n++) {
            const int64_t i0 = first + n * apart;
            if (i0 < points) {
                const float v0 = k0[n];
                const float v1 = k1[n];
                const float v3 = v0 * v2;
                const float v4 = v3 + v1;
                const uint8_t v5 = v0 > v2;
                o0[i0] = fw_canonical_f32(v4);
                o1[i0] = v5;
            }
        }
    }
}
