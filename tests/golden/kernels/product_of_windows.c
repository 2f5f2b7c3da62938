#ifndef FW_PRODUCT_f32
#define FW_PRODUCT_f32
#ifndef FW_PRODUCT
#define FW_PRODUCT
#if defined(__AVX512F__)
#define FW_PRODUCT_VECTOR_BYTES 64
#elif defined(__AVX__)
#define FW_PRODUCT_VECTOR_BYTES 32
#else
#define FW_PRODUCT_VECTOR_BYTES 16
#endif
/* A block: so many of k, so many bytes of b (half a usual second-level cache). */
#define FW_PRODUCT_INNER 256
#define FW_PRODUCT_B_BYTES 524288
#define FW_PRODUCT_COLUMN_BYTES (FW_PRODUCT_B_BYTES / FW_PRODUCT_INNER)
/* Up to so many rows, a and b are not walked often enough to be worth packing. */
#define FW_PRODUCT_FEW_ROWS 32
#define FW_PRODUCT_SCRATCH_ROWS 64
#define FW_PRODUCT_HEIGHT 8
/* A thread's own memory, and the function that returns its address. If gcc saw that it always returns the same address,
 * it would ask for the address again at each use, which doubles the time of a small product. */
#define FW_THREAD_SCRATCH(name, bytes)                                                  \
    static _Thread_local __attribute__((aligned(64))) char name##_memory[bytes];        \
    static __attribute__((noinline, noipa, unused)) char *name(void) { return name##_memory; }
FW_THREAD_SCRATCH(fw_product_b, FW_PRODUCT_B_BYTES)
FW_THREAD_SCRATCH(fw_product_a, FW_PRODUCT_INNER * FW_PRODUCT_HEIGHT * 8)
FW_THREAD_SCRATCH(fw_product_out, FW_PRODUCT_COLUMN_BYTES * FW_PRODUCT_SCRATCH_ROWS)
FW_THREAD_SCRATCH(fw_product_values, FW_PRODUCT_COLUMN_BYTES * FW_PRODUCT_SCRATCH_ROWS)
#endif

#define FW_LANES_f32 ((int)(FW_PRODUCT_VECTOR_BYTES / sizeof(float)))
#define FW_PANEL_f32 (2 * FW_LANES_f32)
#define FW_BLOCK_COLUMNS_f32 (FW_PRODUCT_COLUMN_BYTES / (int)sizeof(float))

typedef float fw_vector_f32 __attribute__((vector_size(FW_PRODUCT_VECTOR_BYTES), aligned(sizeof(float)), may_alias));

/* A matrix in memory, as it is stored. */
typedef struct {
    const float *start;
    int64_t row;
    int64_t column;
} fw_matrix_f32;

/* What a tile reads and where its accumulators are kept; b and out are contiguous along columns. */
typedef struct {
    const float *a;
    int64_t a_row, a_inner;
    const float *b;
    int64_t b_inner;
    int64_t inner;
    float *out;
    int64_t out_row;
    int is_first;
} fw_tile_f32;

FW_FN fw_vector_f32 fw_multiply_add_f32(float a, fw_vector_f32 b, fw_vector_f32 c) {
    for (int i = 0; i < FW_LANES_f32; i++) c[i] = fw_fma_f32(a, b[i], c[i]);
    return c;
}

FW_FN float fw_accumulable_f32(fw_matrix_f32 m, int64_t i, int64_t j) {
    const float *element = m.start + i * m.row + j * m.column;
    return (float)(*element);
}

static void fw_tile_8_2_f32(const fw_tile_f32 *tile) {
    const float *a = tile->a, *b = tile->b;
    const int64_t a_row = tile->a_row, a_inner = tile->a_inner, b_inner = tile->b_inner;
    const int64_t inner = tile->inner, out_row = tile->out_row;
    float *out = tile->out;
    const fw_vector_f32 zero = {0};
    fw_vector_f32 c0_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c0_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c1_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 1 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c1_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 1 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c2_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 2 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c2_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 2 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c3_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 3 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c3_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 3 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c4_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 4 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c4_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 4 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c5_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 5 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c5_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 5 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c6_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 6 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c6_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 6 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c7_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 7 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c7_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 7 * out_row + 1 * FW_LANES_f32);
    for (int64_t k = 0; k < inner; k++) {
        const fw_vector_f32 b0 = *(fw_vector_f32 *)(b + k * b_inner + 0 * FW_LANES_f32);
        const fw_vector_f32 b1 = *(fw_vector_f32 *)(b + k * b_inner + 1 * FW_LANES_f32);
        c0_0 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b0, c0_0);
        c0_1 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b1, c0_1);
        c1_0 = fw_multiply_add_f32(a[1 * a_row + k * a_inner], b0, c1_0);
        c1_1 = fw_multiply_add_f32(a[1 * a_row + k * a_inner], b1, c1_1);
        c2_0 = fw_multiply_add_f32(a[2 * a_row + k * a_inner], b0, c2_0);
        c2_1 = fw_multiply_add_f32(a[2 * a_row + k * a_inner], b1, c2_1);
        c3_0 = fw_multiply_add_f32(a[3 * a_row + k * a_inner], b0, c3_0);
        c3_1 = fw_multiply_add_f32(a[3 * a_row + k * a_inner], b1, c3_1);
        c4_0 = fw_multiply_add_f32(a[4 * a_row + k * a_inner], b0, c4_0);
        c4_1 = fw_multiply_add_f32(a[4 * a_row + k * a_inner], b1, c4_1);
        c5_0 = fw_multiply_add_f32(a[5 * a_row + k * a_inner], b0, c5_0);
        c5_1 = fw_multiply_add_f32(a[5 * a_row + k * a_inner], b1, c5_1);
        c6_0 = fw_multiply_add_f32(a[6 * a_row + k * a_inner], b0, c6_0);
        c6_1 = fw_multiply_add_f32(a[6 * a_row + k * a_inner], b1, c6_1);
        c7_0 = fw_multiply_add_f32(a[7 * a_row + k * a_inner], b0, c7_0);
        c7_1 = fw_multiply_add_f32(a[7 * a_row + k * a_inner], b1, c7_1);
    }
    *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32) = c0_0;
    *(fw_vector_f32 *)(out + 0 * out_row + 1 * FW_LANES_f32) = c0_1;
    *(fw_vector_f32 *)(out + 1 * out_row + 0 * FW_LANES_f32) = c1_0;
    *(fw_vector_f32 *)(out + 1 * out_row + 1 * FW_LANES_f32) = c1_1;
    *(fw_vector_f32 *)(out + 2 * out_row + 0 * FW_LANES_f32) = c2_0;
    *(fw_vector_f32 *)(out + 2 * out_row + 1 * FW_LANES_f32) = c2_1;
    *(fw_vector_f32 *)(out + 3 * out_row + 0 * FW_LANES_f32) = c3_0;
    *(fw_vector_f32 *)(out + 3 * out_row + 1 * FW_LANES_f32) = c3_1;
    *(fw_vector_f32 *)(out + 4 * out_row + 0 * FW_LANES_f32) = c4_0;
    *(fw_vector_f32 *)(out + 4 * out_row + 1 * FW_LANES_f32) = c4_1;
    *(fw_vector_f32 *)(out + 5 * out_row + 0 * FW_LANES_f32) = c5_0;
    *(fw_vector_f32 *)(out + 5 * out_row + 1 * FW_LANES_f32) = c5_1;
    *(fw_vector_f32 *)(out + 6 * out_row + 0 * FW_LANES_f32) = c6_0;
    *(fw_vector_f32 *)(out + 6 * out_row + 1 * FW_LANES_f32) = c6_1;
    *(fw_vector_f32 *)(out + 7 * out_row + 0 * FW_LANES_f32) = c7_0;
    *(fw_vector_f32 *)(out + 7 * out_row + 1 * FW_LANES_f32) = c7_1;
}

