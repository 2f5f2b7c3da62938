#ifndef FW_PRODUCT_$t
#define FW_PRODUCT_$t
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

#define FW_LANES_$t ((int)(FW_PRODUCT_VECTOR_BYTES / sizeof($A)))
#define FW_PANEL_$t (2 * FW_LANES_$t)
#define FW_BLOCK_COLUMNS_$t (FW_PRODUCT_COLUMN_BYTES / (int)sizeof($A))

typedef $A fw_vector_$t __attribute__((vector_size(FW_PRODUCT_VECTOR_BYTES), aligned(sizeof($A)), may_alias));

/* A matrix in memory, as it is stored. */
typedef struct {
    const $S *start;
    int64_t row;
    int64_t column;
} fw_matrix_$t;

/* What a tile reads and where its accumulators are kept; b and out are contiguous along columns. */
typedef struct {
    const $A *a;
    int64_t a_row, a_inner;
    const $A *b;
    int64_t b_inner;
    int64_t inner;
    $A *out;
    int64_t out_row;
    int is_first;
} fw_tile_$t;

FW_FN fw_vector_$t fw_multiply_add_$t($A a, fw_vector_$t b, fw_vector_$t c) {
    $multiply_add
}

FW_FN $A fw_accumulable_$t(fw_matrix_$t m, int64_t i, int64_t j) {
    const $S *element = m.start + i * m.row + j * m.column;
    return ($A)($loaded);
}

$tiles
static void fw_whole_tile_$t(int64_t height, int64_t vectors, const fw_tile_$t *tile) {
    if (height == 8 && vectors == 2) fw_tile_8_2_$t(tile);
    if (height == 8 && vectors == 1) fw_tile_8_1_$t(tile);
    if (height == 4 && vectors == 2) fw_tile_4_2_$t(tile);
    if (height == 4 && vectors == 1) fw_tile_4_1_$t(tile);
    if (height == 1 && vectors == 2) fw_tile_1_2_$t(tile);
    if (height == 1 && vectors == 1) fw_tile_1_1_$t(tile);
}

static int64_t fw_height_$t(int64_t rows) {
    return rows > 4 ? 8 : rows > 1 ? 4 : 1;
}

static void fw_copy_tile_$t(int64_t rows, int64_t columns, const $A *from, int64_t from_row, $A *to, int64_t to_row) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[i * to_row + j] = from[i * from_row + j];
}

/* A tile of which only so many rows and columns exist: if ragged, by way of a whole one beside the result. */
static void fw_ragged_tile_$t(int64_t rows, int64_t columns, const fw_tile_$t *tile) {
    const int64_t height = fw_height_$t(rows), vectors = columns > FW_LANES_$t ? 2 : 1;
    if (height == rows && vectors * FW_LANES_$t == columns) {
        fw_whole_tile_$t(height, vectors, tile);
        return;
    }
    $A beside[FW_PRODUCT_HEIGHT * FW_PANEL_$t];
    fw_tile_$t whole = *tile;
    whole.out = beside, whole.out_row = FW_PANEL_$t;
    if (!tile->is_first) fw_copy_tile_$t(rows, columns, tile->out, tile->out_row, beside, FW_PANEL_$t);
    fw_whole_tile_$t(height, vectors, &whole);
    fw_copy_tile_$t(rows, columns, beside, FW_PANEL_$t, tile->out, tile->out_row);
}

/* The first rows of a as [inner][height], zero beyond the last. */
static void fw_pack_a_$t(fw_matrix_$t a, int64_t rows, int64_t height, int64_t inner, $A *packed) {
    for (int64_t i = 0; i < height; i++)
        for (int64_t k = 0; k < inner; k++) packed[k * height + i] = i < rows ? fw_accumulable_$t(a, i, k) : 0;
}

