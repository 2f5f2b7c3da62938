/* Runs a plan on the CPU: one call a submission, or for a row in slices one call a slice. The loop over rows is the
   outermost, so that a row's arena and values stay in the cache. */

#include <stdint.h>
#include <string.h>
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

/* The division of each instance of a launch into pieces of `steps` steps. Without `moves_bytes` it is not divided. */
typedef struct {
    const int64_t *moves_bytes; /* [arity]: an operand's offset a step */
    int64_t dimension;
    int64_t steps;
    int64_t size_count;
} fw_division;

/* The next piece of a row. */
typedef struct {
    int64_t launch;
    int64_t instance;
    int64_t step;
} fw_position;

/* Memory for the sizes and operands of a piece. */
typedef struct {
    int64_t *sizes;
    fw_operand *operands;
} fw_piece;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void run_piece(const fw_launch *launch, const fw_division *division, const fw_operand *operands,
                      const int64_t *slots, fw_position *position, const fw_piece *piece) {
    const int64_t extent = launch->sizes[division->dimension], left = extent - position->step;
    const int64_t steps = left < division->steps ? left : division->steps;
    memcpy(piece->sizes, launch->sizes, division->size_count * sizeof(int64_t));
    piece->sizes[division->dimension] = steps;
    for (int64_t i = 0; i < launch->arity; i++) {
        piece->operands[i].column = operands[i].column;
        piece->operands[i].byte_offset = operands[i].byte_offset + position->step * division->moves_bytes[i];
    }
    launch->function(piece->sizes, piece->operands, slots);
    position->step += steps;
    if (position->step < extent) return;
    position->instance++;
    position->step = 0;
}

/* Continues a row from a position until `most_ns` have passed, for at least one piece. */
void fw_run_slice(const fw_launch *launches, const fw_division *divisions, int64_t launch_count, const int64_t *slots,
                  fw_position *position, const fw_piece *piece, int64_t most_ns) {
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
        const fw_division *division = divisions + position->launch;
        const fw_operand *operands = launch->operands + position->instance * launch->arity;
        if (division->moves_bytes) {
            run_piece(launch, division, operands, slots, position, piece);
        } else {
            launch->function(launch->sizes, operands, slots);
            position->instance++;
        }
        is_due = now_ns() - began_ns >= most_ns;
    }
}
