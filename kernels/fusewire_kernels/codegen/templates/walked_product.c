#ifndef FW_WALKED_$t
#define FW_WALKED_$t
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
    const $S *start;
    fw_axes inner, columns;
} fw_walked_$t;

/* The elements at places of k and of at most a panel of columns, as [inner][panel], zero beyond the last column. */
static void fw_pack_walked_$t(const $S *start, const int64_t *rows, int64_t inner, const int64_t *columns, int64_t width,
                              $A *packed) {
    int is_run = 1;
    for (int64_t j = 1; j < width; j++) is_run &= columns[j] == columns[0] + j;
    for (int64_t k = 0; k < inner; k++) {
        const $S *line = start + rows[k];
        $A *to = packed + k * FW_PANEL_$t;
        if (is_run && width == FW_PANEL_$t)
            for (int64_t j = 0; j < FW_PANEL_$t; j++) {
                const $S *element = line + columns[0] + j;
                to[j] = ($A)($loaded);
            }
        else
            for (int64_t j = 0; j < width; j++) {
                const $S *element = line + columns[j];
                to[j] = ($A)($loaded);
            }
        for (int64_t j = width; j < FW_PANEL_$t; j++) to[j] = 0;
    }
}

/* Computes the sums of a block of the result; at most FW_BLOCK_COLUMNS columns, from `first` on. */
static void fw_walked_sums_$t(int64_t rows, int64_t first, int64_t columns, int64_t inner, fw_matrix_$t a,
                              fw_walked_$t b, $A *out, int64_t out_row) {
    const int64_t panel = FW_PANEL_$t;
    $A *packed_a = ($A *)fw_product_a(), *packed_b = ($A *)fw_product_b();
    int64_t along_columns[FW_BLOCK_COLUMNS_$t], along_inner[FW_PRODUCT_INNER];
    fw_places(b.columns, first, columns, along_columns);
    fw_tile_$t tile = {.is_first = 1};
    tile.out_row = out_row, tile.b_inner = panel, tile.a = packed_a, tile.a_row = 1;
    for (int64_t k = 0; k < inner || tile.is_first; k += FW_PRODUCT_INNER) {
        tile.inner = inner - k > FW_PRODUCT_INNER ? FW_PRODUCT_INNER : inner - k;
        fw_places(b.inner, k, tile.inner, along_inner);
        for (int64_t j = 0; j < columns; j += panel) {
            const int64_t width = columns - j > panel ? panel : columns - j;
            fw_pack_walked_$t(b.start, along_inner, tile.inner, along_columns + j, width, packed_b + j * FW_PRODUCT_INNER);
        }
        for (int64_t i = 0; i < rows; i += FW_PRODUCT_HEIGHT) {
            const int64_t high = rows - i > FW_PRODUCT_HEIGHT ? FW_PRODUCT_HEIGHT : rows - i;
            tile.a_inner = fw_height_$t(high);
            const fw_matrix_$t source = {a.start + i * a.row + k * a.column, a.row, a.column};
            fw_pack_a_$t(source, high, tile.a_inner, tile.inner, packed_a);
            for (int64_t j = 0; j < columns; j += panel) {
                tile.b = packed_b + j * FW_PRODUCT_INNER;
                tile.out = out + i * out_row + j;
                fw_ragged_tile_$t(high, columns - j > panel ? panel : columns - j, &tile);
            }
        }
        tile.is_first = 0;
    }
}

/* Computes a block of the product beside the result, for an epilogue, as fw_product_beside does. */
static __attribute__((noinline, unused)) const $S *fw_walked_beside_$t(int64_t rows, int64_t first, int64_t columns,
                                                                       int64_t inner, fw_matrix_$t a, fw_walked_$t b) {
    $A *sums = ($A *)fw_product_out();
    $S *values = $is_stored ? ($S *)sums : ($S *)fw_product_values();
    fw_walked_sums_$t(rows, first, columns, inner, a, b, sums, columns);
    fw_finish_$t(rows, columns, sums, values, columns);
    return values;
}

static __attribute__((noinline, unused)) void fw_walked_product_$t(int64_t rows, int64_t columns, int64_t inner,
                                                                   fw_matrix_$t a, fw_walked_$t b, $S *out) {
    const int is_stored = $is_stored;
    const int64_t row_block = is_stored || rows < FW_PRODUCT_SCRATCH_ROWS ? rows : FW_PRODUCT_SCRATCH_ROWS;
    for (int64_t j = 0; j < columns; j += FW_BLOCK_COLUMNS_$t) {
        const int64_t width = columns - j > FW_BLOCK_COLUMNS_$t ? FW_BLOCK_COLUMNS_$t : columns - j;
        for (int64_t i = 0; i < rows; i += row_block) {
            const int64_t high = rows - i > row_block ? row_block : rows - i;
            $S *result = out + i * columns + j;
            $A *sums = is_stored ? ($A *)result : ($A *)fw_product_out();
            const fw_matrix_$t left = {a.start + i * a.row, a.row, a.column};
            fw_walked_sums_$t(high, j, width, inner, left, b, sums, is_stored ? columns : width);
            if (!is_stored) fw_finish_$t(high, width, sums, result, columns);
        }
    }
    if ($is_to_be_finished_in_place) fw_finish_$t(1, rows * columns, (const $A *)out, out, rows * columns);
}
#endif
