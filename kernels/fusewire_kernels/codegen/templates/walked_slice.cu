#ifndef FW_WALKED
#define FW_WALKED

/* A number as digits: as on an odometer the last one turns fastest, and each has an extent of its own. */
template <int rank>
struct fw_digits {
    int digits[rank];
};

/* The axes along which positions are counted, in row-major order, and their strides in elements. */
template <int rank>
struct fw_axes {
    int extents[rank], strides[rank];

    FW_METHOD fw_digits<rank> digits_of(unsigned position) const {
        fw_digits<rank> found;
#pragma unroll
        for (int axis = rank - 1; axis > 0; axis--) {
            found.digits[axis] = position % (unsigned)extents[axis];
            position /= (unsigned)extents[axis];
        }
        found.digits[0] = position;
        return found;
    }

    /* Adds two numbers. It takes no division, so that a thread can count on from load to load. */
    FW_METHOD void add(fw_digits<rank> &number, const fw_digits<rank> &step) const {
        int carry = 0;
#pragma unroll
        for (int axis = rank - 1; axis >= 0; axis--) {
            int digit = number.digits[axis] + step.digits[axis] + carry;
            carry = axis > 0 && digit >= extents[axis];
            if (carry) digit -= extents[axis];
            number.digits[axis] = digit;
        }
    }

    FW_METHOD int place(const fw_digits<rank> &number) const {
        int found = 0;
#pragma unroll
        for (int axis = 0; axis < rank; axis++) found += number.digits[axis] * strides[axis];
        return found;
    }
};

/* Begins to copy 4 or 8 bytes to shared memory, or writes zeros: by one instruction without a branch. */
template <int bytes>
FW_FN void fw_begin_copy_or_zero(void *to, const void *from, bool is_copied) {
#if __CUDA_ARCH__ >= 800
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const uint64_t source = __cvta_generic_to_global(from);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(source), "n"(bytes),
                 "r"(is_copied ? bytes : 0));
#else
#pragma unroll
    for (int n = 0; n < bytes / 4; n++) ((int32_t *)to)[n] = is_copied ? ((const int32_t *)from)[n] : 0;
#endif
}
#endif

/* The right operand of a product that has no two strides: the element (k, j) lies at a place along k and a place along
 * columns, which are counted along several axes. So are the windows of an array read where they lie.
 *
 * A thread loads elements of several lines of a slice, at one position of each. The places of lines are the same for all
 * threads, so they are counted once a block and kept in shared memory: counting takes more instructions than a load.
 * Lines that are columns stay from slice to slice. Of lines that are k's, those of each slice in the ring are kept. */
template <int inner_rank, int column_rank>
struct fw_right_$t {
    const $S *start;
    fw_axes<inner_rank> inner;
    fw_axes<column_rank> columns;
    int first_column;
    static const int64_t line_stride = 0, stride = 0; /* `start` stays: the count goes on from slice to slice */
    fw_digits<inner_rank> k, k_step; /* the next k whose place this thread counts, and how far the one after it is */
    int *places;                     /* of lines, in shared memory */
};

/* The slice of such an operand: as `fw_slice`, but neighbouring threads always load neighbours of a line. */
template <bool is_along, int lines, int length, int gap, int threads, typename Matrix>
struct fw_right_slice_$t : fw_slice_$t<lines, length, gap, threads, 1> {
    typedef fw_slice_$t<lines, length, gap, threads, 1> plain;
    static const int pack = plain::count < 4 ? plain::count : 4; /* places that are read at once */
    static_assert(lines <= threads, "a thread counts the place of one line");

    static FW_METHOD fw_walk walk(const Matrix &) {
        return {threadIdx.x / length * plain::count, threadIdx.x % length, 1, 0};
    }

    /* Counts the places for the first slices, as many as the ring has. Every thread of the block calls it. */
    template <int ring>
    static FW_METHOD void begin(Matrix &m) {
        __shared__ __align__(16) int places[is_along ? lines : ring * lines];
        m.places = places;
        if (is_along) {
            m.k = m.inner.digits_of(threadIdx.x % length), m.k_step = m.inner.digits_of(length);
            const unsigned line = threadIdx.x;
            if (line < lines) places[line] = m.columns.place(m.columns.digits_of(m.first_column + line));
        } else {
            m.start += m.columns.place(m.columns.digits_of(m.first_column + threadIdx.x % length));
            asm volatile("" : "+l"(m.start)); /* stops the compiler from adding to it what each load adds */
            m.k = m.inner.digits_of(threadIdx.x), m.k_step = m.inner.digits_of(lines);
            for (int slice = 0; slice < ring; slice++) count_on(m, slice);
        }
        __syncthreads();
    }

    /* Counts the places of the k's that come next, for the slice that gets this place in the ring. */
    static FW_METHOD void count_on(Matrix &m, unsigned slice) {
        if (is_along || threadIdx.x >= lines) return;
        m.places[slice * lines + threadIdx.x] = m.inner.place(m.k);
        m.inner.add(m.k, m.k_step);
    }

    /* Calls `load(number, element, is_inside)` for each load of a thread. */
    template <typename Load>
    static FW_METHOD void each(Matrix &m, fw_walk walk, unsigned slice, unsigned last_line, unsigned last_place,
                               const Load &load) {
        const int *places = m.places + (is_along ? 0 : slice * lines) + walk.line;
        const $S *start = m.start + (is_along ? m.inner.place(m.k) : 0);
#pragma unroll
        for (int n = 0; n < plain::count; n += pack) {
            const fw_pack<int, pack> some = *(const fw_pack<int, pack> *)(places + n);
#pragma unroll
            for (int i = 0; i < pack; i++)
                load(n + i, start + some.values[i], walk.line + n + i < last_line && walk.place < last_place);
        }
        if (is_along) m.inner.add(m.k, m.k_step);
    }

    /* Beyond the last line or place there are zeros, which is what a right operand has there. */
    static FW_METHOD void copy(Matrix &m, fw_walk walk, unsigned slice, unsigned last_line, unsigned last_place, $S,
                               $A *memory) {
        if (plain::is_idle(walk)) return;
        memory += walk.line * plain::pitch + walk.place;
        each(m, walk, slice, last_line, last_place, [=](int n, const $S *element, bool is_inside) {
            fw_begin_copy_or_zero<sizeof($A)>(memory + n * plain::pitch, element, is_inside);
        });
    }

    FW_METHOD void fetch(Matrix &m, fw_walk walk, unsigned slice, unsigned last_line, unsigned last_place, $S outside) {
        if (plain::is_idle(walk)) return;
        each(m, walk, slice, last_line, last_place, [&](int n, const $S *element, bool is_inside) {
            this->held[n].values[0] = is_inside ? *element : outside;
        });
    }
};

template <bool is_along, int count, int depth, int threads, typename Matrix>
using fw_right_slice_of_$t =
    fw_right_slice_$t<is_along, is_along ? count : depth, is_along ? depth : count, is_along ? 4 : 0, threads, Matrix>;

