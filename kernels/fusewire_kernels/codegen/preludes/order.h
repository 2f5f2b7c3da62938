/* The one order in which every reduction combines its elements.
 *
 * A length is cut into chunks of FW_CHUNK elements. In a chunk, lane l of FW_LANES takes elements l, l + FW_LANES, ...
 * from the identity on; then the lanes are combined by a tree, lane l with lane l + offset for offsets 16, 8, 4, 2, 1.
 * The results of the chunks are reduced by the same rule, in chunks of FW_CHUNK results. The third level, which takes
 * the results of those, is one chunk of any length. Every integer is summed in int64 or uint64.
 *
 * The macros FW_PLAIN_REDUCTION and FW_POSITIONAL_REDUCTION of a dialect define the functions of a reduction. A kernel
 * uses them for the reductions that it has, and says where each starts from, its identity, and how it combines. The
 * identity of a reduction to a position stands at the greatest position.
 */

#define FW_LANES 32
#ifndef FW_CHUNK
#define FW_CHUNK 1024
#endif

/* A segment is combined as a chunk is, whatever its length. But lanes without an element take no part, so that nothing
 * starts from the identity.
 *
 * The order of a scan, which combines the first elements of a line at each position of it. A line is cut into segments,
 * and a segment into FW_SCAN_LANES lanes of FW_SCAN_ELEMENTS neighbours. In a lane, each element is combined with those
 * before it, one after another. The lanes' results are scanned in five rounds: lane l takes that of lane l - d before its
 * own, for d = 1, 2, 4, 8, 16. An element takes the result of the lanes before its own, and then that of the segments
 * before, which are combined one after another.
 */
#define FW_SCAN_LANES 32
#define FW_SCAN_ELEMENTS 4

/* How two partial results become one. */
#define FW_COMBINATION(X, T, combined) \
    FW_FN T fw_combine_##X(T a, T b) { \
        return combined; \
    }

/* Whether b at position j goes before a at position i: NaN first, then the better value, then the lower position. */
#define FW_PRECEDENCE(X, T, is_better) \
    FW_FN int fw_precedes_##X(T a, int64_t i, T b, int64_t j) { \
        int is_equal = (a == b) | ((a != a) & (b != b)); \
        return (is_better) | ((b != b) & (a == a)) | (is_equal & (j < i)); \
    }
