void fw_201d9bc80a69c56c8563(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const int64_t n1 = sizes[1];
    const uint16_t *a0 = (const uint16_t *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0n = sizes[2];
    const int64_t a0g = sizes[3];
    const int64_t *a1 = (const int64_t *)(slots[operands[1].column] + operands[1].byte_offset);
    uint16_t *o0 = (uint16_t *)(slots[operands[2].column] + operands[2].byte_offset);
    const int64_t o0s0 = sizes[4];
    for (int64_t i0 = 0; i0 < n0; i0++) {
        const int64_t v1 = a1[i0];
        #pragma GCC ivdep
        for (int64_t i1 = 0; i1 < n1; i1++) {
            const float v2 = fw_load_f16(a0[fw_clip_i64(v1, 0, a0n - 1) * a0g + i1]);
            const int64_t v3 = i1;
            const float v4 = fw_cast_i64_f16(v3);
            const float v5 = fw_round_f16(v2 + v4);
            o0[i0 * o0s0 + i1] = fw_store_f16(fw_canonical_f32(v5));
        }
    }
}
