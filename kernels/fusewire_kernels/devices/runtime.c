/* Runs a plan on the CPU: one call a submission. The loop over rows is the outermost, so that a row's arena and values
   stay in the cache. */

#include <stdint.h>

typedef struct {
    int64_t column;
    int64_t byte_offset;
} fw_operand;

/* Eight bytes each, in this order: the table of launches is written as int64. */
typedef struct {
    void (*function)(const int64_t *sizes, const fw_operand *operands, const int64_t *slots);
    const int64_t *sizes;
    const fw_operand *operands; /* [instances][arity] */
    int64_t instances;
    int64_t arity;
} fw_launch;

static void run_row(const fw_launch *launches, int64_t launch_count, const int64_t *slots) {
    for (const fw_launch *launch = launches; launch < launches + launch_count; launch++)
        for (int64_t instance = 0; instance < launch->instances; instance++)
            launch->function(launch->sizes, launch->operands + instance * launch->arity, slots);
}

void fw_run(const fw_launch *launches, int64_t launch_count, const int64_t *table, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; row++) run_row(launches, launch_count, table + row * columns);
}

/* Runs `counts[row]` iterations of each row. The table is [iterations][rows][columns]. */
void fw_run_loop(const fw_launch *launches, int64_t launch_count, const int64_t *table, int64_t rows, int64_t columns,
                 const int64_t *counts) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t iteration = 0; iteration < counts[row]; iteration++)
            run_row(launches, launch_count, table + (iteration * rows + row) * columns);
}
