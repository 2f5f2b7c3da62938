/* Runs a plan on the CPU: one call a submission, or for one row one call a slice of time. Rows are outermost, so that a
   row's arena stays in the cache. */

#include <stdint.h>
#include <time.h>

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

/* What comes next of a row. */
typedef struct {
    int64_t launch;
    int64_t instance;
} fw_position;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Runs a row on from a position, until so much time has passed, one instance at least. */
void fw_run_slice(const fw_launch *launches, int64_t launch_count, const int64_t *slots, fw_position *position,
                  int64_t most_ns) {
    const int64_t began_ns = now_ns();
    int is_due = 0;
    while (position->launch < launch_count) {
        const fw_launch *launch = launches + position->launch;
        if (position->instance == launch->instances) {
            position->launch++;
            position->instance = 0;
            continue;
        }
        if (is_due) return;
        launch->function(launch->sizes, launch->operands + position->instance * launch->arity, slots);
        position->instance++;
        is_due = now_ns() - began_ns >= most_ns;
    }
}