static void fw_tile_8_1_f32(const fw_tile_f32 *tile) {
    const float *a = tile->a, *b = tile->b;
    const int64_t a_row = tile->a_row, a_inner = tile->a_inner, b_inner = tile->b_inner;
    const int64_t inner = tile->inner, out_row = tile->out_row;
    float *out = tile->out;
    const fw_vector_f32 zero = {0};
    fw_vector_f32 c0_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c1_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 1 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c2_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 2 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c3_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 3 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c4_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 4 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c5_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 5 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c6_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 6 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c7_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 7 * out_row + 0 * FW_LANES_f32);
    for (int64_t k = 0; k < inner; k++) {
        const fw_vector_f32 b0 = *(fw_vector_f32 *)(b + k * b_inner + 0 * FW_LANES_f32);
        c0_0 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b0, c0_0);
        c1_0 = fw_multiply_add_f32(a[1 * a_row + k * a_inner], b0, c1_0);
        c2_0 = fw_multiply_add_f32(a[2 * a_row + k * a_inner], b0, c2_0);
        c3_0 = fw_multiply_add_f32(a[3 * a_row + k * a_inner], b0, c3_0);
        c4_0 = fw_multiply_add_f32(a[4 * a_row + k * a_inner], b0, c4_0);
        c5_0 = fw_multiply_add_f32(a[5 * a_row + k * a_inner], b0, c5_0);
        c6_0 = fw_multiply_add_f32(a[6 * a_row + k * a_inner], b0, c6_0);
        c7_0 = fw_multiply_add_f32(a[7 * a_row + k * a_inner], b0, c7_0);
    }
    *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32) = c0_0;
    *(fw_vector_f32 *)(out + 1 * out_row + 0 * FW_LANES_f32) = c1_0;
    *(fw_vector_f32 *)(out + 2 * out_row + 0 * FW_LANES_f32) = c2_0;
    *(fw_vector_f32 *)(out + 3 * out_row + 0 * FW_LANES_f32) = c3_0;
    *(fw_vector_f32 *)(out + 4 * out_row + 0 * FW_LANES_f32) = c4_0;
    *(fw_vector_f32 *)(out + 5 * out_row + 0 * FW_LANES_f32) = c5_0;
    *(fw_vector_f32 *)(out + 6 * out_row + 0 * FW_LANES_f32) = c6_0;
    *(fw_vector_f32 *)(out + 7 * out_row + 0 * FW_LANES_f32) = c7_0;
}

