// schedule: product 0
#ifndef FW_COPIES
#define FW_COPIES

/* Begins to copy bytes from global to shared memory: 4, 8, or a multiple of 16. */
template <int bytes>
FW_FN void fw_begin_copy(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const uint64_t source = __cvta_generic_to_global(from);
    if (bytes < 16) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(source), "n"(bytes));
#pragma unroll
    for (int n = 0; n < bytes / 16; n++)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place + 16 * n), "l"(source + 16 * n));
#else
#pragma unroll
    for (int n = 0; n < bytes / 4; n++) ((int32_t *)to)[n] = ((const int32_t *)from)[n];
#endif
}

/* Ends a list of copies, of those that this thread has begun since the last list. */
FW_FN void fw_end_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for the copies of this thread, except those of the last `lists` lists. */
template <int lists>
FW_FN void fw_wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(lists) : "memory");
#endif
}
#endif
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

/* Waits for all threads of a block of so many. Its warps may wait in different places of the code, which
 * `__syncthreads` does not allow. */
template <int threads>
FW_FN void fw_meet_in_block() {
    asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
}

/* The place of a thread's first load in a slice, and how many lines and places further each next load is. */
struct fw_walk {
    unsigned line, place, lines_apart, places_apart;
};
#endif

#ifndef FW_PRODUCT_f16
#define FW_PRODUCT_f16

/* A block computes a tile of the result, and a thread `high` × `wide` elements of it, each as one chain of fma over
 * ascending k. Both operands pass through shared memory in slices of `depth` steps of k, and a block computes on one slice
 * while the next ones arrive. Elements that are summed in the type in which they are stored are copied to shared memory
 * by the device itself, into a ring of slices. A thread loads other elements into registers, a slice at a time,
 * and converts them when it stores them to shared memory. The number of loads is a constant: with any other loop the
 * compiler puts a store to shared memory behind each load, and each store waits for its load.
 *
 * Beyond the last k, a is -0 and b is 0. Their product is -0, and adding -0 changes no sum, not even one that is -0. */

/* A matrix from some element on, as lines of elements. The lines lie along k or across it. */
struct fw_matrix_f16 {
    const uint16_t *start;
    int64_t line_stride, stride;
};

/* A slice of an operand. A thread brings `unit` elements at a time, 4 or 1, to shared memory, either by copies or by
 * way of `held`. In shared memory `gap` elements lie between lines, so that threads which read different lines use
 * different banks. */
template <int lines, int length, int gap, int threads, int unit>
struct fw_slice_f16 {
    static const unsigned pitch = length + gap, size = lines * pitch, units_a_line = length / unit;
    static const int loads = lines * length / unit, count = loads < threads ? 1 : loads / threads;
    static_assert(loads < threads || count * threads == loads, "every thread loads as many elements");
    static_assert(threads % units_a_line == 0 && threads % lines == 0, "a walk moves along one dimension only");

    fw_pack<uint16_t, unit> held[count];

    /* The walk by which neighbouring threads load neighbours in memory. */
    static FW_METHOD fw_walk walk(const fw_matrix_f16 &m) {
        const unsigned thread = threadIdx.x;
        if (unit == 1 && m.stride != 1) return {thread % lines, thread / lines, 0, threads / lines};
        return {thread / units_a_line, thread % units_a_line * unit, threads / units_a_line, 0};
    }

    /* Of a matrix with strides no place need be known before. */
    template <int ring>
    static FW_METHOD void begin(const fw_matrix_f16 &) {}
    static FW_METHOD void count_on(const fw_matrix_f16 &, unsigned) {}

    /* Whether a thread has no loads, because there are more threads than loads. */
    static FW_METHOD bool is_idle(const fw_walk &walk) {
        return loads < threads && (walk.line >= lines || walk.place >= length);
    }

