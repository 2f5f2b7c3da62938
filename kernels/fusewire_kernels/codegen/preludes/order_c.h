/* Reductions in C: `width` of them side by side, lane l of column c at element l * width + c of an fw_lanes.
 *
 * open: every lane at its identity. take: one element into one lane. tree: the lanes into the first `width` places.
 * Beyond one chunk, fold: the result of a chunk into the lanes of the level above (`upper`), those into the level
 * above that (`top`); total: everything folded so far, into the first `width` places.
 */

/* Neighbouring outer points that a kernel with strided reductions handles at once. */
#define FW_COLUMNS 64

/* Not unrolled: written out, the steps of a maximum become one comparison after another instead of vectors. */
#define FW_TREE_STEP(X, offset) \
    _Pragma("GCC ivdep") _Pragma("GCC unroll 1") \
    for (int64_t i = 0; i < offset * width; i++) fw_merge_##X(r, i, r, i + offset * width);

#define FW_REDUCTION(X) \
    FW_FN void fw_open_##X(fw_lanes_##X r, int64_t width) { \
        for (int64_t i = 0; i < FW_LANES * width; i++) fw_start_##X(r, i); \
    } \
    FW_FN void fw_tree_##X(fw_lanes_##X r, int64_t width) { \
        FW_TREE_STEP(X, 16) \
        FW_TREE_STEP(X, 8) \
        FW_TREE_STEP(X, 4) \
        FW_TREE_STEP(X, 2) \
        FW_TREE_STEP(X, 1) \
    } \
    FW_FN void fw_raise_##X(fw_lanes_##X r, fw_lanes_##X above, int64_t chunk, int64_t width) { \
        int64_t lane = chunk % FW_LANES * width; \
        for (int64_t c = 0; c < width; c++) fw_merge_##X(above, lane + c, r, c); \
    } \
    FW_SLOW void fw_fold_##X(fw_lanes_##X r, fw_lanes_##X upper, fw_lanes_##X top, int64_t chunk, int64_t width) { \
        if (chunk == 0) fw_open_##X(top, width); \
        if (chunk > 0 && chunk % FW_CHUNK == 0) { \
            fw_tree_##X(upper, width); \
            fw_raise_##X(upper, top, chunk / FW_CHUNK - 1, width); \
        } \
        if (chunk % FW_CHUNK == 0) fw_open_##X(upper, width); \
        fw_raise_##X(r, upper, chunk, width); \
    } \
    FW_SLOW void fw_total_##X(fw_lanes_##X r, fw_lanes_##X upper, fw_lanes_##X top, int64_t extent, int64_t width) { \
        int64_t last_chunk = (extent - 1) / FW_CHUNK; \
        fw_tree_##X(upper, width); \
        if (last_chunk >= FW_CHUNK) { \
            fw_raise_##X(upper, top, last_chunk / FW_CHUNK, width); \
            fw_tree_##X(top, width); \
        } \
        for (int64_t c = 0; c < width; c++) fw_copy_##X(r, c, last_chunk >= FW_CHUNK ? top : upper, c); \
    }
#define FW_SLOW static __attribute__((cold, noinline, unused))

#define FW_PLAIN_REDUCTION(X, T, identity, combined) \
    FW_COMBINATION(X, T, combined) \
    typedef struct { \
        T *value; \
    } fw_lanes_##X; \
    FW_FN void fw_start_##X(fw_lanes_##X r, int64_t i) { \
        r.value[i] = identity; \
    } \
    FW_FN void fw_take_##X(fw_lanes_##X r, int64_t i, T value) { \
        r.value[i] = fw_combine_##X(r.value[i], value); \
    } \
    FW_FN void fw_merge_##X(fw_lanes_##X to, int64_t i, fw_lanes_##X from, int64_t j) { \
        fw_take_##X(to, i, from.value[j]); \
    } \
    FW_FN void fw_copy_##X(fw_lanes_##X to, int64_t i, fw_lanes_##X from, int64_t j) { \
        to.value[i] = from.value[j]; \
    } \
    FW_REDUCTION(X)

#define FW_POSITIONAL_REDUCTION(X, T, identity, is_better) \
    FW_PRECEDENCE(X, T, is_better) \
    typedef struct { \
        T *value; \
        int64_t *position; \
    } fw_lanes_##X; \
    FW_FN void fw_start_##X(fw_lanes_##X r, int64_t i) { \
        r.value[i] = identity; \
        r.position[i] = INT64_MAX; \
    } \
    FW_FN void fw_take_##X(fw_lanes_##X r, int64_t i, T value, int64_t position) { \
        int precedes = fw_precedes_##X(r.value[i], r.position[i], value, position); \
        r.value[i] = precedes ? value : r.value[i]; \
        r.position[i] = precedes ? position : r.position[i]; \
    } \
    FW_FN void fw_merge_##X(fw_lanes_##X to, int64_t i, fw_lanes_##X from, int64_t j) { \
        fw_take_##X(to, i, from.value[j], from.position[j]); \
    } \
    FW_FN void fw_copy_##X(fw_lanes_##X to, int64_t i, fw_lanes_##X from, int64_t j) { \
        to.value[i] = from.value[j]; \
        to.position[i] = from.position[j]; \
    } \
    FW_REDUCTION(X)