static void fw_tile_4_2_f32(const fw_tile_f32 *tile) {
    const float *a = tile->a, *b = tile->b;
    const int64_t a_row = tile->a_row, a_inner = tile->a_inner, b_inner = tile->b_inner;
    const int64_t inner = tile->inner, out_row = tile->out_row;
    float *out = tile->out;
    const fw_vector_f32 zero = {0};
    fw_vector_f32 c0_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c0_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c1_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 1 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c1_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 1 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c2_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 2 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c2_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 2 * out_row + 1 * FW_LANES_f32);
    fw_vector_f32 c3_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 3 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c3_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 3 * out_row + 1 * FW_LANES_f32);
    for (int64_t k = 0; k < inner; k++) {
        const fw_vector_f32 b0 = *(fw_vector_f32 *)(b + k * b_inner + 0 * FW_LANES_f32);
        const fw_vector_f32 b1 = *(fw_vector_f32 *)(b + k * b_inner + 1 * FW_LANES_f32);
        c0_0 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b0, c0_0);
        c0_1 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b1, c0_1);
        c1_0 = fw_multiply_add_f32(a[1 * a_row + k * a_inner], b0, c1_0);
        c1_1 = fw_multiply_add_f32(a[1 * a_row + k * a_inner], b1, c1_1);
        c2_0 = fw_multiply_add_f32(a[2 * a_row + k * a_inner], b0, c2_0);
        c2_1 = fw_multiply_add_f32(a[2 * a_row + k * a_inner], b1, c2_1);
        c3_0 = fw_multiply_add_f32(a[3 * a_row + k * a_inner], b0, c3_0);
        c3_1 = fw_multiply_add_f32(a[3 * a_row + k * a_inner], b1, c3_1);
    }
    *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32) = c0_0;
    *(fw_vector_f32 *)(out + 0 * out_row + 1 * FW_LANES_f32) = c0_1;
    *(fw_vector_f32 *)(out + 1 * out_row + 0 * FW_LANES_f32) = c1_0;
    *(fw_vector_f32 *)(out + 1 * out_row + 1 * FW_LANES_f32) = c1_1;
    *(fw_vector_f32 *)(out + 2 * out_row + 0 * FW_LANES_f32) = c2_0;
    *(fw_vector_f32 *)(out + 2 * out_row + 1 * FW_LANES_f32) = c2_1;
    *(fw_vector_f32 *)(out + 3 * out_row + 0 * FW_LANES_f32) = c3_0;
    *(fw_vector_f32 *)(out + 3 * out_row + 1 * FW_LANES_f32) = c3_1;
}

static void fw_tile_4_1_f32(const fw_tile_f32 *tile) {
    const float *a = tile->a, *b = tile->b;
    const int64_t a_row = tile->a_row, a_inner = tile->a_inner, b_inner = tile->b_inner;
    const int64_t inner = tile->inner, out_row = tile->out_row;
    float *out = tile->out;
    const fw_vector_f32 zero = {0};
    fw_vector_f32 c0_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c1_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 1 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c2_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 2 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c3_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 3 * out_row + 0 * FW_LANES_f32);
    for (int64_t k = 0; k < inner; k++) {
        const fw_vector_f32 b0 = *(fw_vector_f32 *)(b + k * b_inner + 0 * FW_LANES_f32);
        c0_0 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b0, c0_0);
        c1_0 = fw_multiply_add_f32(a[1 * a_row + k * a_inner], b0, c1_0);
        c2_0 = fw_multiply_add_f32(a[2 * a_row + k * a_inner], b0, c2_0);
        c3_0 = fw_multiply_add_f32(a[3 * a_row + k * a_inner], b0, c3_0);
    }
    *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32) = c0_0;
    *(fw_vector_f32 *)(out + 1 * out_row + 0 * FW_LANES_f32) = c1_0;
    *(fw_vector_f32 *)(out + 2 * out_row + 0 * FW_LANES_f32) = c2_0;
    *(fw_vector_f32 *)(out + 3 * out_row + 0 * FW_LANES_f32) = c3_0;
}

