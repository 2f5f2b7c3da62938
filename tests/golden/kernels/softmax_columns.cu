// schedule: columns 1
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
extern "C" __global__ void __launch_bounds__(1024) fw_26da41ad46b3ebb50a54(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
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
    const int64_t a0s1 = sizes[2];
    float *o0 = (float *)(slots[operands[1].column] + operands[1].byte_offset);
    const int64_t o0s1 = sizes[3];
    int64_t *o1 = (int64_t *)(slots[operands[2].column] + operands[2].byte_offset);
    fw_wait_for_kernels_before();
    FW_SHARED(shared, FW_LANES * FW_LANES);
    const int warps = FW_LANES, lane = threadIdx.x / FW_LANES;
    const int64_t points = n0, apart = gridDim.x * (int64_t)FW_LANES;
    for (int64_t of_block = blockIdx.x * (int64_t)FW_LANES; of_block < points; of_block += apart) {
        const int64_t wanted = of_block + threadIdx.x % FW_LANES;
        const bool is_inside = wanted < points;
        const int64_t point = fw_lesser(wanted, points - 1);
        const int64_t i0 = point;
        fw_partial_max_f32 r1 = fw_start_max_f32();
        for (int64_t segment = 0; segment == 0 || segment < n1; segment += FW_SEGMENT) {
            fw_partial_max_f32 u = fw_start_max_f32();
            const int64_t segment_end = fw_lesser(segment + FW_SEGMENT, n1);
            for (int64_t begin = segment; begin < segment_end; begin += FW_CHUNK) {
                fw_partial_max_f32 r = fw_start_max_f32();
                const int64_t end = fw_lesser(begin + FW_CHUNK, n1);
                for (int64_t i1 = begin + lane; i1 < end; i1 += FW_LANES) {
                    const float v0 = a0[i0 + i1 * a0s1];
                    fw_take_max_f32(&r, v0);
                }
                r = fw_tree_of_columns_max_f32(r, shared);
                if (lane == begin / FW_CHUNK % FW_LANES) fw_merge_max_f32(&u, r);
            }
            u = fw_tree_of_columns_max_f32(u, shared);
            if (lane == segment / FW_SEGMENT % FW_LANES) fw_merge_max_f32(&r1, u);
        }
        r1 = fw_tree_of_columns_max_f32(r1, shared);
        const float v1 = r1.value;
        fw_partial_argmax_f32 r6 = fw_start_argmax_f32();
        for (int64_t segment = 0; segment == 0 || segment < n1; segment += FW_SEGMENT) {
            fw_partial_argmax_f32 u = fw_start_argmax_f32();
            const int64_t segment_end = fw_lesser(segment + FW_SEGMENT, n1);
            for (int64_t begin = segment; begin < segment_end; begin += FW_CHUNK) {
                fw_partial_argmax_f32 r = fw_start_argmax_f32();
                const int64_t end = fw_lesser(begin + FW_CHUNK, n1);
                for (int64_t i1 = begin + lane; i1 < end; i1 += FW_LANES) {
                    const float v0 = a0[i0 + i1 * a0s1];
                    fw_take_argmax_f32(&r, v0, i1);
                }
                r = fw_tree_of_columns_argmax_f32(r, shared);
                if (lane == begin / FW_CHUNK % FW_LANES) fw_merge_argmax_f32(&u, r);
            }
            u = fw_tree_of_columns_argmax_f32(u, shared);
            if (lane == segment / FW_SEGMENT % FW_LANES) fw_merge_argmax_f32(&r6, u);
        }
        r6 = fw_tree_of_columns_argmax_f32(r6, shared);
        const int64_t v6 = r6.position;
        fw_partial_sum_f32 r4 = fw_start_sum_f32();
        for (int64_t segment = 0; segment == 0 || segment < n1; segment += FW_SEGMENT) {
            fw_partial_sum_f32 u = fw_start_sum_f32();
            const int64_t segment_end = fw_lesser(segment + FW_SEGMENT, n1);
            for (int64_t begin = segment; begin < segment_end; begin += FW_CHUNK) {
                fw_partial_sum_f32 r = fw_start_sum_f32();
                const int64_t end = fw_lesser(begin + FW_CHUNK, n1);
                for (int64_t i1 = begin + lane; i1 < end; i1 += FW_LANES) {
                    const float v0 = a0[i0 + i1 * a0s1];
                    const float v2 = v0 - v1;
                    const float v3 = fw_exp_f32(v2);
                    fw_take_sum_f32(&r, v3);
                }
                r = fw_tree_of_columns_sum_f32(r, shared);
                if (lane == begin / FW_CHUNK % FW_LANES) fw_merge_sum_f32(&u, r);
            }
            u = fw_tree_of_columns_sum_f32(u, shared);
            if (lane == segment / FW_SEGMENT % FW_LANES) fw_merge_sum_f32(&r4, u);
        }
        r4 = fw_tree_of_columns_sum_f32(r4, shared);
        const float v4 = r4.value;
        fw_let_next_kernel_start_if_many();
        if (is_inside) {
            for (int64_t i1 = lane; i1 < n1; i1 += FW_LANES) {
                const float v0 = a0[i0 + i1 * a0s1];
                const float v2 = v0 - v1;
                const float v3 = fw_exp_f32(v2);
                const float v5 = v3 / v4;
                o0[i0 + i1 * o0s1] = fw_canonical_f32(v5);
            }
        }
        if (lane == 0 && is_inside) {
            o1[i0] = v6;
        }
    }
}
