#ifndef FW_PERSISTENT
#define FW_PERSISTENT

/* The iterations of a loop that one launch runs. Row r runs `counts[r]` iterations. `slots` has the slots of the `first`
 * first iterations, and then those of the last iterations of each row; nothing is read or written by the slots of the
 * iterations in between. A result is stored in the last `tail` iterations, or in all of them if its bit of `each` is
 * set. An operand is read again in each iteration if its bit of `moving` is set. */
typedef struct {
    const int64_t *slots; /* int64[entries][rows][columns] */
    const int64_t *counts; /* int64[rows] */
    int64_t rows, columns, first, entries, tail;
    uint64_t moving, each;
} fw_loop;

/* The slots of an iteration of this block's row. */
FW_FN const int64_t *fw_slots_of(const fw_loop &loop, int64_t count, int64_t iteration) {
    const int64_t entry = iteration < loop.first ? iteration : iteration - count + loop.entries;
    return loop.slots + (entry * loop.rows + blockIdx.z) * loop.columns;
}

/* Keeps a value in a register. The compiler would read a parameter again in each iteration. */
FW_FN bool fw_in_register(bool value) {
    uint32_t kept = value;
    asm volatile("" : "+r"(kept));
    return kept != 0;
}
#endif
extern "C" __global__ void __launch_bounds__(256) fw_61114688cb2cbb35cd33(const int64_t *sizes, const fw_operand *operands, const __grid_constant__ fw_loop loop) {
    const int64_t count = loop.counts[blockIdx.z];
    const int64_t *slots = fw_slots_of(loop, count, 0);
    const int64_t n0 = sizes[0];
    const uint16_t *a0 = (const uint16_t *)(slots[operands[0].column] + operands[0].byte_offset);
    const uint16_t *a1 = (const uint16_t *)(slots + operands[1].column);
    const uint16_t *a2 = (const uint16_t *)(slots[operands[2].column] + operands[2].byte_offset);
    const uint16_t *a3 = (const uint16_t *)(slots + operands[3].column);
    const int32_t *a4 = (const int32_t *)(slots[operands[4].column] + operands[4].byte_offset);
    uint16_t *o0 = (uint16_t *)(slots[operands[5].column] + operands[5].byte_offset);
    int32_t *o1 = (int32_t *)(slots[operands[6].column] + operands[6].byte_offset);
    /* Of the first iterations nothing is stored, and nothing is read again. */
    const int64_t still = loop.moving | loop.each ? 0 : count - loop.tail;
    const int64_t points = n0;
    #pragma unroll 1
    for (int64_t point = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; point < points; point += gridDim.x * (int64_t)blockDim.x) {
        const int64_t i0 = point;
        uint16_t e0 = a0[i0];
        uint16_t e1 = *a1;
        uint16_t e2 = a2[i0];
        uint16_t e3 = *a3;
        int32_t e4 = a4[i0];
        int64_t t = 0;
        #pragma unroll 4
        for (; t < still; t++) {
            const float v0 = fw_load_f16(e0);
            const float v1 = fw_load_f16(e1);
            const float v2 = fw_load_f16(e2);
            const float v3 = fw_load_f16(e3);
            const int32_t v4 = e4;
            const float v5 = fw_round_f16(v0 * v1);
            const float v6 = fw_round_f16(v5 + v2);
            const float v7 = fw_round_f16(fw_tanh_f32(v6));
            const uint8_t v8 = v7 > v3;
            const int32_t v9 = fw_cast_b8_i32(v8);
            const int32_t v10 = fw_add_i32(v4, v9);
            const uint16_t c0 = fw_store_f16(fw_canonical_f32(v7));
            const int32_t c1 = v10;
            e0 = c0;
            e4 = c1;
        }
        #pragma unroll 1
        for (; t < count; t++) {
            slots = fw_slots_of(loop, count, t);
            if (loop.moving >> 1 & 1) {
                a1 = (const uint16_t *)(slots + operands[1].column);
                e1 = *a1;
            }
            if (loop.moving >> 2 & 1) {
                a2 = (const uint16_t *)(slots[operands[2].column] + operands[2].byte_offset);
                e2 = a2[i0];
            }
            if (loop.moving >> 3 & 1) {
                a3 = (const uint16_t *)(slots + operands[3].column);
                e3 = *a3;
            }
            const float v0 = fw_load_f16(e0);
            const float v1 = fw_load_f16(e1);
            const float v2 = fw_load_f16(e2);
            const float v3 = fw_load_f16(e3);
            const int32_t v4 = e4;
            const float v5 = fw_round_f16(v0 * v1);
            const float v6 = fw_round_f16(v5 + v2);
            const float v7 = fw_round_f16(fw_tanh_f32(v6));
            const uint8_t v8 = v7 > v3;
            const int32_t v9 = fw_cast_b8_i32(v8);
            const int32_t v10 = fw_add_i32(v4, v9);
            const uint16_t c0 = fw_store_f16(fw_canonical_f32(v7));
            const int32_t c1 = v10;
            if (t >= count - loop.tail || loop.each >> 0 & 1) {
                o0 = (uint16_t *)(slots[operands[5].column] + operands[5].byte_offset);
                o0[i0] = c0;
            }
            if (t >= count - loop.tail || loop.each >> 1 & 1) {
                o1 = (int32_t *)(slots[operands[6].column] + operands[6].byte_offset);
                o1[i0] = c1;
            }
            e0 = c0;
            e4 = c1;
        }
    }
}
