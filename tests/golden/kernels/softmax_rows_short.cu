// schedule: register_rows 1
#ifndef FW_HAS_argmax_f32
#define FW_HAS_argmax_f32
FW_POSITIONAL_REDUCTION(argmax_f32, float, -FW_INFINITY_F32, b > a)
#endif
#ifndef FW_HAS_max_f32
#define FW_HAS_max_f32
FW_PLAIN_REDUCTION(max_f32, float, -FW_INFINITY_F32, fw_maximum_f32(a, b))
#endif
#ifndef FW_HAS_sum_f32
#define FW_HAS_sum_f32
FW_PLAIN_REDUCTION(sum_f32, float, 0.0f, a + b)
#endif
extern "C" __global__ void __launch_bounds__(512, 2) fw_cc9fea0bbf4e0cfe538c_short(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
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
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0s0 = sizes[2];
    float *o0 = (float *)(slots[operands[1].column] + operands[1].byte_offset);
    const int64_t o0s0 = sizes[3];
    int64_t *o1 = (int64_t *)(slots[operands[2].column] + operands[2].byte_offset);
    fw_wait_for_kernels_before();
    FW_SHARED(shared, FW_LANES);
    const int warps = fw_warps_of_row(n1);
    const int lane = threadIdx.x % FW_LANES, warp = threadIdx.x / FW_LANES % warps;
    const int own = warp * FW_LANES + lane;
    const int64_t groups = blockDim.x / (FW_LANES * warps);
    const int64_t points = n0;
    for (int64_t point = blockIdx.x * groups + threadIdx.x / (FW_LANES * warps); point < points; point += gridDim.x * groups) {
        const int64_t i0 = point;
        const int64_t first = warp * FW_CHUNK + lane;
        const int64_t i1 = first;
        const int count = first < n1 ? fw_lesser((n1 - first - 1) / FW_LANES + 1, FW_STEPS) : 0;
        const float *p0 = &a0[i0 * a0s0 + i1];
        float *q0 = &o0[i0 * o0s0 + i1];
        float k0[FW_STEPS];
        fw_partial_max_f32 r1 = fw_start_max_f32();
        fw_partial_argmax_f32 r6 = fw_start_argmax_f32();
        #pragma unroll
        for (int step = 0; step < FW_STEPS; step++) {
            if (step >= count) break;
            const int64_t i1 = first + step * FW_LANES;
            const float v0 = __ldg(&p0[step * FW_LANES]);
            k0[step] = v0;
        }
        #pragma unroll
        for (int step = 0; step < FW_STEPS; step++) {
            if (step >= count) break;
            const int64_t i1 = first + step * FW_LANES;
            const float v0 = k0[step];
            fw_take_max_f32(&r1, v0);
            fw_take_argmax_f32(&r6, v0, i1);
        }
        r1 = fw_tree_in_warp_max_f32(r1);
        if (warps > 1) r1 = fw_tree_of_warps_max_f32(r1, warps, shared);
        const float v1 = r1.value;
        r6 = fw_tree_in_warp_argmax_f32(r6);
        if (warps > 1) r6 = fw_tree_of_warps_argmax_f32(r6, warps, shared);
        const int64_t v6 = r6.position;
        fw_partial_sum_f32 r4 = fw_start_sum_f32();
        #pragma unroll
        for (int step = 0; step < FW_STEPS; step++) {
            if (step >= count) break;
            const int64_t i1 = first + step * FW_LANES;
            const float v0 = k0[step];
            const float v2 = v0 - v1;
            const float v3 = fw_exp_f32(v2);
            k0[step] = v3;
            fw_take_sum_f32(&r4, v3);
        }
        r4 = fw_tree_in_warp_sum_f32(r4);
        if (warps > 1) r4 = fw_tree_of_warps_sum_f32(r4, warps, shared);
        const float v4 = r4.value;
        fw_let_next_kernel_start_if_many();
        const fw_divisor_f32 d4 = fw_as_divisor_f32(v4);
        #pragma unroll
        for (int step = 0; step < FW_STEPS; step++) {
            if (step >= count) break;
            const int64_t i1 = first + step * FW_LANES;
            const float v3 = k0[step];
            const float v5 = fw_divide_by_f32(v3, d4);
            q0[step * FW_LANES] = fw_canonical_f32(v5);
        }
        if (own == 0) {
            o1[i0] = v6;
        }
    }
}