static void fw_tile_1_2_f32(const fw_tile_f32 *tile) {
    const float *a = tile->a, *b = tile->b;
    const int64_t a_row = tile->a_row, a_inner = tile->a_inner, b_inner = tile->b_inner;
    const int64_t inner = tile->inner, out_row = tile->out_row;
    float *out = tile->out;
    const fw_vector_f32 zero = {0};
    fw_vector_f32 c0_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32);
    fw_vector_f32 c0_1 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 1 * FW_LANES_f32);
    for (int64_t k = 0; k < inner; k++) {
        const fw_vector_f32 b0 = *(fw_vector_f32 *)(b + k * b_inner + 0 * FW_LANES_f32);
        const fw_vector_f32 b1 = *(fw_vector_f32 *)(b + k * b_inner + 1 * FW_LANES_f32);
        c0_0 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b0, c0_0);
        c0_1 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b1, c0_1);
    }
    *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32) = c0_0;
    *(fw_vector_f32 *)(out + 0 * out_row + 1 * FW_LANES_f32) = c0_1;
}

static void fw_tile_1_1_f32(const fw_tile_f32 *tile) {
    const float *a = tile->a, *b = tile->b;
    const int64_t a_row = tile->a_row, a_inner = tile->a_inner, b_inner = tile->b_inner;
    const int64_t inner = tile->inner, out_row = tile->out_row;
    float *out = tile->out;
    const fw_vector_f32 zero = {0};
    fw_vector_f32 c0_0 = tile->is_first ? zero : *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32);
    for (int64_t k = 0; k < inner; k++) {
        const fw_vector_f32 b0 = *(fw_vector_f32 *)(b + k * b_inner + 0 * FW_LANES_f32);
        c0_0 = fw_multiply_add_f32(a[0 * a_row + k * a_inner], b0, c0_0);
    }
    *(fw_vector_f32 *)(out + 0 * out_row + 0 * FW_LANES_f32) = c0_0;
}

static void fw_whole_tile_f32(int64_t height, int64_t vectors, const fw_tile_f32 *tile) {
    if (height == 8 && vectors == 2) fw_tile_8_2_f32(tile);
    if (height == 8 && vectors == 1) fw_tile_8_1_f32(tile);
    if (height == 4 && vectors == 2) fw_tile_4_2_f32(tile);
    if (height == 4 && vectors == 1) fw_tile_4_1_f32(tile);
    if (height == 1 && vectors == 2) fw_tile_1_2_f32(tile);
    if (height == 1 && vectors == 1) fw_tile_1_1_f32(tile);
}

static int64_t fw_height_f32(int64_t rows) {
    return rows > 4 ? 8 : rows > 1 ? 4 : 1;
}

static void fw_copy_tile_f32(int64_t rows, int64_t columns, const float *from, int64_t from_row, float *to, int64_t to_row) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[i * to_row + j] = from[i * from_row + j];
}

/* A tile of which only so many rows and columns exist: if ragged, by way of a whole one beside the result. */
static void fw_ragged_tile_f32(int64_t rows, int64_t columns, const fw_tile_f32 *tile) {
    const int64_t height = fw_height_f32(rows), vectors = columns > FW_LANES_f32 ? 2 : 1;
    if (height == rows && vectors * FW_LANES_f32 == columns) {
        fw_whole_tile_f32(height, vectors, tile);
        return;
    }
    float beside[FW_PRODUCT_HEIGHT * FW_PANEL_f32];
    fw_tile_f32 whole = *tile;
    whole.out = beside, whole.out_row = FW_PANEL_f32;
    if (!tile->is_first) fw_copy_tile_f32(rows, columns, tile->out, tile->out_row, beside, FW_PANEL_f32);
    fw_whole_tile_f32(height, vectors, &whole);
    fw_copy_tile_f32(rows, columns, beside, FW_PANEL_f32, tile->out, tile->out_row);
}

/* The first rows of a as [inner][height], zero beyond the last. */
static void fw_pack_a_f32(fw_matrix_f32 a, int64_t rows, int64_t height, int64_t inner, float *packed) {
    for (int64_t i = 0; i < height; i++)
        for (int64_t k = 0; k < inner; k++) packed[k * height + i] = i < rows ? fw_accumulable_f32(a, i, k) : 0;
}

