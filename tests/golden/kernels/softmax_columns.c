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
void fw_26da41ad46b3ebb50a54(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const int64_t n1 = sizes[1];
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0s1 = sizes[2];
    float *o0 = (float *)(slots[operands[1].column] + operands[1].byte_offset);
    const int64_t o0s1 = sizes[3];
    int64_t *o1 = (int64_t *)(slots[operands[2].column] + operands[2].byte_offset);
    for (int64_t first = 0; first < n0; first += FW_COLUMNS) {
        const int64_t width = n0 - first > FW_COLUMNS ? FW_COLUMNS : n0 - first;
        float r1[FW_LANES * FW_COLUMNS];
        const fw_lanes_max_f32 l1 = {r1};
        float r1u[FW_LANES * FW_COLUMNS];
        const fw_lanes_max_f32 l1u = {r1u};
        float r1t[FW_LANES * FW_COLUMNS];
        const fw_lanes_max_f32 l1t = {r1t};
        float r6[FW_LANES * FW_COLUMNS];
        int64_t p6[FW_LANES * FW_COLUMNS];
        const fw_lanes_argmax_f32 l6 = {r6, p6};
        float r6u[FW_LANES * FW_COLUMNS];
        int64_t p6u[FW_LANES * FW_COLUMNS];
        const fw_lanes_argmax_f32 l6u = {r6u, p6u};
        float r6t[FW_LANES * FW_COLUMNS];
        int64_t p6t[FW_LANES * FW_COLUMNS];
        const fw_lanes_argmax_f32 l6t = {r6t, p6t};
        for (int64_t begin = 0, chunk = 0;; begin += FW_CHUNK, chunk++) {
            const int64_t end = n1 - begin > FW_CHUNK ? begin + FW_CHUNK : n1;
            fw_open_max_f32(l1, FW_COLUMNS);
            fw_open_argmax_f32(l6, FW_COLUMNS);
            for (int64_t i1 = begin; i1 < end; i1++) {
                const int64_t lane = (i1 - begin) % FW_LANES * FW_COLUMNS;
                #pragma GCC ivdep
                for (int64_t column = 0; column < width; column++) {
                    const int64_t i0 = first + column;
                    const float v0 = a0[i0 + i1 * a0s1];
                    fw_take_max_f32(l1, lane + column, v0);
                    fw_take_argmax_f32(l6, lane + column, v0, i1);
                }
            }
            fw_tree_max_f32(l1, FW_COLUMNS);
            if (n1 > FW_CHUNK) fw_fold_max_f32(l1, l1u, l1t, chunk, FW_COLUMNS);
            fw_tree_argmax_f32(l6, FW_COLUMNS);
            if (n1 > FW_CHUNK) fw_fold_argmax_f32(l6, l6u, l6t, chunk, FW_COLUMNS);
            if (end == n1) break;
        }
        if (n1 > FW_CHUNK) fw_total_max_f32(l1, l1u, l1t, n1, FW_COLUMNS);
        if (n1 > FW_CHUNK) fw_total_argmax_f32(l6, l6u, l6t, n1, FW_COLUMNS);
        float r4[FW_LANES * FW_COLUMNS];
        const fw_lanes_sum_f32 l4 = {r4};
        float r4u[FW_LANES * FW_COLUMNS];
        const fw_lanes_sum_f32 l4u = {r4u};
        float r4t[FW_LANES * FW_COLUMNS];
        const fw_lanes_sum_f32 l4t = {r4t};
        for (int64_t begin = 0, chunk = 0;; begin += FW_CHUNK, chunk++) {
            const int64_t end = n1 - begin > FW_CHUNK ? begin + FW_CHUNK : n1;
            fw_open_sum_f32(l4, FW_COLUMNS);
            for (int64_t i1 = begin; i1 < end; i1++) {
                const int64_t lane = (i1 - begin) % FW_LANES * FW_COLUMNS;
                #pragma GCC ivdep
                for (int64_t column = 0; column < width; column++) {
                    const int64_t i0 = first + column;
                    const float v1 = r1[column];
                    const float v0 = a0[i0 + i1 * a0s1];
                    const float v2 = v0 - v1;
                    const float v3 = fw_exp_f32(v2);
                    fw_take_sum_f32(l4, lane + column, v3);
                }
            }
            fw_tree_sum_f32(l4, FW_COLUMNS);
            if (n1 > FW_CHUNK) fw_fold_sum_f32(l4, l4u, l4t, chunk, FW_COLUMNS);
            if (end == n1) break;
        }
        if (n1 > FW_CHUNK) fw_total_sum_f32(l4, l4u, l4t, n1, FW_COLUMNS);
        for (int64_t i1 = 0; i1 < n1; i1++) {
            #pragma GCC ivdep
            for (int64_t column = 0; column < width; column++) {
                const int64_t i0 = first + column;
                const float v1 = r1[column];
                const float v4 = r4[column];
                const float v0 = a0[i0 + i1 * a0s1];
                const float v2 = v0 - v1;
                const float v3 = fw_exp_f32(v2);
                const float v5 = v3 / v4;
                o0[i0 + i1 * o0s1] = fw_canonical_f32(v5);
            }
        }
        #pragma GCC ivdep
        for (int64_t column = 0; column < width; column++) {
            const int64_t i0 = first + column;
            const int64_t v6 = p6[column];
            o1[i0] = v6;
        }
    }
}
