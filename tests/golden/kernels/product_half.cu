// schedule: product 0
#ifndef FW_PRODUCT
#define FW_PRODUCT
#define FW_METHOD __device__ __forceinline__

/* Begins to read a value here. The compiler moves a plain read to where the value is used; then the kernel waits for
 * sizes, operands and slots one after another. */
FW_FN int64_t fw_read_now(const int64_t *address) {
    int64_t value;
    asm volatile("ld.global.b64 %0, [%1];" : "=l"(value) : "l"(__cvta_generic_to_global(address)));
    return value;
}

/* Values that are read or written at once. */
template <typename T, int count>
struct __align__(count * sizeof(T) < 16 ? count * sizeof(T) : 16) fw_pack {
    T values[count];
};

/* The place of a thread's first load in a slice, and how many lines and places further each next load is. */
struct fw_walk {
    unsigned line, place, lines_apart, places_apart;
};
#endif

#ifndef FW_PRODUCT_f16
#define FW_PRODUCT_f16

/* A block computes a tile of the result, and a thread side × side elements of it, each as one chain of fma over
 * ascending k. Both operands pass through shared memory in slices of `depth` steps of k. A thread begins all its loads of
 * a slice, into registers, and computes on the slice before while they arrive. The number of loads is a constant: with
 * any other loop the compiler puts a store to shared memory behind each load, and each store waits for its load.
 *
 * Beyond the last k, a is -0 and b is 0. Their product is -0, and adding -0 changes no sum, not even one that is -0. */

/* A matrix from some element on, as lines of `length` elements. The lines lie along k or across it. */
struct fw_matrix_f16 {
    const uint16_t *start;
    int64_t line_stride, stride, length;

    /* Whether a thread can load four neighbours of a line at once. */
    FW_METHOD bool is_in_fours() const {
        return stride == 1 && (((uint64_t)start / sizeof(uint16_t) | line_stride | length) & 3) == 0;
    }
};

/* A slice of an operand, and what a thread has loaded of it: `unit` elements at a time, 4 or 1. In shared memory `gap`
 * elements lie between lines, so that threads which read different lines use different banks. */
template <int lines, int length, int gap, int threads, int unit>
struct fw_slice_f16 {
    static const unsigned pitch = length + gap, size = lines * pitch, units_a_line = length / unit;
    static const int count = lines * length / threads / unit;
    static_assert(count * threads * unit == lines * length, "every thread loads as many elements");
    static_assert(threads % units_a_line == 0 && threads % lines == 0, "a walk moves along one dimension only");

    fw_pack<uint16_t, unit> held[count];

    /* The walk by which neighbouring threads load neighbours in memory. */
    static FW_METHOD fw_walk walk(const fw_matrix_f16 &m) {
        const unsigned thread = threadIdx.x;
        if (unit == 1 && m.stride != 1) return {thread % lines, thread / lines, 0, threads / lines};
        return {thread / units_a_line, thread % units_a_line * unit, threads / units_a_line, 0};
    }

    /* Begins to load the first slice of a matrix. Lines from `last_line` on, and places from `last_place` on, are
     * `outside`. */
    FW_METHOD void fetch(const fw_matrix_f16 &m, fw_walk walk, unsigned last_line, unsigned last_place, uint16_t outside) {
        const uint16_t *next = m.start + walk.line * m.line_stride + walk.place * m.stride;
        int64_t step = walk.lines_apart * m.line_stride + walk.places_apart * m.stride;
        asm volatile("" : "+l"(step)); /* stops the compiler from keeping all its multiples in registers */
#pragma unroll
        for (int n = 0; n < count; n++) {
#pragma unroll
            for (int i = 0; i < unit; i++) held[n].values[i] = outside;
            if (walk.line < last_line && walk.place < last_place) held[n] = *(const fw_pack<uint16_t, unit> *)next;
            next += step, walk.line += walk.lines_apart, walk.place += walk.places_apart;
        }
    }

    /* Stores what was loaded to shared memory, in the type of the sums. */
    FW_METHOD void keep(const fw_walk &walk, float *memory) const {
        memory += walk.line * pitch + walk.place;
        unsigned step = walk.lines_apart * pitch + walk.places_apart;
        if (unit == 1) asm volatile("" : "+r"(step));
#pragma unroll
        for (int n = 0; n < count; n++, memory += step) {
            fw_pack<float, unit> kept;
#pragma unroll
            for (int i = 0; i < unit; i++) {
                const uint16_t element = held[n].values[i];
                kept.values[i] = (float)(fw_load_f16(element));
            }
            *(fw_pack<float, unit> *)memory = kept;
        }
    }
};

/* The row or column of a tile that is a thread's e-th. Threads have packs of neighbours in turn. */
template <int threads, int pack>
FW_FN unsigned fw_place_f16(unsigned thread, unsigned e) {
    return (e / pack * threads + thread) * pack + e % pack;
}