/* The first columns of b as [inner][panel], zero beyond the last; sixteen of k at a time stay in the cache. */
static void fw_pack_b_f32(fw_matrix_f32 b, int64_t columns, int64_t inner, float *packed) {
    for (int64_t begin = 0; begin < inner; begin += 16) {
        const int64_t end = inner - begin > 16 ? begin + 16 : inner;
        if (b.column == 1)
            for (int64_t k = begin; k < end; k++)
                for (int64_t j = 0; j < columns; j++) packed[k * FW_PANEL_f32 + j] = fw_accumulable_f32(b, k, j);
        else
            for (int64_t j = 0; j < columns; j++)
                for (int64_t k = begin; k < end; k++) packed[k * FW_PANEL_f32 + j] = fw_accumulable_f32(b, k, j);
        for (int64_t k = begin; k < end; k++)
            for (int64_t j = columns; j < FW_PANEL_f32; j++) packed[k * FW_PANEL_f32 + j] = 0;
    }
}

/* Adds to a block of accumulators: `inner` at most FW_PRODUCT_INNER, columns at most FW_BLOCK_COLUMNS. */
static void fw_block_f32(int64_t rows, int64_t columns, int64_t inner, fw_matrix_f32 a, fw_matrix_f32 b,
                        fw_tile_f32 tile, int is_few_rows) {
    const int64_t panel = FW_PANEL_f32;
    const int is_b_read = is_few_rows && b.column == 1;
    float *packed_a = (float *)fw_product_a(), *packed_b = (float *)fw_product_b();
    for (int64_t j = 0; j < columns; j += panel) {
        const int64_t width = columns - j > panel ? panel : columns - j;
        const fw_matrix_f32 source = {b.start + j * b.column, b.row, b.column};
        if (!is_b_read || width < panel) fw_pack_b_f32(source, width, inner, packed_b + j * FW_PRODUCT_INNER);
    }
    tile.inner = inner;
    float *out = tile.out;
    for (int64_t i = 0; i < rows; i += FW_PRODUCT_HEIGHT) {
        const int64_t high = rows - i > FW_PRODUCT_HEIGHT ? FW_PRODUCT_HEIGHT : rows - i, height = fw_height_f32(high);
        const fw_matrix_f32 source = {a.start + i * a.row, a.row, a.column};
        tile.a = (const float *)source.start, tile.a_row = a.row, tile.a_inner = a.column;
        if (!is_few_rows || high < height) {
            fw_pack_a_f32(source, high, height, inner, packed_a);
            tile.a = packed_a, tile.a_row = 1, tile.a_inner = height;
        }
        for (int64_t j = 0; j < columns; j += panel) {
            const int64_t width = columns - j > panel ? panel : columns - j;
            const int is_packed = !is_b_read || width < panel;
            tile.b = is_packed ? packed_b + j * FW_PRODUCT_INNER : (const float *)(b.start + j);
            tile.b_inner = is_packed ? panel : b.row;
            tile.out = out + i * tile.out_row + j;
            fw_ragged_tile_f32(high, width, &tile);
        }
    }
}

/* The columns of a single row that fill whole vectors, streaming whole rows of b; how many columns those are. */
static int64_t fw_one_row_f32(int64_t columns, int64_t inner, fw_matrix_f32 a, fw_matrix_f32 b, float *out) {
    const int64_t whole = columns / FW_LANES_f32 * FW_LANES_f32;
    const float *a_start = (const float *)a.start, *b_start = (const float *)b.start;
    for (int64_t j = 0; j < whole; j++) out[j] = 0;
    int64_t k = 0;
    for (; k + 4 <= inner; k += 4)
        for (int64_t j = 0; j < whole; j += FW_LANES_f32) {
            fw_vector_f32 c = *(fw_vector_f32 *)(out + j);
            c = fw_multiply_add_f32(a_start[(k + 0) * a.column], *(const fw_vector_f32 *)(b_start + (k + 0) * b.row + j), c);
            c = fw_multiply_add_f32(a_start[(k + 1) * a.column], *(const fw_vector_f32 *)(b_start + (k + 1) * b.row + j), c);
            c = fw_multiply_add_f32(a_start[(k + 2) * a.column], *(const fw_vector_f32 *)(b_start + (k + 2) * b.row + j), c);
            c = fw_multiply_add_f32(a_start[(k + 3) * a.column], *(const fw_vector_f32 *)(b_start + (k + 3) * b.row + j), c);
            *(fw_vector_f32 *)(out + j) = c;
        }
    for (; k < inner; k++)
        for (int64_t j = 0; j < whole; j += FW_LANES_f32) {
            fw_vector_f32 *c = (fw_vector_f32 *)(out + j);
            *c = fw_multiply_add_f32(a_start[k * a.column], *(const fw_vector_f32 *)(b_start + k * b.row + j), *c);
        }
    return whole;
}

