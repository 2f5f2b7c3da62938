// schedule: segments 0
#ifndef FW_SCAN_SEGMENT
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
#endif
FW_COMBINATION(fw_ab298915732db69bb7d9, float, a + b)
#define FW_LINE_LOADED(element) ((element))
#define FW_LINE_COMBINE(a, b) fw_combine_fw_ab298915732db69bb7d9(a, b)
#define FW_LINE_STORED(value) (fw_canonical_f32(value))
extern "C" __global__ void __launch_bounds__(256) fw_ab298915732db69bb7d9(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
    const int64_t *sizes = values.sizes;
    slots += blockIdx.z * columns;
    fw_operand operands[3];
    #pragma unroll
    for (int n = 0; n < 3; n++) operands[n] = values.operands[n];
    if (blockIdx.y > 0) {
    #pragma unroll
    for (int n = 0; n < 3; n++) operands[n] = all_operands[blockIdx.y * (int64_t)3 + n];
    }
    if (blockIdx.z > 0 && slots[operands[2].column] == 0) return;
    const int64_t before = sizes[0];
    const int64_t length = sizes[1];
    const int64_t behind = sizes[2];
    const int64_t run = sizes[3];
    const int64_t segments = sizes[4];
    const float *from = (const float *)__cvta_global_to_generic(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t *place = (const int64_t *)__cvta_global_to_generic(slots[operands[1].column] + operands[1].byte_offset);
    float *to = (float *)__cvta_global_to_generic(slots[operands[2].column] + operands[2].byte_offset);
    fw_wait_for_kernels_before();
    fw_let_next_kernel_start();
    const int64_t all = before * behind;
    const int lane = threadIdx.x % FW_LANES, warps = blockDim.x / FW_LANES;
    const int64_t first = (int64_t)blockIdx.x * warps + threadIdx.x / FW_LANES;
    float *target = to;
    for (int64_t at = first; at < all * segments; at += (int64_t)gridDim.x * warps) {
        const int64_t segment = at / behind % segments;
        const int64_t begin = fw_first_of_segment(place, length, segment);
        const int64_t end = fw_first_of_segment(place, length, segment + 1);
        const int lanes = end - begin < FW_LANES ? (int)(end - begin) : FW_LANES;
        const float *source = from + at / (segments * behind) * length * behind + at % behind;
        float own = 0;
        if (lane < lanes) own = FW_LINE_LOADED(source[(begin + lane) * behind]);
        for (int64_t i = begin + FW_LANES + lane; i < end; i += FW_LANES) {
            own = FW_LINE_COMBINE(own, FW_LINE_LOADED(source[i * behind]));
        }
        for (int offset = FW_LANES / 2; offset > 0; offset /= 2) {
            const float other = __shfl_down_sync(0xffffffffu, own, offset);
            if (lane < offset && lane + offset < lanes) own = FW_LINE_COMBINE(own, other);
        }
        if (lane == 0) target[at] = FW_LINE_STORED(own);
    }
}
#undef FW_LINE_LOADED
#undef FW_LINE_COMBINE
#undef FW_LINE_STORED
