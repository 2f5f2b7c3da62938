void fw_a91bfc4dea730f738beb(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const float *a1 = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    const float *a2 = (const float *)(slots + operands[2].column);
    float *o0 = (float *)(slots[operands[3].column] + operands[3].byte_offset);
    uint8_t *o1 = (uint8_t *)(slots[operands[4].column] + operands[4].byte_offset);
    const float v2 = *a2;
    #pragma GCC ivdep
    for (int64_t i0 = 0; i0 < n0; i0++) {
        const float v0 = a0[i0];
        const float v1 = a1[i0];
        const float v3 = v0 * v2;
        const float v4 = v3 + v1;
        const uint8_t v5 = v0 > v2;
        o0[i0] = fw_canonical_f32(v4);
        o1[i0] = v5;
    }
}