static void fw_finish_f32(int64_t rows, int64_t columns, const float *from, float *out, int64_t out_row) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const float value = from[i * columns + j];
            out[i * out_row + j] = fw_canonical_f32(value);
        }
}

/* Computes the sums of a block of the result; at most FW_BLOCK_COLUMNS columns. */
static void fw_sums_f32(int64_t rows, int64_t columns, int64_t inner, fw_matrix_f32 a, fw_matrix_f32 b, float *out,
                       int64_t out_row, int is_few_rows) {
    fw_tile_f32 tile = {.is_first = 1};
    tile.out = out, tile.out_row = out_row;
    for (int64_t k = 0; k < inner || tile.is_first; k += FW_PRODUCT_INNER) {
        const int64_t deep = inner - k > FW_PRODUCT_INNER ? FW_PRODUCT_INNER : inner - k;
        const fw_matrix_f32 block_a = {a.start + k * a.column, a.row, a.column};
        const fw_matrix_f32 block_b = {b.start + k * b.row, b.row, b.column};
        fw_block_f32(rows, columns, deep, block_a, block_b, tile, is_few_rows);
        tile.is_first = 0;
    }
}

/* Computes a block of the product beside the result, for an epilogue. The block has at most FW_PRODUCT_SCRATCH_ROWS rows
 * and FW_BLOCK_COLUMNS columns. */
static __attribute__((noinline, unused)) const float *fw_product_beside_f32(int64_t rows, int64_t columns, int64_t inner,
                                                                        fw_matrix_f32 a, fw_matrix_f32 b,
                                                                        int is_few_rows) {
    float *sums = (float *)fw_product_out();
    float *values = 1 ? (float *)sums : (float *)fw_product_values();
    int64_t done = 0;
    if (1 && rows == 1 && b.column == 1) {
        done = fw_one_row_f32(columns, inner, a, b, sums);
        b.start += done;
    }
    if (done < columns) fw_sums_f32(rows, columns - done, inner, a, b, sums + done, columns, is_few_rows);
    fw_finish_f32(rows, columns, sums, values, columns);
    return values;
}

static __attribute__((noinline, unused)) void fw_product_f32(int64_t rows, int64_t columns, int64_t inner,
                                                            fw_matrix_f32 a, fw_matrix_f32 b, float *out) {
    const int is_stored = 1, is_few_rows = is_stored && rows <= FW_PRODUCT_FEW_ROWS;
    const int64_t out_row = columns, results = rows * columns;
    float *const first = out;
    if (rows == 1 && is_few_rows && b.column == 1) {
        const int64_t done = fw_one_row_f32(columns, inner, a, b, (float *)out);
        b.start += done, out += done, columns -= done;
    }
    const int64_t row_block = is_stored || rows < FW_PRODUCT_SCRATCH_ROWS ? rows : FW_PRODUCT_SCRATCH_ROWS;
    for (int64_t j = 0; j < columns; j += FW_BLOCK_COLUMNS_f32) {
        const int64_t width = columns - j > FW_BLOCK_COLUMNS_f32 ? FW_BLOCK_COLUMNS_f32 : columns - j;
        for (int64_t i = 0; i < rows; i += row_block) {
            const int64_t high = rows - i > row_block ? row_block : rows - i;
            float *result = out + i * out_row + j;
            float *sums = is_stored ? (float *)result : (float *)fw_product_out();
            const fw_matrix_f32 left = {a.start + i * a.row, a.row, a.column};
            const fw_matrix_f32 right = {b.start + j * b.column, b.row, b.column};
            fw_sums_f32(high, width, inner, left, right, sums, is_stored ? out_row : width, is_few_rows);
            if (!is_stored) fw_finish_f32(high, width, sums, result, out_row);
        }
    }
    if (1) fw_finish_f32(1, results, (const float *)first, first, results);
}
#endif
#ifndef FW_WALKED_f32
#define FW_WALKED_f32
#ifndef FW_WALKED
#define FW_WALKED
/* Axes in row-major order: their extents, and behind these their strides, in elements. */
typedef struct {
    int rank;
    const int64_t *sizes;
} fw_axes;

