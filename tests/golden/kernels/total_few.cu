// schedule: register_rows 0
#ifndef FW_HAS_sum_f32
#define FW_HAS_sum_f32
FW_PLAIN_REDUCTION(sum_f32, float, 0.0f, a + b)
#endif
extern "C" __global__ void __launch_bounds__(1024) fw_3549e768ce47a9dfc09d_few(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
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
    const int64_t points = (int64_t)1;
    for (int64_t point = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; point < points; point += gridDim.x * (int64_t)blockDim.x) {
        const float v1 = fw_load_f16(*a1);
        fw_partial_sum_f32 r3 = fw_start_sum_f32();
        #pragma unroll
        for (int64_t l1 = 0; l1 < 2 && l1 < n0; l1 += 1) {
            fw_partial_sum_f32 q1 = fw_start_sum_f32();
            #pragma unroll
            for (int64_t l2 = l1; l2 < 4 && l2 < n0; l2 += 2) {
                fw_partial_sum_f32 q2 = fw_start_sum_f32();
                #pragma unroll 1
                for (int64_t l4 = l2; l4 < 8 && l4 < n0; l4 += 4) {
                    fw_partial_sum_f32 q4 = fw_start_sum_f32();
                    #pragma unroll 1
                    for (int64_t l8 = l4; l8 < 16 && l8 < n0; l8 += 8) {
                        fw_partial_sum_f32 q8 = fw_start_sum_f32();
                        #pragma unroll 1
                        for (int64_t i0 = l8; i0 < 32 && i0 < n0; i0 += 16) {
                            const float v0 = fw_load_f16(a0[i0]);
                            const float v2 = fw_round_f16(fw_square_f32(v0));
                            fw_take_sum_f32(&q8, v2);
                        }
                        fw_merge_sum_f32(&q4, q8);
                    }
                    fw_merge_sum_f32(&q2, q4);
                }
                fw_merge_sum_f32(&q1, q2);
            }
            fw_merge_sum_f32(&r3, q1);
        }
        const float v3 = fw_round_f16(r3.value);
        const float v4 = fw_round_f16(v3 / v1);
        fw_let_next_kernel_start_if_many();
        {
            o0[0] = fw_store_f16(fw_canonical_f32(v4));
        }
    }
}
