void fw_25181ec2d78343a5447a(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const int64_t n1 = sizes[1];
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0s0 = sizes[2];
    const float *a1 = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    const float *a2 = (const float *)(slots + operands[2].column);
    float *o0 = (float *)(slots[operands[3].column] + operands[3].byte_offset);
    const int64_t o0s0 = sizes[3];
    uint8_t *o1 = (uint8_t *)(slots[operands[4].column] + operands[4].byte_offset);
    const int64_t o1s0 = sizes[4];
    const float v2 = *a2;
    for (int64_t i0 = 0; i0 < n0; i0++) {
        #pragma GCC ivdep
        for (int64_t i1 = 0; i1 < n1; i1++) {
            const float v0 = a0[i0 * a0s0 + i1];
            const float v1 = a1[i1];
            const float v3 = v0 + v1;
            const float v4 = v3 * v2;
            const float v5 = fw_tanh_f32(v4);
            const uint8_t v6 = v0 > v2;
            o0[i0 * o0s0 + i1] = fw_canonical_f32(v5);
            o1[i0 * o1s0 + i1] = v6;
        }
    }
}
