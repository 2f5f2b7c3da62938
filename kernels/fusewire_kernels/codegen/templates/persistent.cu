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
