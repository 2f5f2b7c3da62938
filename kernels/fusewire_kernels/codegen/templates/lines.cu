/* Each line lies in memory with a distance `step` between neighbouring elements. */

/* One warp scans a segment. `total` becomes what the whole segment gives. */
#define FW_SCAN_SEGMENT(name, V, S, COMBINE, LOADED) \
    FW_FN void name(const S *from, int64_t step, int count, V *value, V *total) { \
        const int lane = threadIdx.x % FW_SCAN_LANES, first = lane * FW_SCAN_ELEMENTS; \
        for (int i = 0; i < FW_SCAN_ELEMENTS; i++) { \
            if (first + i >= count) break; \
            const V own = LOADED(from[(first + i) * step]); \
            value[i] = i == 0 ? own : COMBINE(value[i - 1], own); \
        } \
        const int inside = count - first; \
        V sum = value[0]; \
        for (int i = 1; i < FW_SCAN_ELEMENTS; i++) \
            if (i < inside) sum = value[i]; \
        for (int distance = 1; distance < FW_SCAN_LANES; distance *= 2) { \
            const V other = __shfl_up_sync(0xffffffffu, sum, distance); \
            if (lane >= distance) sum = COMBINE(other, sum); \
        } \
        const V ahead = __shfl_up_sync(0xffffffffu, sum, 1); \
        for (int i = 0; i < FW_SCAN_ELEMENTS; i++) \
            if (lane > 0) value[i] = COMBINE(ahead, value[i]); \
        *total = __shfl_sync(0xffffffffu, sum, FW_SCAN_LANES - 1); \
    }

/* The first index of a line whose place is not below a given one. */
FW_FN int64_t fw_first_of_segment(const int64_t *place, int64_t length, int64_t segment) {
    int64_t low = 0, high = length;
    while (low < high) {
        const int64_t half = low + (high - low) / 2;
        if (place[half] < segment) low = half + 1;
        else high = half;
    }
    return low;
}

/* Keys with their positions, in shared memory; no two are equal. A position of `count` or more has no element. */
#define FW_BITONIC_SORT(name, V, PRECEDES) \
    FW_FN void name(V *key, int *place, int size, int count) { \
        for (int width = 2; width <= size; width *= 2) \
            for (int distance = width / 2; distance > 0; distance /= 2) { \
                __syncthreads(); \
                for (int pair = threadIdx.x; pair < size / 2; pair += blockDim.x) { \
                    const int low = 2 * distance * (pair / distance) + pair % distance, high = low + distance; \
                    const int i = place[low], j = place[high]; \
                    const V a = key[low], b = key[high]; \
                    bool is_after = i > j; \
                    if (i < count && j < count) is_after = PRECEDES(b, a) || (!(PRECEDES(a, b)) && i > j); \
                    if (is_after == ((low & width) == 0)) { \
                        key[low] = b, key[high] = a; \
                        place[low] = j, place[high] = i; \
                    } \
                } \
            } \
        __syncthreads(); \
    }

#define FW_ASCENDING(a, b) ((a) < (b) || ((a) == (a) && (b) != (b)))
#define FW_DESCENDING(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
