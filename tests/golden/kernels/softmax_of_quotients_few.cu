// schedule: register_rows 1
#ifndef FW_HAS_max_f32
#define FW_HAS_max_f32
FW_PLAIN_REDUCTION(max_f32, float, -FW_INFINITY_F32, fw_maximum_f32(a, b))
#endif
#ifndef FW_HAS_sum_f32
#define FW_HAS_sum_f32
FW_PLAIN_REDUCTION(sum_f32, float, 0.0f, a + b)
#endif
extern "C" __global__ void __launch_bounds__(1024) fw_fa09124275abc3207846_few(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
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
    const float *a1 = (const float *)(slots + operands[1].column);
    float *o0 = (float *)(slots[operands[2].column] + operands[2].byte_offset);
    const int64_t o0s0 = sizes[3];
    fw_wait_for_kernels_before();
    const int64_t points = n0;
    for (int64_t point = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; point < points; point += gridDim.x * (int64_t)blockDim.x) {
        const int64_t i0 = point;
        const float v1 = *a1;
        fw_partial_max_f32 r3 = fw_start_max_f32();
        #pragma unroll
        for (int64_t l1 = 0; l1 < 2 && l1 < n1; l1 += 1) {
            fw_partial_max_f32 q1 = fw_start_max_f32();
            #pragma unroll
            for (int64_t l2 = l1; l2 < 4 && l2 < n1; l2 += 2) {
                fw_partial_max_f32 q2 = fw_start_max_f32();
                #pragma unroll 1
                for (int64_t l4 = l2; l4 < 8 && l4 < n1; l4 += 4) {
                    fw_partial_max_f32 q4 = fw_start_max_f32();
                    #pragma unroll 1
                    for (int64_t l8 = l4; l8 < 16 && l8 < n1; l8 += 8) {
                        fw_partial_max_f32 q8 = fw_start_max_f32();
                        #pragma unroll 1
                        for (int64_t i1 = l8; i1 < 32 && i1 < n1; i1 += 16) {
                            const float v0 = a0[i0 * a0s0 + i1];
                            const float v2 = v0 / v1;
                            fw_take_max_f32(&q8, v2);
                        }
                        fw_merge_max_f32(&q4, q8);
                    }
                    fw_merge_max_f32(&q2, q4);
                }
                fw_merge_max_f32(&q1, q2);
            }
            fw_merge_max_f32(&r3, q1);
        }
        const float v3 = r3.value;
        fw_partial_sum_f32 r6 = fw_start_sum_f32();
        #pragma unroll
        for (int64_t l1 = 0; l1 < 2 && l1 < n1; l1 += 1) {
            fw_partial_sum_f32 q1 = fw_start_sum_f32();
            #pragma unroll
            for (int64_t l2 = l1; l2 < 4 && l2 < n1; l2 += 2) {
                fw_partial_sum_f32 q2 = fw_start_sum_f32();
                #pragma unroll 1
                for (int64_t l4 = l2; l4 < 8 && l4 < n1; l4 += 4) {
                    fw_partial_sum_f32 q4 = fw_start_sum_f32();
                    #pragma unroll 1
                    for (int64_t l8 = l4; l8 < 16 && l8 < n1; l8 += 8) {
                        fw_partial_sum_f32 q8 = fw_start_sum_f32();
                        #pragma unroll 1
                        for (int64_t i1 = l8; i1 < 32 && i1 < n1; i1 += 16) {
                            const float v0 = a0[i0 * a0s0 + i1];
                            const float v2 = v0 / v1;
                            const float v4 = v2 - v3;
                            const float v5 = fw_exp_f32(v4);
                            fw_take_sum_f32(&q8, v5);
                        }
                        fw_merge_sum_f32(&q4, q8);
                    }
                    fw_merge_sum_f32(&q2, q4);
                }
                fw_merge_sum_f32(&q1, q2);
            }
            fw_merge_sum_f32(&r6, q1);
        }
        const float v6 = r6.value;
        fw_let_next_kernel_start_if_many();
        for (int64_t i1 = 0; i1 < n1; i1 += 1) {
            const float v0 = a0[i0 * a0s0 + i1];
            const float v2 = v0 / v1;
            const float v4 = v2 - v3;
            const float v5 = fw_exp_f32(v4);
            const float v7 = v5 / v6;
            o0[i0 * o0s0 + i1] = fw_canonical_f32(v7);
        }
    }
}