/* Reads a thread's elements for the steps of k from `k` on, in a slice whose lines lie along k. */
template <int threads, int pitch, int steps, int side>
FW_FN void fw_read_along_f16(const float *memory, unsigned thread, unsigned k, float (&values)[steps][side]) {
#pragma unroll
    for (int e = 0; e < side; e++)
#pragma unroll
        for (int step = 0; step < steps; step += 4) {
            const float *place = memory + fw_place_f16<threads, 1>(thread, e) * pitch + k + step;
            const fw_pack<float, 4> four = *(const fw_pack<float, 4> *)place;
#pragma unroll
            for (int i = 0; i < 4; i++) values[step + i][e] = four.values[i];
        }
}

/* The same in a slice whose lines lie across k. */
template <int threads, int pack, int pitch, int steps, int side>
FW_FN void fw_read_across_f16(const float *memory, unsigned thread, unsigned k, float (&values)[steps][side]) {
#pragma unroll
    for (int step = 0; step < steps; step++)
#pragma unroll
        for (int e = 0; e < side; e += pack) {
            const float *place = memory + (k + step) * pitch + fw_place_f16<threads, pack>(thread, e);
            const fw_pack<float, pack> some = *(const fw_pack<float, pack> *)place;
#pragma unroll
            for (int i = 0; i < pack; i++) values[step][e + i] = some.values[i];
        }
}

/* Computes the tile of `out` from (row, column) on. `a` starts at that row, `b` at that column. The lines of a lie along
 * k; those of b do if `b_is_along`. `memory` has room for two slices of each. */
template <int side, int depth, int steps, bool b_is_along, int unit>
FW_FN void fw_tile_by_f16(fw_matrix_f16 a, fw_matrix_f16 b, uint16_t *out, int64_t rows, int64_t columns, int64_t row,
                         int64_t column, float *memory) {
    const int down = 8, across = 16, threads = down * across, height = down * side, width = across * side;
    const int batches = depth / steps, pack = b_is_along ? 1 : side < 4 ? side : 4;
    static_assert(batches % 2 == 0, "a slice ends with the second of two batches");
    typedef fw_slice_f16<height, depth, 4, threads, unit> left_slice;
    typedef fw_slice_f16<b_is_along ? width : depth, b_is_along ? depth : width, b_is_along ? 4 : 0, threads, unit>
        right_slice;
    left_slice left;
    right_slice right;
    float sums[side][side] = {}, lefts[2][steps][side], rights[2][steps][side];

    /* Lanes i and i ^ 1 share a column, i and i ^ 2 a row: shared memory then serves wide reads of a whole warp at once. */
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned x = warp % (across / 8) * 8 + lane / 2 % 8, y = warp / (across / 8) * 4 + lane % 2 + lane / 16 * 2;

    const fw_walk a_walk = left.walk(a), b_walk = right.walk(b);
    const unsigned last_row = fw_lesser(rows - row, height), last_column = fw_lesser(columns - column, width);
    const int64_t inner = a.length;
    int64_t unfetched = inner;
    auto fetch = [&]() {
        const unsigned last_k = unfetched < 0 ? 0 : fw_lesser(unfetched, depth);
        left.fetch(a, a_walk, last_row, last_k, (uint16_t)0x8000);
        right.fetch(b, b_walk, b_is_along ? last_column : last_k, b_is_along ? last_k : last_column, 0);
        a.start += depth * a.stride, b.start += depth * (b_is_along ? b.stride : b.line_stride), unfetched -= depth;
    };
    auto read = [&](int batch, const float *slices, int k) {
        fw_read_along_f16<down, left_slice::pitch>(slices, y, k, lefts[batch]);
        if (b_is_along) fw_read_along_f16<across, right_slice::pitch>(slices + left_slice::size, x, k, rights[batch]);
        else fw_read_across_f16<across, pack, right_slice::pitch>(slices + left_slice::size, x, k, rights[batch]);
    };
    auto compute = [&](int batch) {
#pragma unroll
        for (int step = 0; step < steps; step++)
#pragma unroll
            for (int r = 0; r < side; r++)
#pragma unroll
                for (int c = 0; c < side; c++) {
                    const float left = lefts[batch][step][r], right = rights[batch][step][c];
                    sums[r][c] = fw_fma_f32(left, right, sums[r][c]);
                }
    };

#pragma unroll
    for (int step = 0; step < steps; step++)
#pragma unroll
        for (int e = 0; e < side; e++) lefts[1][step][e] = -(float)0, rights[1][step][e] = 0;
    fetch();
    int64_t k = 0;
    unsigned offset = 0;
    do {
        float *slices = memory + offset;
        left.keep(a_walk, slices);
        right.keep(b_walk, slices + left_slice::size);
        __syncthreads(); /* by now every thread has read the slices before, so the next ones may take their place */
        read(0, slices, 0);
        fetch();
        compute(1); /* the last steps of the slice before; the first time, -0 times 0 */
#pragma unroll
        for (int batch = 1; batch < batches; batch++) {
            read(batch % 2, slices, batch * steps);
            compute((batch - 1) % 2);
        }
        offset = left_slice::size + right_slice::size - offset;
        k += depth;
    } while (k < inner);
    compute(1);
#pragma unroll
    for (int r = 0; r < side; r++)
#pragma unroll
        for (int c = 0; c < side; c++) {
            const int64_t i = row + fw_place_f16<down, 1>(y, r), j = column + fw_place_f16<across, pack>(x, c);
            const float value = sums[r][c];
            if (i < rows && j < columns) out[i * columns + j] = fw_store_f16(fw_canonical_f32(value));
        }
    __syncthreads(); /* the block's next tile uses the same memory */
}

