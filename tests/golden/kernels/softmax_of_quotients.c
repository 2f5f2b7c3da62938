#ifndef FW_HAS_max_f32
#define FW_HAS_max_f32
FW_PLAIN_REDUCTION(max_f32, float, -FW_INFINITY_F32, fw_maximum_f32(a, b))
#endif
#ifndef FW_HAS_sum_f32
#define FW_HAS_sum_f32
FW_PLAIN_REDUCTION(sum_f32, float, 0.0f, a + b)
#endif
void fw_fa09124275abc3207846(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const int64_t n1 = sizes[1];
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0s0 = sizes[2];
    const float *a1 = (const float *)(slots + operands[1].column);
    float *o0 = (float *)(slots[operands[2].column] + operands[2].byte_offset);
    const int64_t o0s0 = sizes[3];
    const float v1 = *a1;
    for (int64_t i0 = 0; i0 < n0; i0++) {
        float r3[FW_LANES * 1];
        const fw_lanes_max_f32 l3 = {r3};
        float r3u[FW_LANES * 1];
        const fw_lanes_max_f32 l3u = {r3u};
        float r3t[FW_LANES * 1];
        const fw_lanes_max_f32 l3t = {r3t};
        for (int64_t begin = 0, chunk = 0;; begin += FW_CHUNK, chunk++) {
            const int64_t end = n1 - begin > FW_CHUNK ? begin + FW_CHUNK : n1;
            fw_open_max_f32(l3, 1);
            int64_t base = begin;
            for (; base + FW_LANES <= end; base += FW_LANES) {
                #pragma GCC ivdep
                for (int64_t lane = 0; lane < FW_LANES; lane++) {
                    const int64_t i1 = base + lane;
                    const float v0 = a0[i0 * a0s0 + i1];
                    const float v2 = v0 / v1;
                    fw_take_max_f32(l3, lane, v2);
                }
            }
            #pragma GCC ivdep
            for (int64_t lane = 0; lane < end - base; lane++) {
                const int64_t i1 = base + lane;
                const float v0 = a0[i0 * a0s0 + i1];
                const float v2 = v0 / v1;
                fw_take_max_f32(l3, lane, v2);
            }
            fw_tree_max_f32(l3, 1);
            if (n1 > FW_CHUNK) fw_fold_max_f32(l3, l3u, l3t, chunk, 1);
            if (end == n1) break;
        }
        if (n1 > FW_CHUNK) fw_total_max_f32(l3, l3u, l3t, n1, 1);
        const float v3 = r3[0];
        float r6[FW_LANES * 1];
        const fw_lanes_sum_f32 l6 = {r6};
        float r6u[FW_LANES * 1];
        const fw_lanes_sum_f32 l6u = {r6u};
        float r6t[FW_LANES * 1];
        const fw_lanes_sum_f32 l6t = {r6t};
        for (int64_t begin = 0, chunk = 0;; begin += FW_CHUNK, chunk++) {
            const int64_t end = n1 - begin > FW_CHUNK ? begin + FW_CHUNK : n1;
            fw_open_sum_f32(l6, 1);
            int64_t base = begin;
            for (; base + FW_LANES <= end; base += FW_LANES) {
                #pragma GCC ivdep
                for (int64_t lane = 0; lane < FW_LANES; lane++) {
                    const int64_t i1 = base + lane;
                    const float v0 = a0[i0 * a0s0 + i1];
                    const float v2 = v0 / v1;
                    const float v4 = v2 - v3;
                    const float v5 = fw_exp_f32(v4);
                    fw_take_sum_f32(l6, lane, v5);
                }
            }
            #pragma GCC ivdep
            for (int64_t lane = 0; lane < end - base; lane++) {
                const int64_t i1 = base + lane;
                const float v0 = a0[i0 * a0s0 + i1];
                const float v2 = v0 / v1;
                const float v4 = v2 - v3;
                const float v5 = fw_exp_f32(v4);
                fw_take_sum_f32(l6, lane, v5);
            }
            fw_tree_sum_f32(l6, 1);
            if (n1 > FW_CHUNK) fw_fold_sum_f32(l6, l6u, l6t, chunk, 1);
            if (end == n1) break;
        }
        if (n1 > FW_CHUNK) fw_total_sum_f32(l6, l6u, l6t, n1, 1);
        const float v6 = r6[0];
        #pragma GCC ivdep
        for (int64_t i1 = 0; i1 < n1; i1++) {
            const float v0 = a0[i0 * a0s0 + i1];
            const float v2 = v0 / v1;
            const float v4 = v2 - v3;
            const float v5 = fw_exp_f32(v4);
            const float v7 = v5 / v6;
            o0[i0 * o0s0 + i1] = fw_canonical_f32(v7);
        }
    }
}
