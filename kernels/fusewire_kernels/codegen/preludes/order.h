/* The one order of every reduction: where a result starts from and how two partial results become one.
 *
 * A length is cut into chunks of FW_CHUNK elements. In a chunk, lane l of FW_LANES takes elements l, l + FW_LANES, ...
 * from the identity on; then the lanes are combined by a tree, lane l with lane l + offset for offsets 16, 8, 4, 2, 1.
 * The results of the chunks are reduced by the same rule, in chunks of FW_CHUNK results. The third level, which takes
 * the results of those, is one chunk of any length. Every integer is summed in int64.
 *
 * The macros FW_PLAIN_REDUCTION and FW_POSITIONAL_REDUCTION of a dialect define the functions of a reduction. A kernel
 * uses them for the reductions that it has.
 */

#define FW_LANES 32
#ifndef FW_CHUNK
#define FW_CHUNK 1024
#endif

#define FW_COMBINATION(X, T, identity, combined) \
    FW_FN T fw_identity_##X(void) { \
        return identity; \
    } \
    FW_FN T fw_combine_##X(T a, T b) { \
        return combined; \
    }

FW_COMBINATION(sum_i64, int64_t, 0, fw_add_i64(a, b))
FW_COMBINATION(sum_f32, float, 0.0f, a + b)
FW_COMBINATION(sum_f64, double, 0.0, a + b)
FW_COMBINATION(prod_i64, int64_t, 1, fw_multiply_i64(a, b))
FW_COMBINATION(prod_f32, float, 1.0f, a * b)
FW_COMBINATION(prod_f64, double, 1.0, a * b)
FW_COMBINATION(any_b8, uint8_t, 0, a | b)
FW_COMBINATION(all_b8, uint8_t, 1, a & b)

#define FW_EXTREMA(t, T, least, greatest) \
    FW_COMBINATION(min_##t, T, greatest, fw_minimum_##t(a, b)) \
    FW_COMBINATION(max_##t, T, least, fw_maximum_##t(a, b)) \
    FW_PRECEDENCE(argmin_##t, T, greatest, b < a) \
    FW_PRECEDENCE(argmax_##t, T, least, b > a)

/* Whether b at position j goes before a at position i: NaN first, then the better value, then the lower position.
 * The identity stands at the greatest position. */
#define FW_PRECEDENCE(X, T, identity, is_better) \
    FW_FN T fw_identity_##X(void) { \
        return identity; \
    } \
    FW_FN int fw_precedes_##X(T a, int64_t i, T b, int64_t j) { \
        int is_equal = (a == b) | ((a != a) & (b != b)); \
        return (is_better) | ((b != b) & (a == a)) | (is_equal & (j < i)); \
    }

FW_EXTREMA(b8, uint8_t, 0, 1)
FW_EXTREMA(u8, uint8_t, 0, UINT8_MAX)
FW_EXTREMA(i32, int32_t, INT32_MIN, INT32_MAX)
FW_EXTREMA(i64, int64_t, INT64_MIN, INT64_MAX)
FW_EXTREMA(f32, float, -FW_INFINITY_F32, FW_INFINITY_F32)
FW_EXTREMA(f64, double, -FW_INFINITY_F64, FW_INFINITY_F64)