/* Chooses how to load once a tile. A choice at every slice costs up to a fifth of the time. */
template <int side, int depth, int steps, bool b_is_along>
FW_FN void fw_tile_f16(fw_matrix_f16 a, fw_matrix_f16 b, uint16_t *out, int64_t rows, int64_t columns, int64_t row,
                      int64_t column) {
    const int height = 8 * side, width = 16 * side, b_size = width * depth + (b_is_along ? 4 * width : 0);
    __shared__ __align__(16) float memory[2 * (height * (depth + 4) + b_size)];
    if (a.is_in_fours() && b.is_in_fours())
        fw_tile_by_f16<side, depth, steps, b_is_along, 4>(a, b, out, rows, columns, row, column, memory);
    else
        fw_tile_by_f16<side, depth, steps, b_is_along, 1>(a, b, out, rows, columns, row, column, memory);
}
#endif

template <int side, int depth, int steps>
FW_FN void fw_1ecc4b5b7e2584b36f0e_any(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    operands += blockIdx.y * (int64_t)3;
    slots += blockIdx.z * columns;
    const int64_t rows = fw_read_now(sizes + 0);
    const int64_t result_columns = fw_read_now(sizes + 1);
    const int64_t inner = fw_read_now(sizes + 2);
    const int64_t a_row = fw_read_now(sizes + 3);
    const int64_t a_inner = fw_read_now(sizes + 4);
    const int64_t b_inner = fw_read_now(sizes + 5);
    const int64_t b_column = fw_read_now(sizes + 6);
    const fw_operand a_at = {fw_read_now(&operands[0].column), fw_read_now(&operands[0].byte_offset)};
    const fw_operand b_at = {fw_read_now(&operands[1].column), fw_read_now(&operands[1].byte_offset)};
    const fw_operand out_at = {fw_read_now(&operands[2].column), fw_read_now(&operands[2].byte_offset)};
    uint16_t *a = (uint16_t *)__cvta_global_to_generic(fw_read_now(slots + a_at.column) + a_at.byte_offset);
    uint16_t *b = (uint16_t *)__cvta_global_to_generic(fw_read_now(slots + b_at.column) + b_at.byte_offset);
    uint16_t *out = (uint16_t *)__cvta_global_to_generic(fw_read_now(slots + out_at.column) + out_at.byte_offset);
    const int height = 8 * side, width = 16 * side;
    const int64_t tiles_down = (rows + height - 1) / height;
    const int64_t tiles_across = (result_columns + width - 1) / width;
    const int64_t tiles = tiles_down * tiles_across * 1;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t batch = tile;
        const int64_t column = fw_split_index(&batch, tiles_across) * width;
        const int64_t row = fw_split_index(&batch, tiles_down) * height;
        uint16_t *result = out + batch * rows * result_columns;
        fw_matrix_f16 left = {a + row * a_row, a_row, a_inner, inner};
        fw_matrix_f16 right = {b + column * b_column, b_column, b_inner, inner};
        fw_tile_f16<side, depth, steps, true>(left, right, result, rows, result_columns, row, column);
    }
}
extern "C" __global__ void __launch_bounds__(128, 2) fw_1ecc4b5b7e2584b36f0e_8x16(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    fw_1ecc4b5b7e2584b36f0e_any<1, 128, 16>(sizes, operands, slots, columns);
}
extern "C" __global__ void __launch_bounds__(128, 2) fw_1ecc4b5b7e2584b36f0e_16x32(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    fw_1ecc4b5b7e2584b36f0e_any<2, 64, 8>(sizes, operands, slots, columns);
}
extern "C" __global__ void __launch_bounds__(128, 2) fw_1ecc4b5b7e2584b36f0e_32x64(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    fw_1ecc4b5b7e2584b36f0e_any<4, 32, 4>(sizes, operands, slots, columns);
}
extern "C" __global__ void __launch_bounds__(128, 2) fw_1ecc4b5b7e2584b36f0e_64x128(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    fw_1ecc4b5b7e2584b36f0e_any<8, 16, 4>(sizes, operands, slots, columns);
}
