// schedule: scans 0
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
FW_COMBINATION(fw_492f7be6c3420607704b, float, a + b)
#define FW_LINE_LOADED(element) (fw_load_f16((element)))
#define FW_LINE_COMBINE(a, b) fw_combine_fw_492f7be6c3420607704b(a, b)
#define FW_LINE_STORED(value) (fw_store_f16(fw_canonical_f32(value)))
FW_SCAN_SEGMENT(fw_492f7be6c3420607704b_segment, float, uint16_t, FW_LINE_COMBINE, FW_LINE_LOADED)
extern "C" __global__ void __launch_bounds__(256) fw_492f7be6c3420607704b(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
    const int64_t *sizes = values.sizes;
    slots += blockIdx.z * columns;
    fw_operand operands[2];
    #pragma unroll
    for (int n = 0; n < 2; n++) operands[n] = values.operands[n];
    if (blockIdx.y > 0) {
    #pragma unroll
    for (int n = 0; n < 2; n++) operands[n] = all_operands[blockIdx.y * (int64_t)2 + n];
    }
    if (blockIdx.z > 0 && slots[operands[1].column] == 0) return;
    const int64_t before = sizes[0];
    const int64_t length = sizes[1];
    const int64_t behind = sizes[2];
    const int64_t run = sizes[3];
    const int64_t segments = sizes[4];
    const uint16_t *from = (const uint16_t *)__cvta_global_to_generic(slots[operands[0].column] + operands[0].byte_offset);
    uint16_t *to = (uint16_t *)__cvta_global_to_generic(slots[operands[1].column] + operands[1].byte_offset);
    fw_wait_for_kernels_before();
    fw_let_next_kernel_start();
    const int64_t all = before * behind;
    const int warp = threadIdx.x / FW_SCAN_LANES, warps = blockDim.x / FW_SCAN_LANES;
    const int first = threadIdx.x % FW_SCAN_LANES * FW_SCAN_ELEMENTS;
    const int most = FW_SCAN_LANES * FW_SCAN_ELEMENTS;
    float own[FW_SCAN_ELEMENTS] = {}, total;
    if (length <= most) {
        for (int64_t line = (int64_t)blockIdx.x * warps + warp; line < all; line += gridDim.x * warps) {
            const int64_t at = line / behind * length * behind + line % behind;
            fw_492f7be6c3420607704b_segment(from + at, behind, (int)length, own, &total);
            uint16_t *target = to + at;
            for (int i = 0; i < FW_SCAN_ELEMENTS && first + i < length; i++) {
                target[(first + i) * behind] = FW_LINE_STORED(own[i]);
            }
        }
        return;
    }
    __shared__ float totals[8];
    for (int64_t line = blockIdx.x; line < all; line += gridDim.x) {
        const int64_t at = line / behind * length * behind + line % behind;
        float before_chunk = 0;
        for (int64_t chunk = 0; chunk < length; chunk += (int64_t)warps * most) {
            const int64_t begin = chunk + (int64_t)warp * most, left = length - begin;
            const int count = left >= most ? most : left > 0 ? (int)left : 0;
            fw_492f7be6c3420607704b_segment(from + at + begin * behind, behind, count, own, &total);
            if (threadIdx.x % FW_SCAN_LANES == 0) totals[warp] = total;
            __syncthreads();
            float ahead = before_chunk;
            bool has_ahead = chunk > 0;
            for (int w = 0; w < warps; w++) {
                if (w == warp) break;
                ahead = has_ahead ? FW_LINE_COMBINE(ahead, totals[w]) : totals[w];
                has_ahead = true;
            }
            before_chunk = chunk > 0 ? FW_LINE_COMBINE(before_chunk, totals[0]) : totals[0];
            for (int w = 1; w < warps; w++) before_chunk = FW_LINE_COMBINE(before_chunk, totals[w]);
            __syncthreads();
            for (int i = 0; i < FW_SCAN_ELEMENTS && first + i < count; i++) {
                const float found = has_ahead ? FW_LINE_COMBINE(ahead, own[i]) : own[i];
                to[at + (begin + first + i) * behind] = FW_LINE_STORED(found);
            }
        }
    }
}
#undef FW_LINE_LOADED
#undef FW_LINE_COMBINE
#undef FW_LINE_STORED
