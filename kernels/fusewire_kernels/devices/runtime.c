/* Runs a plan on the CPU: one call a submission. The loop over rows is the outermost, so that a row's arena and values
   stay in the cache. */

#include <stdint.h>

typedef struct {
    int64_t column;
    int64_t byte_offset;
} fw_operand;

/* All that follows is eight bytes each, in this order: a plan is written as int64. */
typedef struct {
    void (*function)(const int64_t *sizes, const fw_operand *operands, const int64_t *slots);
    const int64_t *sizes;
    const fw_operand *operands; /* [instances][arity] */
    int64_t instances;
    int64_t arity;
} fw_launch;

typedef struct {
    int64_t columns; /* of the slot table */
    int64_t launch_count;
    fw_launch launches[];
} fw_plan;

static void run_row(const fw_plan *plan, const int64_t *slots) {
    for (const fw_launch *launch = plan->launches; launch < plan->launches + plan->launch_count; launch++)
        for (int64_t instance = 0; instance < launch->instances; instance++)
            launch->function(launch->sizes, launch->operands + instance * launch->arity, slots);
}

/* Runs `counts[row]` iterations of each row. The table is [iterations][rows][columns]. */
void fw_run(const fw_plan *plan, const int64_t *table, int64_t rows, const int64_t *counts) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t iteration = 0; iteration < counts[row]; iteration++)
            run_row(plan, table + (iteration * rows + row) * plan->columns);
}
