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
#endif

/* The right operand of a product that has no two strides: the element (k, j) lies at a place along k and a place along
 * columns, which are counted along several axes. So are the windows of an array read where they lie.
 *
 * A thread counts where its own loads are. Of a slice whose lines lie along k (`lines_are_columns`), these are elements of
 * one k and several columns, and of any other slice elements of one column and several k. */
template <int inner_rank, int column_rank>
struct fw_right_$t {
    const $S *start;
    fw_axes<inner_rank> inner;
    fw_axes<column_rank> columns;
    int first_column;
    static const int64_t line_stride = 0, stride = 0; /* `start` stays: the count goes on from slice to slice */
    fw_digits<inner_rank> k, k_step;                  /* of the next slice's first load, and how far the next is */
    fw_digits<column_rank> column, column_step;

    template <bool lines_are_columns>
    FW_METHOD void begin(fw_walk walk, unsigned lines_apart, unsigned depth) {
        k = inner.digits_of(lines_are_columns ? walk.place : walk.line);
        k_step = inner.digits_of(lines_are_columns ? depth : lines_apart);
        column = columns.digits_of(first_column + (lines_are_columns ? walk.line : walk.place));
        column_step = columns.digits_of(lines_are_columns ? lines_apart : 0);
    }
};

/* The slice of such an operand: as `fw_slice`, but neighbouring threads always load neighbours of a line. */
template <bool is_along, int lines, int length, int gap, int threads, typename Matrix>
struct fw_right_slice_$t : fw_slice_$t<lines, length, gap, threads, 1> {
    typedef fw_slice_$t<lines, length, gap, threads, 1> plain;
    /* Of one load a slice, the next one is that of the next slice. */
    static const unsigned lines_apart = plain::loads < threads ? lines : threads / length;

    static FW_METHOD fw_walk walk(Matrix &m) {
        const fw_walk walk = {threadIdx.x / length, threadIdx.x % length, threads / length, 0};
        m.template begin<is_along>(walk, lines_apart, length);
        return walk;
    }

    /* Calls `load(number, element, is_inside)` for each load of a thread, and counts on to the next slice. */
    template <typename Load>
    static FW_METHOD void each(Matrix &m, fw_walk walk, unsigned last_line, unsigned last_place, const Load &load) {
        auto column = m.column;
        const int fixed = is_along ? m.inner.place(m.k) : m.columns.place(m.column);
#pragma unroll
        for (int n = 0; n < plain::count; n++, walk.line += walk.lines_apart) {
            const int moving = is_along ? m.columns.place(column) : m.inner.place(m.k);
            load(n, m.start + (fixed + moving), walk.line < last_line && walk.place < last_place);
            if (is_along) m.columns.add(column, m.column_step);
            else m.inner.add(m.k, m.k_step);
        }
        if (is_along) m.inner.add(m.k, m.k_step);
    }

    static FW_METHOD void copy(Matrix &m, fw_walk walk, unsigned last_line, unsigned last_place, $S outside,
                               $A *memory) {
        if (plain::is_idle(walk)) return;
        memory += walk.line * plain::pitch + walk.place;
        const unsigned step = walk.lines_apart * plain::pitch;
        each(m, walk, last_line, last_place, [&](int n, const $S *element, bool is_inside) {
            if (is_inside) fw_begin_copy<sizeof($A)>(memory + n * step, element);
            else memory[n * step] = ($A)outside;
        });
    }

    FW_METHOD void fetch(Matrix &m, fw_walk walk, unsigned last_line, unsigned last_place, $S outside) {
        if (plain::is_idle(walk)) return;
        each(m, walk, last_line, last_place, [&](int n, const $S *element, bool is_inside) {
            this->held[n].values[0] = is_inside ? *element : outside;
        });
    }
};

template <bool is_along, int count, int depth, int threads, typename Matrix>
using fw_right_slice_of_$t =
    fw_right_slice_$t<is_along, is_along ? count : depth, is_along ? depth : count, is_along ? 4 : 0, threads, Matrix>;