/* The first columns of b as [inner][panel], zero beyond the last; sixteen of k at a time stay in the cache. */
static void fw_pack_b_$t(fw_matrix_$t b, int64_t columns, int64_t inner, $A *packed) {
    for (int64_t begin = 0; begin < inner; begin += 16) {
        const int64_t end = inner - begin > 16 ? begin + 16 : inner;
        if (b.column == 1)
            for (int64_t k = begin; k < end; k++)
                for (int64_t j = 0; j < columns; j++) packed[k * FW_PANEL_$t + j] = fw_accumulable_$t(b, k, j);
        else
            for (int64_t j = 0; j < columns; j++)
                for (int64_t k = begin; k < end; k++) packed[k * FW_PANEL_$t + j] = fw_accumulable_$t(b, k, j);
        for (int64_t k = begin; k < end; k++)
            for (int64_t j = columns; j < FW_PANEL_$t; j++) packed[k * FW_PANEL_$t + j] = 0;
    }
}

/* Adds to a block of accumulators: `inner` at most FW_PRODUCT_INNER, columns at most FW_BLOCK_COLUMNS. */
static void fw_block_$t(int64_t rows, int64_t columns, int64_t inner, fw_matrix_$t a, fw_matrix_$t b,
                        fw_tile_$t tile, int is_few_rows) {
    const int64_t panel = FW_PANEL_$t;
    const int is_b_read = is_few_rows && b.column == 1;
    $A *packed_a = ($A *)fw_product_a(), *packed_b = ($A *)fw_product_b();
    for (int64_t j = 0; j < columns; j += panel) {
        const int64_t width = columns - j > panel ? panel : columns - j;
        const fw_matrix_$t source = {b.start + j * b.column, b.row, b.column};
        if (!is_b_read || width < panel) fw_pack_b_$t(source, width, inner, packed_b + j * FW_PRODUCT_INNER);
    }
    tile.inner = inner;
    $A *out = tile.out;
    for (int64_t i = 0; i < rows; i += FW_PRODUCT_HEIGHT) {
        const int64_t high = rows - i > FW_PRODUCT_HEIGHT ? FW_PRODUCT_HEIGHT : rows - i, height = fw_height_$t(high);
        const fw_matrix_$t source = {a.start + i * a.row, a.row, a.column};
        tile.a = (const $A *)source.start, tile.a_row = a.row, tile.a_inner = a.column;
        if (!is_few_rows || high < height) {
            fw_pack_a_$t(source, high, height, inner, packed_a);
            tile.a = packed_a, tile.a_row = 1, tile.a_inner = height;
        }
        for (int64_t j = 0; j < columns; j += panel) {
            const int64_t width = columns - j > panel ? panel : columns - j;
            const int is_packed = !is_b_read || width < panel;
            tile.b = is_packed ? packed_b + j * FW_PRODUCT_INNER : (const $A *)(b.start + j);
            tile.b_inner = is_packed ? panel : b.row;
            tile.out = out + i * tile.out_row + j;
            fw_ragged_tile_$t(high, width, &tile);
        }
    }
}

/* The columns of a single row that fill whole vectors, streaming whole rows of b; how many columns those are. */
static int64_t fw_one_row_$t(int64_t columns, int64_t inner, fw_matrix_$t a, fw_matrix_$t b, $A *out) {
    const int64_t whole = columns / FW_LANES_$t * FW_LANES_$t;
    const $A *a_start = (const $A *)a.start, *b_start = (const $A *)b.start;
    for (int64_t j = 0; j < whole; j++) out[j] = 0;
    int64_t k = 0;
    for (; k + $unroll <= inner; k += $unroll)
        for (int64_t j = 0; j < whole; j += FW_LANES_$t) {
            fw_vector_$t c = *(fw_vector_$t *)(out + j);
$rows_of_k
            *(fw_vector_$t *)(out + j) = c;
        }
    for (; k < inner; k++)
        for (int64_t j = 0; j < whole; j += FW_LANES_$t) {
            fw_vector_$t *c = (fw_vector_$t *)(out + j);
            *c = fw_multiply_add_$t(a_start[k * a.column], *(const fw_vector_$t *)(b_start + k * b.row + j), *c);
        }
    return whole;
}

