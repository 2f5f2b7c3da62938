/* Each line lies in memory with a distance `step` between neighbouring elements. */

/* A line is cut into segments of FW_SCAN_LANES lanes of FW_SCAN_ELEMENTS neighbours (see order.h). */
#define FW_SCAN(name, V, S, COMBINE, LOADED, STORED) \
    static void name(int64_t length, int64_t step, const S *from, S *to) { \
        V element[FW_SCAN_LANES * FW_SCAN_ELEMENTS], lane[FW_SCAN_LANES], before = 0; \
        for (int64_t first = 0; first < length; first += FW_SCAN_LANES * FW_SCAN_ELEMENTS) { \
            const int64_t left = length - first; \
            const int count = left < FW_SCAN_LANES * FW_SCAN_ELEMENTS ? (int)left : FW_SCAN_LANES * FW_SCAN_ELEMENTS; \
            const int lanes = (count + FW_SCAN_ELEMENTS - 1) / FW_SCAN_ELEMENTS; \
            const S *source = from + first * step; \
            S *target = to + first * step; \
            for (int i = 0; i < count; i++) { \
                const V own = LOADED(source[i * step]); \
                element[i] = i % FW_SCAN_ELEMENTS == 0 ? own : COMBINE(element[i - 1], own); \
            } \
            for (int l = 0; l < lanes; l++) { \
                const int last = (l + 1) * FW_SCAN_ELEMENTS - 1; \
                lane[l] = element[last < count ? last : count - 1]; \
            } \
            for (int distance = 1; distance < lanes; distance *= 2) \
                for (int l = lanes - 1; l >= distance; l--) lane[l] = COMBINE(lane[l - distance], lane[l]); \
            for (int i = 0; i < count; i++) { \
                V value = element[i]; \
                if (i >= FW_SCAN_ELEMENTS) value = COMBINE(lane[i / FW_SCAN_ELEMENTS - 1], value); \
                if (first > 0) value = COMBINE(before, value); \
                target[i * step] = STORED(value); \
            } \
            before = first > 0 ? COMBINE(before, lane[lanes - 1]) : lane[lanes - 1]; \
        } \
    }

/* The first index of a line whose place is not below a given one. */
static int64_t fw_first_of_segment(const int64_t *place, int64_t length, int64_t segment) {
    int64_t low = 0, high = length;
    while (low < high) {
        const int64_t half = low + (high - low) / 2;
        if (place[half] < segment) low = half + 1;
        else high = half;
    }
    return low;
}

/* Combines the elements of each segment (see order.h). `step` lines lie side by side, and have the same places. */
#define FW_SEGMENTS(name, V, S, COMBINE, LOADED, STORED, NOTHING) \
    static void name(int64_t length, int64_t step, int64_t segments, const S *from, const int64_t *place, S *to) { \
        int64_t end = fw_first_of_segment(place, length, 0); \
        for (int64_t segment = 0; segment < segments; segment++) { \
            const int64_t begin = end; \
            end = fw_first_of_segment(place, length, segment + 1); \
            const int lanes = end - begin < FW_LANES ? (int)(end - begin) : FW_LANES; \
            for (int64_t line = 0; line < step; line++) { \
                V lane[FW_LANES] = {NOTHING}; \
                for (int l = 0; l < lanes; l++) lane[l] = LOADED(from[(begin + l) * step + line]); \
                for (int64_t i = FW_LANES; i < end - begin; i++) \
                    lane[i % FW_LANES] = COMBINE(lane[i % FW_LANES], LOADED(from[(begin + i) * step + line])); \
                for (int offset = FW_LANES / 2; offset > 0; offset /= 2) \
                    for (int l = 0; l < offset && l + offset < lanes; l++) lane[l] = COMBINE(lane[l], lane[l + offset]); \
                to[segment * step + line] = STORED(lane[0]); \
            } \
        } \
    }

/* Sorts short pieces by insertion and merges them, from one half of `memory` to the other. */
#define FW_SHORT_PIECE 16
#define FW_ARGSORT(name, V, S, PRECEDES, LOADED) \
    static void name(int64_t length, int64_t step, const S *from, int64_t *to, int64_t *memory) { \
        int64_t *sorted = memory, *next = memory + length; \
        for (int64_t begin = 0; begin < length; begin += FW_SHORT_PIECE) { \
            const int64_t end = length - begin < FW_SHORT_PIECE ? length : begin + FW_SHORT_PIECE; \
            for (int64_t i = begin; i < end; i++) { \
                const V own = LOADED(from[i * step]); \
                int64_t at = i; \
                for (; at > begin; at--) { \
                    const V other = LOADED(from[sorted[at - 1] * step]); \
                    if (!(PRECEDES(own, other))) break; \
                    sorted[at] = sorted[at - 1]; \
                } \
                sorted[at] = i; \
            } \
        } \
        for (int64_t piece = FW_SHORT_PIECE; piece < length; piece *= 2) { \
            for (int64_t begin = 0; begin < length; begin += 2 * piece) { \
                const int64_t middle = length - begin < piece ? length : begin + piece; \
                const int64_t end = length - middle < piece ? length : middle + piece; \
                int64_t left = begin, right = middle; \
                for (int64_t i = begin; i < end; i++) { \
                    int is_right = left == middle; \
                    if (left < middle && right < end) { \
                        const V a = LOADED(from[sorted[left] * step]), b = LOADED(from[sorted[right] * step]); \
                        is_right = PRECEDES(b, a); \
                    } \
                    next[i] = is_right ? sorted[right++] : sorted[left++]; \
                } \
            } \
            int64_t *other = sorted; \
            sorted = next, next = other; \
        } \
        for (int64_t i = 0; i < length; i++) to[i * step] = sorted[i]; \
    }

#define FW_ASCENDING(a, b) ((a) < (b) | ((a) == (a) & (b) != (b)))
#define FW_DESCENDING(a, b) ((a) > (b) | ((a) != (a) & (b) == (b)))
