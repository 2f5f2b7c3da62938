#ifndef FW_HAS_sum_f32
#define FW_HAS_sum_f32
FW_PLAIN_REDUCTION(sum_f32, float, 0.0f, a + b)
#endif
void fw_3549e768ce47a9dfc09d(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const uint16_t *a0 = (const uint16_t *)(slots[operands[0].column] + operands[0].byte_offset);
    const uint16_t *a1 = (const uint16_t *)(slots + operands[1].column);
    uint16_t *o0 = (uint16_t *)(slots[operands[2].column] + operands[2].byte_offset);
    const float v1 = fw_load_f16(*a1);
    float r3[FW_LANES * 1];
    const fw_lanes_sum_f32 l3 = {r3};
    float r3u[FW_LANES * 1];
    const fw_lanes_sum_f32 l3u = {r3u};
    float r3t[FW_LANES * 1];
    const fw_lanes_sum_f32 l3t = {r3t};
    for (int64_t begin = 0, chunk = 0;; begin += FW_CHUNK, chunk++) {
        const int64_t end = n0 - begin > FW_CHUNK ? begin + FW_CHUNK : n0;
        fw_open_sum_f32(l3, 1);
        int64_t base = begin;
        for (; base + FW_LANES <= end; base += FW_LANES) {
            #pragma GCC ivdep
            for (int64_t lane = 0; lane < FW_LANES; lane++) {
                const int64_t i0 = base + lane;
                const float v0 = fw_load_f16(a0[i0]);
                const float v2 = fw_round_f16(fw_square_f32(v0));
                fw_take_sum_f32(l3, lane, v2);
            }
        }
        #pragma GCC ivdep
        for (int64_t lane = 0; lane < end - base; lane++) {
            const int64_t i0 = base + lane;
            const float v0 = fw_load_f16(a0[i0]);
            const float v2 = fw_round_f16(fw_square_f32(v0));
            fw_take_sum_f32(l3, lane, v2);
        }
        fw_tree_sum_f32(l3, 1);
        if (n0 > FW_CHUNK) fw_fold_sum_f32(l3, l3u, l3t, chunk, 1);
        if (end == n0) break;
    }
    if (n0 > FW_CHUNK) fw_total_sum_f32(l3, l3u, l3t, n0, 1);
    const float v3 = fw_round_f16(r3[0]);
    const float v4 = fw_round_f16(v3 / v1);
    o0[0] = fw_store_f16(fw_canonical_f32(v4));
}
