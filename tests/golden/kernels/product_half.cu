// schedule: product 0
#ifndef FW_PRODUCT_f16
#define FW_PRODUCT_f16

/* A matrix in memory, as it is stored. */
typedef struct {
    const uint16_t *start;
    int64_t row;
    int64_t column;
} fw_matrix_f16;

FW_FN float fw_accumulable_f16(fw_matrix_f16 m, int64_t i, int64_t j) {
    const uint16_t *element = m.start + i * m.row + j * m.column;
    return (float)(fw_load_f16(*element));
}

/* A part of a, `height` rows by `depth` of k, as [depth][height], by all threads; neighbours in memory are read by
 * neighbouring threads. Zero outside the matrix. */
template <int height, int depth, int threads>
FW_FN void fw_load_a_f16(fw_matrix_f16 a, int64_t row, int64_t k, int64_t rows, int64_t inner, float *part) {
    for (int e = threadIdx.x; e < height * depth; e += threads) {
        const int i = a.column == 1 ? e / depth : e % height, d = a.column == 1 ? e % depth : e / height;
        const bool is_inside = row + i < rows && k + d < inner;
        part[d * (height + 1) + i] = is_inside ? fw_accumulable_f16(a, row + i, k + d) : (float)0;
    }
}

template <int width, int depth, int threads>
FW_FN void fw_load_b_f16(fw_matrix_f16 b, int64_t k, int64_t column, int64_t inner, int64_t columns, float *part) {
    for (int e = threadIdx.x; e < width * depth; e += threads) {
        const int j = b.column == 1 ? e % width : e / depth, d = b.column == 1 ? e / width : e % depth;
        const bool is_inside = k + d < inner && column + j < columns;
        part[d * (width + 1) + j] = is_inside ? fw_accumulable_f16(b, k + d, column + j) : (float)0;
    }
}

/* One step of k for the elements of a thread. */
template <int height, int width, int thread_height, int thread_width>
FW_FN void fw_step_f16(const float *a, const float *b, float (&sums)[thread_height][thread_width]) {
    const int across = width / thread_width, down = height / thread_height;
    const int x = threadIdx.x % across, y = threadIdx.x / across;
    for (int r = 0; r < thread_height; r++)
        for (int c = 0; c < thread_width; c++) {
            const float left = a[y + r * down], right = b[x + c * across];
            sums[r][c] = fw_fma_f32(left, right, sums[r][c]);
        }
}

/* A tile of the result from (row, column) on. Steps of k beyond the last are not taken: adding 0 to -0 would give 0. */
template <int height, int width, int thread_height, int thread_width, int depth>
FW_FN void fw_tile_f16(fw_matrix_f16 a, fw_matrix_f16 b, uint16_t *out, int64_t rows, int64_t columns, int64_t inner,
                      int64_t row, int64_t column) {
    const int across = width / thread_width, down = height / thread_height, threads = across * down;
    __shared__ float part_a[depth * (height + 1)], part_b[depth * (width + 1)];
    float sums[thread_height][thread_width] = {};
    for (int64_t k = 0; k < inner; k += depth) {
        fw_load_a_f16<height, depth, threads>(a, row, k, rows, inner, part_a);
        fw_load_b_f16<width, depth, threads>(b, k, column, inner, columns, part_b);
        __syncthreads();
        if (inner - k >= depth) {
#pragma unroll
            for (int d = 0; d < depth; d++)
                fw_step_f16<height, width>(part_a + d * (height + 1), part_b + d * (width + 1), sums);
        } else {
            for (int d = 0; d < inner - k; d++)
                fw_step_f16<height, width>(part_a + d * (height + 1), part_b + d * (width + 1), sums);
        }
        __syncthreads();
    }
    for (int r = 0; r < thread_height; r++)
        for (int c = 0; c < thread_width; c++) {
            const int64_t i = row + threadIdx.x / across + r * down, j = column + threadIdx.x % across + c * across;
            const float value = sums[r][c];
            if (i < rows && j < columns) out[i * columns + j] = fw_store_f16(fw_canonical_f32(value));
        }
}
#endif

template <int height, int width, int thread_height, int thread_width, int depth>
FW_FN void fw_1ecc4b5b7e2584b36f0e_any(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    operands += blockIdx.y * (int64_t)3;
    slots += blockIdx.z * columns;
    const int64_t rows = sizes[0];
    const int64_t result_columns = sizes[1];
    const int64_t inner = sizes[2];
    const int64_t a_row = sizes[3];
    const int64_t a_inner = sizes[4];
    const int64_t b_inner = sizes[5];
    const int64_t b_column = sizes[6];
    const uint16_t *a = (const uint16_t *)(slots[operands[0].column] + operands[0].byte_offset);
    const uint16_t *b = (const uint16_t *)(slots[operands[1].column] + operands[1].byte_offset);
    uint16_t *out = (uint16_t *)(slots[operands[2].column] + operands[2].byte_offset);
    const int64_t down = (rows + height - 1) / height, across = (result_columns + width - 1) / width;
    const int64_t tiles = down * across * 1;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t batch = tile;
        const int64_t column = fw_split_index(&batch, across) * width;
        const int64_t row = fw_split_index(&batch, down) * height;
        uint16_t *result = out + batch * rows * result_columns;
        fw_matrix_f16 left = {a, a_row, a_inner};
        fw_matrix_f16 right = {b, b_inner, b_column};
        fw_tile_f16<height, width, thread_height, thread_width, depth>(left, right, result, rows, result_columns, inner, row, column);
    }
}
extern "C" __global__ void __launch_bounds__(128) fw_1ecc4b5b7e2584b36f0e_thin(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    fw_1ecc4b5b7e2584b36f0e_any<4, 32, 1, 1, 64>(sizes, operands, slots, columns);
}
extern "C" __global__ void __launch_bounds__(256) fw_1ecc4b5b7e2584b36f0e_small(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    fw_1ecc4b5b7e2584b36f0e_any<16, 32, 1, 2, 32>(sizes, operands, slots, columns);
}
extern "C" __global__ void __launch_bounds__(256) fw_1ecc4b5b7e2584b36f0e_medium(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    fw_1ecc4b5b7e2584b36f0e_any<64, 64, 4, 4, 16>(sizes, operands, slots, columns);
}
extern "C" __global__ void __launch_bounds__(256) fw_1ecc4b5b7e2584b36f0e_large(const int64_t *sizes, const fw_operand *operands, const int64_t *slots, int64_t columns) {
    fw_1ecc4b5b7e2584b36f0e_any<128, 128, 8, 8, 8>(sizes, operands, slots, columns);
}
