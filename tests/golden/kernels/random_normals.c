void fw_569b695fb05cf8a177ac(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const uint64_t *a0 = (const uint64_t *)(slots + operands[0].column);
    const uint64_t *a1 = (const uint64_t *)(slots + operands[1].column);
    const uint64_t *a2 = (const uint64_t *)(slots + operands[2].column);
    float *o0 = (float *)(slots[operands[3].column] + operands[3].byte_offset);
    const uint64_t v0 = *a0;
    const uint64_t v1 = *a1;
    const uint64_t v2 = *a2;
    #pragma GCC ivdep
    for (int64_t i0 = 0; i0 < n0; i0++) {
        const int64_t v3 = i0;
        const uint64_t v4 = fw_cast_i64_u64(v3);
        const uint64_t v5 = fw_add_u64(v0, v4);
        const uint64_t v6 = fw_random_bits_u64(v5, v1, v2);
        const double v7 = fw_normal_of_bits_u64(v6);
        const float v8 = fw_cast_f64_f32(v7);
        o0[i0] = fw_canonical_f32(v8);
    }
}
