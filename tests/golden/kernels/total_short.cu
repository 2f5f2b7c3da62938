// schedule: register_rows 0
#ifndef FW_HAS_sum_f32
#define FW_HAS_sum_f32
FW_PLAIN_REDUCTION(sum_f32, float, 0.0f, a + b)
#endif
extern "C" __global__ void __launch_bounds__(512, 2) fw_3549e768ce47a9dfc09d_short(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
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
    const uint16_t *a0 = (const uint16_t *)(slots[operands[0].column] + operands[0].byte_offset);
    const uint16_t *a1 = (const uint16_t *)(slots + operands[1].column);
    uint16_t *o0 = (uint16_t *)(slots[operands[2].column] + operands[2].byte_offset);
    fw_wait_for_kernels_before();
    FW_SHARED(shared, FW_LANES);
    const int warps = fw_warps_of_row(n0);
    const int lane = threadIdx.x % FW_LANES, warp = threadIdx.x / FW_LANES % warps;
    const int own = warp * FW_LANES + lane;
    const int64_t groups = blockDim.x / (FW_LANES * warps);
    const int64_t points = (int64_t)1;
    for (int64_t point = blockIdx.x * groups + threadIdx.x / (FW_LANES * warps); point < points; point += gridDim.x * groups) {
        const int64_t first = warp * FW_CHUNK + lane;
        const int64_t i0 = first;
        const int count = first < n0 ? fw_lesser((n0 - first - 1) / FW_LANES + 1, FW_STEPS) : 0;
        const uint16_t *p0 = &a0[i0];
        const float v1 = fw_load_f16(*a1);
        float k0[FW_STEPS];
        fw_partial_sum_f32 r3 = fw_start_sum_f32();
        #pragma unroll
        for (int step = 0; step < FW_STEPS; step++) {
            if (step >= count) break;
            const int64_t i0 = first + step * FW_LANES;
            const float v0 = fw_load_f16(__ldg(&p0[step * FW_LANES]));
            k0[step] = v0;
        }
        #pragma unroll
        for (int step = 0; step < FW_STEPS; step++) {
            if (step >= count) break;
            const int64_t i0 = first + step * FW_LANES;
            const float v0 = k0[step];
            const float v2 = fw_round_f16(fw_square_f32(v0));
            fw_take_sum_f32(&r3, v2);
        }
        r3 = fw_tree_in_warp_sum_f32(r3);
        if (warps > 1) r3 = fw_tree_of_warps_sum_f32(r3, warps, shared);
        const float v3 = fw_round_f16(r3.value);
        const float v4 = fw_round_f16(v3 / v1);
        fw_let_next_kernel_start_if_many();
        if (own == 0) {
            o0[0] = fw_store_f16(fw_canonical_f32(v4));
        }
    }
}