/* Where the positions from `first` on lie along the axes. A count as of an odometer takes no division for each. */
static __attribute__((noinline, unused)) void fw_places(fw_axes axes, int64_t first, int64_t count, int64_t *places) {
    const int64_t *extents = axes.sizes, *strides = axes.sizes + axes.rank;
    int64_t digits[4], place = 0;
    for (int axis = axes.rank - 1; axis >= 0; axis--) {
        digits[axis] = axis ? first % extents[axis] : first;
        place += digits[axis] * strides[axis];
        first /= extents[axis];
    }
    for (int64_t n = 0; n < count; n++) {
        places[n] = place;
        int axis = axes.rank - 1;
        place += strides[axis], digits[axis]++;
        for (; axis > 0 && digits[axis] == extents[axis]; axis--) {
            place += strides[axis - 1] - digits[axis] * strides[axis];
            digits[axis] = 0, digits[axis - 1]++;
        }
    }
}
#endif

/* The right operand of a product, of which the element (k, j) lies at a place along k and a place along columns. */
typedef struct {
    const float *start;
    fw_axes inner, columns;
} fw_walked_f32;

/* The elements at places of k and of at most a panel of columns, as [inner][panel], zero beyond the last column. */
static void fw_pack_walked_f32(const float *start, const int64_t *rows, int64_t inner, const int64_t *columns, int64_t width,
                              float *packed) {
    int is_run = 1;
    for (int64_t j = 1; j < width; j++) is_run &= columns[j] == columns[0] + j;
    for (int64_t k = 0; k < inner; k++) {
        const float *line = start + rows[k];
        float *to = packed + k * FW_PANEL_f32;
        if (is_run && width == FW_PANEL_f32)
            for (int64_t j = 0; j < FW_PANEL_f32; j++) {
                const float *element = line + columns[0] + j;
                to[j] = (float)(*element);
            }
        else
            for (int64_t j = 0; j < width; j++) {
                const float *element = line + columns[j];
                to[j] = (float)(*element);
            }
        for (int64_t j = width; j < FW_PANEL_f32; j++) to[j] = 0;
    }
}

/* Computes the sums of a block of the result; at most FW_BLOCK_COLUMNS columns, from `first` on. */
static void fw_walked_sums_f32(int64_t rows, int64_t first, int64_t columns, int64_t inner, fw_matrix_f32 a,
                              fw_walked_f32 b, float *out, int64_t out_row) {
    const int64_t panel = FW_PANEL_f32;
    float *packed_a = (float *)fw_product_a(), *packed_b = (float *)fw_product_b();
    int64_t along_columns[FW_BLOCK_COLUMNS_f32], along_inner[FW_PRODUCT_INNER];
    fw_places(b.columns, first, columns, along_columns);
    fw_tile_f32 tile = {.is_first = 1};
    tile.out_row = out_row, tile.b_inner = panel, tile.a = packed_a, tile.a_row = 1;
    for (int64_t k = 0; k < inner || tile.is_first; k += FW_PRODUCT_INNER) {
        tile.inner = inner - k > FW_PRODUCT_INNER ? FW_PRODUCT_INNER : inner - k;
        fw_places(b.inner, k, tile.inner, along_inner);
        for (int64_t j = 0; j < columns; j += panel) {
            const int64_t width = columns - j > panel ? panel : columns - j;
            fw_pack_walked_f32(b.start, along_inner, tile.inner, along_columns + j, width, packed_b + j * FW_PRODUCT_INNER);
        }
        for (int64_t i = 0; i < rows; i += FW_PRODUCT_HEIGHT) {
            const int64_t high = rows - i > FW_PRODUCT_HEIGHT ? FW_PRODUCT_HEIGHT : rows - i;
            tile.a_inner = fw_height_f32(high);
            const fw_matrix_f32 source = {a.start + i * a.row + k * a.column, a.row, a.column};
            fw_pack_a_f32(source, high, tile.a_inner, tile.inner, packed_a);
            for (int64_t j = 0; j < columns; j += panel) {
                tile.b = packed_b + j * FW_PRODUCT_INNER;
                tile.out = out + i * out_row + j;
                fw_ragged_tile_f32(high, columns - j > panel ? panel : columns - j, &tile);
            }
        }
        tile.is_first = 0;
    }
}

/* Computes a block of the product beside the result, for an epilogue, as fw_product_beside does. */
static __attribute__((noinline, unused)) const float *fw_walked_beside_f32(int64_t rows, int64_t first, int64_t columns,
                                                                       int64_t inner, fw_matrix_f32 a, fw_walked_f32 b) {
    float *sums = (float *)fw_product_out();
    float *values = 1 ? (float *)sums : (float *)fw_product_values();
    fw_walked_sums_f32(rows, first, columns, inner, a, b, sums, columns);
    fw_finish_f32(rows, columns, sums, values, columns);
    return values;
}

