/* Runs a plan on the CPU: one call a submission. Rows are outermost, so that a row's arena stays in the cache. */

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

void fw_run(const fw_launch *launches, int64_t launch_count, const int64_t *table, int64_t rows, int64_t columns) {
    for (int64_t row = 0; row < rows; row++) {
        const int64_t *slots = table + row * columns;
        for (const fw_launch *launch = launches; launch < launches + launch_count; launch++)
            for (int64_t instance = 0; instance < launch->instances; instance++)
                launch->function(launch->sizes, launch->operands + instance * launch->arity, slots);
    }
}
