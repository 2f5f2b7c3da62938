#ifndef FW_PRODUCT_$t
#define FW_PRODUCT_$t

/* A matrix in memory, as it is stored. */
typedef struct {
    const $S *start;
    int64_t row;
    int64_t column;
} fw_matrix_$t;

FW_FN $A fw_accumulable_$t(fw_matrix_$t m, int64_t i, int64_t j) {
    const $S *element = m.start + i * m.row + j * m.column;
    return ($A)($loaded);
}

/* A part of a, `height` rows by `depth` of k, as [depth][height], by all threads; neighbours in memory are read by
 * neighbouring threads. Zero outside the matrix. */
template <int height, int depth, int threads>
FW_FN void fw_load_a_$t(fw_matrix_$t a, int64_t row, int64_t k, int64_t rows, int64_t inner, $A *part) {
    for (int e = threadIdx.x; e < height * depth; e += threads) {
        const int i = a.column == 1 ? e / depth : e % height, d = a.column == 1 ? e % depth : e / height;
        const bool is_inside = row + i < rows && k + d < inner;
        part[d * (height + 1) + i] = is_inside ? fw_accumulable_$t(a, row + i, k + d) : ($A)0;
    }
}

template <int width, int depth, int threads>
FW_FN void fw_load_b_$t(fw_matrix_$t b, int64_t k, int64_t column, int64_t inner, int64_t columns, $A *part) {
    for (int e = threadIdx.x; e < width * depth; e += threads) {
        const int j = b.column == 1 ? e % width : e / depth, d = b.column == 1 ? e / width : e % depth;
        const bool is_inside = k + d < inner && column + j < columns;
        part[d * (width + 1) + j] = is_inside ? fw_accumulable_$t(b, k + d, column + j) : ($A)0;
    }
}

/* One step of k for the elements of a thread. */
template <int height, int width, int thread_height, int thread_width>
FW_FN void fw_step_$t(const $A *a, const $A *b, $A (&sums)[thread_height][thread_width]) {
    const int across = width / thread_width, down = height / thread_height;
    const int x = threadIdx.x % across, y = threadIdx.x / across;
    for (int r = 0; r < thread_height; r++)
        for (int c = 0; c < thread_width; c++) {
            const $A left = a[y + r * down], right = b[x + c * across];
            sums[r][c] = $multiply_add;
        }
}

/* A tile of the result from (row, column) on. Steps of k beyond the last are not taken: adding 0 to -0 would give 0. */
template <int height, int width, int thread_height, int thread_width, int depth>
FW_FN void fw_tile_$t(fw_matrix_$t a, fw_matrix_$t b, $S *out, int64_t rows, int64_t columns, int64_t inner,
                      int64_t row, int64_t column) {
    const int across = width / thread_width, down = height / thread_height, threads = across * down;
    __shared__ $A part_a[depth * (height + 1)], part_b[depth * (width + 1)];
    $A sums[thread_height][thread_width] = {};
    for (int64_t k = 0; k < inner; k += depth) {
        fw_load_a_$t<height, depth, threads>(a, row, k, rows, inner, part_a);
        fw_load_b_$t<width, depth, threads>(b, k, column, inner, columns, part_b);
        __syncthreads();
        if (inner - k >= depth) {
#pragma unroll
            for (int d = 0; d < depth; d++)
                fw_step_$t<height, width>(part_a + d * (height + 1), part_b + d * (width + 1), sums);
        } else {
            for (int d = 0; d < inner - k; d++)
                fw_step_$t<height, width>(part_a + d * (height + 1), part_b + d * (width + 1), sums);
        }
        __syncthreads();
    }
    for (int r = 0; r < thread_height; r++)
        for (int c = 0; c < thread_width; c++) {
            const int64_t i = row + threadIdx.x / across + r * down, j = column + threadIdx.x % across + c * across;
            const $A value = sums[r][c];
            if (i < rows && j < columns) out[i * columns + j] = $finished;
        }
}
#endif