static void fw_finish_$t(int64_t rows, int64_t columns, const $A *from, $S *out, int64_t out_row) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const $A value = from[i * columns + j];
            out[i * out_row + j] = $finished;
        }
}

/* Computes the sums of a block of the result; at most FW_BLOCK_COLUMNS columns. */
static void fw_sums_$t(int64_t rows, int64_t columns, int64_t inner, fw_matrix_$t a, fw_matrix_$t b, $A *out,
                       int64_t out_row, int is_few_rows) {
    fw_tile_$t tile = {.is_first = 1};
    tile.out = out, tile.out_row = out_row;
    for (int64_t k = 0; k < inner || tile.is_first; k += FW_PRODUCT_INNER) {
        const int64_t deep = inner - k > FW_PRODUCT_INNER ? FW_PRODUCT_INNER : inner - k;
        const fw_matrix_$t block_a = {a.start + k * a.column, a.row, a.column};
        const fw_matrix_$t block_b = {b.start + k * b.row, b.row, b.column};
        fw_block_$t(rows, columns, deep, block_a, block_b, tile, is_few_rows);
        tile.is_first = 0;
    }
}

/* Computes a block of the product beside the result, for an epilogue. The block has at most FW_PRODUCT_SCRATCH_ROWS rows
 * and FW_BLOCK_COLUMNS columns. */
static __attribute__((noinline, unused)) const $S *fw_product_beside_$t(int64_t rows, int64_t columns, int64_t inner,
                                                                        fw_matrix_$t a, fw_matrix_$t b,
                                                                        int is_few_rows) {
    $A *sums = ($A *)fw_product_out();
    $S *values = $is_stored ? ($S *)sums : ($S *)fw_product_values();
    int64_t done = 0;
    if ($is_stored && rows == 1 && b.column == 1) {
        done = fw_one_row_$t(columns, inner, a, b, sums);
        b.start += done;
    }
    if (done < columns) fw_sums_$t(rows, columns - done, inner, a, b, sums + done, columns, is_few_rows);
    fw_finish_$t(rows, columns, sums, values, columns);
    return values;
}

static __attribute__((noinline, unused)) void fw_product_$t(int64_t rows, int64_t columns, int64_t inner,
                                                            fw_matrix_$t a, fw_matrix_$t b, $S *out) {
    const int is_stored = $is_stored, is_few_rows = is_stored && rows <= FW_PRODUCT_FEW_ROWS;
    const int64_t out_row = columns, results = rows * columns;
    $S *const first = out;
    if (rows == 1 && is_few_rows && b.column == 1) {
        const int64_t done = fw_one_row_$t(columns, inner, a, b, ($A *)out);
        b.start += done, out += done, columns -= done;
    }
    const int64_t row_block = is_stored || rows < FW_PRODUCT_SCRATCH_ROWS ? rows : FW_PRODUCT_SCRATCH_ROWS;
    for (int64_t j = 0; j < columns; j += FW_BLOCK_COLUMNS_$t) {
        const int64_t width = columns - j > FW_BLOCK_COLUMNS_$t ? FW_BLOCK_COLUMNS_$t : columns - j;
        for (int64_t i = 0; i < rows; i += row_block) {
            const int64_t high = rows - i > row_block ? row_block : rows - i;
            $S *result = out + i * out_row + j;
            $A *sums = is_stored ? ($A *)result : ($A *)fw_product_out();
            const fw_matrix_$t left = {a.start + i * a.row, a.row, a.column};
            const fw_matrix_$t right = {b.start + j * b.column, b.row, b.column};
            fw_sums_$t(high, width, inner, left, right, sums, is_stored ? out_row : width, is_few_rows);
            if (!is_stored) fw_finish_$t(high, width, sums, result, out_row);
        }
    }
    if ($is_to_be_finished_in_place) fw_finish_$t(1, results, (const $A *)first, first, results);
}
#endif