    /* Begins to copy the first slice of a matrix to shared memory. Lines from `last_line` on, and places from
     * `last_place` on, are `outside`. */
    static FW_METHOD void copy(const fw_matrix_f16 &m, fw_walk walk, unsigned, unsigned last_line, unsigned last_place,
                               uint16_t outside, float *memory) {
        if (is_idle(walk)) return;
        const uint16_t *next = m.start + walk.line * m.line_stride + walk.place * m.stride;
        memory += walk.line * pitch + walk.place;
        int64_t step = walk.lines_apart * m.line_stride + walk.places_apart * m.stride;
        unsigned kept_step = walk.lines_apart * pitch + walk.places_apart;
        asm volatile("" : "+l"(step), "+r"(kept_step)); /* stops the compiler from keeping all multiples in registers */
#pragma unroll
        for (int n = 0; n < count; n++, memory += kept_step) {
            if (walk.line < last_line && walk.place < last_place) {
                fw_begin_copy<unit * sizeof(float)>(memory, next);
            } else {
#pragma unroll
                for (int i = 0; i < unit; i++) memory[i] = (float)outside;
            }
            next += step, walk.line += walk.lines_apart, walk.place += walk.places_apart;
        }
    }

    /* Begins to load the first slice of a matrix. Lines from `last_line` on, and places from `last_place` on, are
     * `outside`. */
    FW_METHOD void fetch(const fw_matrix_f16 &m, fw_walk walk, unsigned, unsigned last_line, unsigned last_place,
                         uint16_t outside) {
        if (is_idle(walk)) return;
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
        if (is_idle(walk)) return;
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
template <int threads, int pitch, int steps, int count>
FW_FN void fw_read_along_f16(const float *memory, unsigned thread, unsigned k, float (&values)[steps][count]) {
#pragma unroll
    for (int e = 0; e < count; e++)
#pragma unroll
        for (int step = 0; step < steps; step += 4) {
            const float *place = memory + fw_place_f16<threads, 1>(thread, e) * pitch + k + step;
            const fw_pack<float, 4> four = *(const fw_pack<float, 4> *)place;
#pragma unroll
            for (int i = 0; i < 4; i++) values[step + i][e] = four.values[i];
        }
}

/* The same in a slice whose lines lie across k. */
template <int threads, int pack, int pitch, int steps, int count>
FW_FN void fw_read_across_f16(const float *memory, unsigned thread, unsigned k, float (&values)[steps][count]) {
#pragma unroll
    for (int step = 0; step < steps; step++)
#pragma unroll
        for (int e = 0; e < count; e += pack) {
            const float *place = memory + (k + step) * pitch + fw_place_f16<threads, pack>(thread, e);
            const fw_pack<float, pack> some = *(const fw_pack<float, pack> *)place;
#pragma unroll
            for (int i = 0; i < pack; i++) values[step][e + i] = some.values[i];
        }
}

/* The same for a warp whose lanes have a column each: one instruction reads four lines. Its unit is eight rows of four
 * words, of which lane i gets word i % 4 of row i / 4, and lane i has the address of row i % 8 of unit i / 8. Here a unit
 * is a line. Lanes beyond the columns read the line once more. */
template <int columns, int pitch, int steps>
FW_FN void fw_read_lines_f16(const float *memory, unsigned k, float (&values)[steps][1]) {
    const unsigned lane = threadIdx.x % 32;
#if __CUDA_ARCH__ >= 750
    const float *own = memory + lane / 8 * pitch + lane % 8 * 4 % columns;
#pragma unroll
    for (int step = 0; step < steps; step += 4) {
        const unsigned place = (unsigned)__cvta_generic_to_shared(own + (k + step) * pitch);
        uint32_t words[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "r"(place)
                     : "memory");
#pragma unroll
        for (int i = 0; i < 4; i++) values[step + i][0] = *(float *)&words[i];
    }
#else
    fw_read_across_f16<columns, 1, pitch>(memory, lane % columns, k, values);
#endif
}

/* Reads a thread's elements of a slice for the steps of k from `k` on. */
template <bool is_along, int threads, int pack, int pitch, int steps, int count>
FW_FN void fw_read_f16(const float *memory, unsigned thread, unsigned k, float (&values)[steps][count]) {
    if constexpr (is_along) fw_read_along_f16<threads, pitch>(memory, thread, k, values);
    else fw_read_across_f16<threads, pack, pitch>(memory, thread, k, values);
}

/* The slice of an operand that has `count` rows or columns in the tile: lines along k, or lines across it. */
template <bool is_along, int count, int depth, int threads, int unit>
using fw_slice_of_f16 =
    fw_slice_f16<is_along ? count : depth, is_along ? depth : count, is_along ? 4 : 0, threads, unit>;

/* Computes the tile of the result from (row, column) on, and calls `finish(row, column, sum)` for each element. `a` starts
 * at that row, `b` at that column. The lines of an operand lie along k or across it. If down × across threads are fewer
 * than load, a warp of its own behind them computes, so that it need not wait until it has begun the next loads. If a
 * thread has many sums, these pass through shared memory. Then neighbouring threads finish neighbouring columns, so that
 * they read and write whole sectors of memory. A thread stays in one column, so that its addresses grow by a constant, and
 * the text of `finish` is not there for each of its elements. */
template <int down, int across, int high, int wide, int depth, int steps, int kept, bool a_is_along, bool b_is_along,
          int unit, typename Finish>
FW_FN void fw_tile_f16(fw_matrix_f16 a, fw_matrix_f16 b, int64_t rows, int64_t columns, int64_t inner, int64_t row,
                      int64_t column, const Finish &finish) {
    const int threads = 128, height = down * high, width = across * wide;
    const int batches = depth / steps, is_copied = 0;
    const bool is_staged = high * wide > 4;
    const int a_pack = a_is_along ? 1 : high < 4 ? high : 4, b_pack = b_is_along ? 1 : wide < 4 ? wide : 4;
    static_assert(batches % 2 == 0, "a slice ends with the second of two batches");
    typedef fw_slice_of_f16<a_is_along, height, depth, threads, unit> left_slice;
    typedef fw_slice_of_f16<b_is_along, width, depth, threads, unit> right_slice;
    const int ring = is_copied ? kept : 2; /* slices in shared memory: a block computes on one while the others arrive */
    const unsigned size = left_slice::size + right_slice::size, results = is_staged ? height * width : 0;
    __shared__ __align__(16) float memory[ring * size > results ? ring * size : results];
    left_slice left;
    right_slice right;
    float sums[high][wide] = {}, lefts[2][steps][high], rights[2][steps][wide];

    const bool has_own_warp = down * across < threads;
    static_assert(!has_own_warp || down * across <= 32, "one warp computes");
    const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;

    /* Lanes i and i ^ 1 share a column, i and i ^ 2 a row: so shared memory serves wide reads of a whole warp at once. */
    const unsigned x = has_own_warp ? lane % across : warp % (across / 8) * 8 + lane / 2 % 8;
    const unsigned y = has_own_warp ? lane / across % down : warp / (across / 8) * 4 + lane % 2 + lane / 16 * 2;

    const fw_walk a_walk = left_slice::walk(a), b_walk = right_slice::walk(b);
    right_slice::template begin<ring>(b);
    const unsigned last_row = fw_lesser(rows - row, height), last_column = fw_lesser(columns - column, width);
    int64_t unfetched = inner;
    auto bring = [&](unsigned place) {
        const unsigned last_k = unfetched < 0 ? 0 : fw_lesser(unfetched, depth);
        const unsigned a_line = a_is_along ? last_row : last_k, a_place = a_is_along ? last_k : last_row;
        const unsigned b_line = b_is_along ? last_column : last_k, b_place = b_is_along ? last_k : last_column;
        if constexpr (is_copied) {
            left.copy(a, a_walk, place / size, a_line, a_place, (uint16_t)0x8000, memory + place);
            right.copy(b, b_walk, place / size, b_line, b_place, 0, memory + place + left_slice::size);
            fw_end_copies();
        } else {
            left.fetch(a, a_walk, place / size, a_line, a_place, (uint16_t)0x8000);
            right.fetch(b, b_walk, place / size, b_line, b_place, 0);
        }
        a.start += depth * (a_is_along ? a.stride : a.line_stride);
        b.start += depth * (b_is_along ? b.stride : b.line_stride);
        unfetched -= depth;
    };
    auto arrive = [&](unsigned place) {
        if constexpr (is_copied) {
            fw_wait_for_copies<ring - 2>();
        } else {
            left.keep(a_walk, memory + place);
            right.keep(b_walk, memory + place + left_slice::size);
        }
    };
    auto read = [&](int batch, const float *slices, int k) {
        fw_read_f16<a_is_along, down, a_pack, left_slice::pitch>(slices, y, k, lefts[batch]);
        const float *right = slices + left_slice::size;
        if constexpr (has_own_warp && !b_is_along && sizeof(float) == 4)
            fw_read_lines_f16<across, right_slice::pitch>(right, k, rights[batch]);
        else fw_read_f16<b_is_along, across, b_pack, right_slice::pitch>(right, x, k, rights[batch]);
    };
    auto compute = [&](int batch) {
#pragma unroll
        for (int step = 0; step < steps; step++)
#pragma unroll
            for (int r = 0; r < high; r++)
#pragma unroll
                for (int c = 0; c < wide; c++) {
                    const float left = lefts[batch][step][r], right = rights[batch][step][c];
                    sums[r][c] = fw_fma_f32(left, right, sums[r][c]);
                }
    };

#pragma unroll
    for (int step = 0; step < steps; step++) {
#pragma unroll
        for (int r = 0; r < high; r++) lefts[1][step][r] = -(float)0;
#pragma unroll
        for (int c = 0; c < wide; c++) rights[1][step][c] = 0;
    }
    /* Warps that only load and the warp that only computes have a copy of this loop each. In one loop with branches, the
     * computing warp waited at the branches for loads. Both copies pass as many barriers. */
    const auto run_slices = [&](bool loads, bool computes) __attribute__((always_inline)) {
        if (loads)
#pragma unroll(has_own_warp ? 1 : ring) /* unrolled they are faster in large tiles, and compile slower */
            for (int n = 0; n < ring - 1; n++) bring(n * size);
        int64_t k = 0;
        unsigned place = 0, free = (ring - 1) * size;
        do {
            if (loads) arrive(place);
            fw_meet_in_block<threads + (has_own_warp ? 32 : 0)>();
            /* By now every thread has read the slices before, so the next ones may take their place. */
            if (computes) read(0, memory + place, 0);
            if (loads) {
                bring(free);
                right_slice::count_on(b, place / size);
            }
            if (computes) {
                compute(1); /* the last steps of the slice before; the first time, -0 times 0 */
#pragma unroll
                for (int batch = 1; batch < batches; batch++) {
                    read(batch % 2, memory + place, batch * steps);
                    compute((batch - 1) % 2);
                }
            }
            free = place;
            place = place == (ring - 1) * size ? 0 : place + size;
            k += depth;
        } while (k < inner);
        if (loads && is_copied) fw_wait_for_copies<0>(); /* zeros beyond the last k, too: the memory is used again */
        if (computes) compute(1);
    };
    const bool only_loads = has_own_warp && thread < threads;
    if constexpr (has_own_warp) {
        if (only_loads) run_slices(true, false);
        else run_slices(false, true);
    } else {
        run_slices(true, true);
    }
    if constexpr (is_staged) {
        __syncthreads(); /* every thread has read the last slices */
#pragma unroll
        for (int r = 0; r < high; r++)
#pragma unroll
            for (int c = 0; c < wide; c += b_pack) {
                fw_pack<float, b_pack> some;
#pragma unroll
                for (int n = 0; n < b_pack; n++) some.values[n] = sums[r][c + n];
                const unsigned i = fw_place_f16<down, a_pack>(y, r), j = fw_place_f16<across, b_pack>(x, c);
                *(fw_pack<float, b_pack> *)(memory + i * width + j) = some;
            }
        __syncthreads();
        static_assert(threads % width == 0, "a thread finishes elements of one column");
        const int64_t j = column + thread % width;
        int64_t i = row + thread / width;
        const float *next = memory + thread;
        if (row + height <= rows && column + width <= columns) {
#pragma unroll 8
            for (unsigned n = 0; n < height * width / threads; n++) {
                finish(i, j, *next);
                i += threads / width, next += threads;
            }
        } else if (j < columns) {
#pragma unroll 1
            for (unsigned n = 0; n < height * width / threads && i < rows; n++) {
                finish(i, j, *next);
                i += threads / width, next += threads;
            }
        }
    } else if (!has_own_warp || (!only_loads && lane < down * across)) {
#pragma unroll
        for (int r = 0; r < high; r++)
#pragma unroll
            for (int c = 0; c < wide; c++) {
                const int64_t i = row + fw_place_f16<down, a_pack>(y, r), j = column + fw_place_f16<across, b_pack>(x, c);
                if (i < rows && j < columns) finish(i, j, sums[r][c]);
            }
    }
    __syncthreads(); /* the block's next tile uses the same memory */
}
#endif
#ifndef fw_7a4cf609f91f51e3269e_defined
#define fw_7a4cf609f91f51e3269e_defined
template <int down, int across, int high, int wide, int depth, int steps, int kept>
FW_FN void fw_7a4cf609f91f51e3269e_any(const fw_values &values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
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
    const int64_t rows = sizes[0];
    const int64_t result_columns = sizes[1];
    const int64_t inner = sizes[2];
    const int64_t a_row = sizes[3];
    const int64_t a_inner = sizes[4];
    const int64_t b_inner = sizes[5];
    const int64_t b_column = sizes[6];
    const fw_operand a_at = operands[0];
    const fw_operand b_at = operands[1];
    const fw_operand out_at = operands[2];
    uint16_t *a = (uint16_t *)__cvta_global_to_generic(fw_read_now(slots + a_at.column) + a_at.byte_offset);
    uint16_t *b = (uint16_t *)__cvta_global_to_generic(fw_read_now(slots + b_at.column) + b_at.byte_offset);
    uint16_t *out = (uint16_t *)__cvta_global_to_generic(fw_read_now(slots + out_at.column) + out_at.byte_offset);
    fw_wait_for_kernels_before();
    fw_let_next_kernel_start();
    const int height = down * high, width = across * wide;
    const int64_t tiles_down = (rows + height - 1) / height;
    const int64_t tiles_across = (result_columns + width - 1) / width;
    const int64_t tiles = tiles_down * tiles_across * 1;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t batch = tile;
        const int64_t column = fw_split_index(&batch, tiles_across) * width;
        const int64_t row = fw_split_index(&batch, tiles_down) * height;
        uint16_t *result = out + batch * rows * result_columns;
        fw_matrix_f16 left = {a + row, a_inner, 1};
        fw_matrix_f16 right = {b + column * b_column, b_column, b_inner};
        const auto finish = [&](int64_t i0, int64_t i1, float sum) {
        result[i0 * result_columns + i1] = fw_store_f16(fw_canonical_f32(sum));
        };
        fw_tile_f16<down, across, high, wide, depth, steps, kept, false, true, 1>(left, right, rows, result_columns, inner, row, column, finish);
    }
}
#endif
extern "C" __global__ void __launch_bounds__(128, 2) fw_7a4cf609f91f51e3269e_8x16(const __grid_constant__ fw_values values, const int64_t *all_sizes, const fw_operand *all_operands, const int64_t *slots, int64_t columns) {
    fw_7a4cf609f91f51e3269e_any<8, 16, 1, 1, 128, 16, 3>(values, all_sizes, all_operands, slots, columns);
}