static __attribute__((noinline, unused)) void fw_walked_product_f32(int64_t rows, int64_t columns, int64_t inner,
                                                                   fw_matrix_f32 a, fw_walked_f32 b, float *out) {
    const int is_stored = 1;
    const int64_t row_block = is_stored || rows < FW_PRODUCT_SCRATCH_ROWS ? rows : FW_PRODUCT_SCRATCH_ROWS;
    for (int64_t j = 0; j < columns; j += FW_BLOCK_COLUMNS_f32) {
        const int64_t width = columns - j > FW_BLOCK_COLUMNS_f32 ? FW_BLOCK_COLUMNS_f32 : columns - j;
        for (int64_t i = 0; i < rows; i += row_block) {
            const int64_t high = rows - i > row_block ? row_block : rows - i;
            float *result = out + i * columns + j;
            float *sums = is_stored ? (float *)result : (float *)fw_product_out();
            const fw_matrix_f32 left = {a.start + i * a.row, a.row, a.column};
            fw_walked_sums_f32(high, j, width, inner, left, b, sums, is_stored ? columns : width);
            if (!is_stored) fw_finish_f32(high, width, sums, result, columns);
        }
    }
    if (1) fw_finish_f32(1, rows * columns, (const float *)out, out, rows * columns);
}
#endif
static __attribute__((noinline)) void fw_43745c612232fcb2491b_epilogue(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const int64_t n1 = sizes[1];
    const float *a0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const int64_t a0s0 = sizes[2];
    const float *a1 = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    const float *a2 = (const float *)(slots[operands[2].column] + operands[2].byte_offset);
    const int64_t a2s0 = sizes[3];
    float *o0 = (float *)(slots[operands[3].column] + operands[3].byte_offset);
    const int64_t o0s0 = sizes[4];
    for (int64_t i0 = 0; i0 < n0; i0++) {
        #pragma GCC ivdep
        for (int64_t i1 = 0; i1 < n1; i1++) {
            const float v0 = a0[i0 * a0s0 + i1];
            const float v1 = a1[i1];
            const float v2 = a2[i0 * a2s0 + i1];
            const float v3 = v0 + v1;
            const float v4 = fw_tanh_f32(v3);
            const float v5 = v4 + v2;
            o0[i0 * o0s0 + i1] = fw_canonical_f32(v5);
        }
    }
}
void fw_43745c612232fcb2491b(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t n0 = sizes[0];
    const int64_t rows = sizes[1];
    const int64_t columns = sizes[2];
    const int64_t inner = sizes[3];
    const int64_t as0 = sizes[4];
    const int64_t a_row = sizes[5];
    const int64_t a_inner = sizes[6];
    const int64_t bs0 = sizes[7];
    const float *a = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const float *b = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    int64_t own_sizes[5], own_slots[4];
    fw_operand own_operands[4];
    for (int n = 0; n < 4; n++) own_operands[n].column = n, own_operands[n].byte_offset = 0;
    for (int n = 0; n < 2; n++) own_sizes[3 + n] = sizes[27 + n];
    for (int64_t i0 = 0; i0 < n0; i0++)
    {
        const fw_matrix_f32 left = {a + i0 * as0, a_row, a_inner};
        const fw_walked_f32 right = {b + i0 * bs0, {3, sizes + 8}, {2, sizes + 14}};
        for (int64_t j = 0; j < columns; j += FW_BLOCK_COLUMNS_f32)
        for (int64_t i = 0; i < rows; i += FW_PRODUCT_SCRATCH_ROWS) {
            const int64_t width = columns - j > FW_BLOCK_COLUMNS_f32 ? FW_BLOCK_COLUMNS_f32 : columns - j;
            const int64_t high = rows - i > FW_PRODUCT_SCRATCH_ROWS ? FW_PRODUCT_SCRATCH_ROWS : rows - i;
            fw_matrix_f32 block_a = left;
            block_a.start += i * left.row;
            own_slots[0] = (int64_t)fw_walked_beside_f32(high, j, width, inner, block_a, right);
            own_slots[1] = slots[operands[2].column] + operands[2].byte_offset + (i0 * sizes[18] + i * sizes[19] + j * sizes[20]) * 4;
            own_slots[2] = slots[operands[3].column] + operands[3].byte_offset + (i0 * sizes[21] + i * sizes[22] + j * sizes[23]) * 4;
            own_slots[3] = slots[operands[4].column] + operands[4].byte_offset + (i0 * sizes[24] + i * sizes[25] + j * sizes[26]) * 4;
            own_sizes[0] = high, own_sizes[1] = width;
            own_sizes[2] = width;
            fw_43745c612232fcb2491b_epilogue(own_sizes, own_operands, own_slots);
        }
    }
}
