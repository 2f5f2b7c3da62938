void fw_2dd8e214d587278fe234(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const int64_t n1 = sizes[1];
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0s0 = sizes[2];
    const float *a1 = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    float *o0 = (float *)(slots[operands[2].column] + operands[2].byte_offset);
    const int64_t o0s0 = sizes[3];
    uint8_t *o1 = (uint8_t *)(slots[operands[3].column] + operands[3].byte_offset);
    const int64_t o1s0 = sizes[4];
    for (int64_t i0 = 0; i0 < n0; i0++) {
        uint8_t c0[FW_POINTS];
        float c1[FW_POINTS];
        for (int64_t first = 0; first < n1; first += FW_POINTS) {
            const int64_t width = n1 - first > FW_POINTS ? FW_POINTS : n1 - first;
            #pragma GCC ivdep
            for (int64_t point = 0; point < width; point++) {
                const int64_t i1 = first + point;
                const float v0 = a0[i0 * a0s0 + i1];
                const float v1 = a1[i1];
                const uint8_t v2 = v0 > v1;
                const float v3 = v0 + v1;
                const float v4 = fw_tanh_f32(v3);
                const float v5 = v4 + v1;
                c0[point] = v2;
                c1[point] = v5;
            }
            #pragma GCC ivdep
            for (int64_t point = 0; point < width; point++) {
                const int64_t i1 = first + point;
                const float v5 = c1[point];
                const float v1 = a1[i1];
                const float v6 = fw_tanh_f32(v5);
                const float v7 = v6 + v1;
                c1[point] = v7;
            }
            #pragma GCC ivdep
            for (int64_t point = 0; point < width; point++) {
                const int64_t i1 = first + point;
                const uint8_t v2 = c0[point];
                const float v7 = c1[point];
                const float v8 = fw_tanh_f32(v7);
                o0[i0 * o0s0 + i1] = fw_canonical_f32(v8);
                o1[i0 * o1s0 + i1] = v2;
            }
        }
    }
}
