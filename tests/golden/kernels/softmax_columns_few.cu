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
extern "C" __global__ void __launch_bounds__(1024) fw_26da41ad46b3ebb50a54_few(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
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
    const int64_t points = n0;
    for (int64_t point = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; point < points; point += gridDim.x * (int64_t)blockDim.x) {
        const int64_t i0 = point;
        fw_partial_max_f32 r1 = fw_start_max_f32();
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
                            const float v0 = a0[i0 + i1 * a0s1];
                            fw_take_max_f32(&q8, v0);
                        }
                        fw_merge_max_f32(&q4, q8);
                    }
                    fw_merge_max_f32(&q2, q4);
                }
                fw_merge_max_f32(&q1, q2);
            }
            fw_merge_max_f32(&r1, q1);
        }
        const float v1 = r1.value;
        fw_partial_argmax_f32 r6 = fw_start_argmax_f32();
        #pragma unroll
        for (int64_t l1 = 0; l1 < 2 && l1 < n1; l1 += 1) {
            fw_partial_argmax_f32 q1 = fw_start_argmax_f32();
            #pragma unroll
            for (int64_t l2 = l1; l2 < 4 && l2 < n1; l2 += 2) {
                fw_partial_argmax_f32 q2 = fw_start_argmax_f32();
                #pragma unroll 1
                for (int64_t l4 = l2; l4 < 8 && l4 < n1; l4 += 4) {
                    fw_partial_argmax_f32 q4 = fw_start_argmax_f32();
                    #pragma unroll 1
                    for (int64_t l8 = l4; l8 < 16 && l8 < n1; l8 += 8) {
                        fw_partial_argmax_f32 q8 = fw_start_argmax_f32();
                        #pragma unroll 1
                        for (int64_t i1 = l8; i1 < 32 && i1 < n1; i1 += 16) {
                            const float v0 = a0[i0 + i1 * a0s1];
                            fw_take_argmax_f32(&q8, v0, i1);
                        }
                        fw_merge_argmax_f32(&q4, q8);
                    }
                    fw_merge_argmax_f32(&q2, q4);
                }
                fw_merge_argmax_f32(&q1, q2);
            }
            fw_merge_argmax_f32(&r6, q1);
        }
        const int64_t v6 = r6.position;
        fw_partial_sum_f32 r4 = fw_start_sum_f32();
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
                            const float v0 = a0[i0 + i1 * a0s1];
                            const float v2 = v0 - v1;
                            const float v3 = fw_exp_f32(v2);
                            fw_take_sum_f32(&q8, v3);
                        }
                        fw_merge_sum_f32(&q4, q8);
                    }
                    fw_merge_sum_f32(&q2, q4);
                }
                fw_merge_sum_f32(&q1, q2);
            }
            fw_merge_sum_f32(&r4, q1);
        }
        const float v4 = r4.value;
        fw_let_next_kernel_start_if_many();
        for (int64_t i1 = 0; i1 < n1; i1 += 1) {
            const float v0 = a0[i0 + i1 * a0s1];
            const float v2 = v0 - v1;
            const float v3 = fw_exp_f32(v2);
            const float v5 = v3 / v4;
            o0[i0 + i1 * o0s1] = fw_canonical_f32(v5);
        }
        {
            o1[i0] = v6;
        }
    }
}
