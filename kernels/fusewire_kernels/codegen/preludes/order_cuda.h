/* Reductions in CUDA: thread l of a warp is lane l of a chunk, warp w of a block is lane w of the chunk results above,
 * and lane s of a warp keeps the results of segments s, s + FW_LANES, ... of FW_CHUNK chunks each.
 */

#define FW_STEPS (FW_CHUNK / FW_LANES) /* elements of a chunk that a thread takes */
#define FW_SEGMENT ((int64_t)FW_CHUNK * FW_CHUNK)
#define FW_WHOLE_WARP 0xffffffffu

/* 64-bit division costs many times what 32-bit division does, and almost every index is small. Where the outer dimension
 * is of one step no index needs any. */
FW_FN int64_t fw_divide_index(int64_t index, int64_t extent) {
    if (index < extent) return 0;
    if (((index | extent) >> 32) == 0) return (uint32_t)index / (uint32_t)extent;
    return index / extent;
}

FW_FN int64_t fw_split_index(int64_t *index, int64_t extent) {
    const int64_t quotient = fw_divide_index(*index, extent);
    const int64_t position = *index - quotient * extent;
    *index = quotient;
    return position;
}

FW_FN int64_t fw_lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* How many warps a row takes: one for each chunk, but a block has room for FW_LANES. */
FW_FN int fw_warps_of_row(int64_t extent) {
    return extent <= FW_CHUNK ? 1 : (int)fw_lesser((extent + FW_CHUNK - 1) / FW_CHUNK, FW_LANES);
}

#define FW_NARROW 8 /* threads that share a narrow row */
#define FW_SHARE (FW_LANES / FW_NARROW) /* lanes of each: thread t has the lanes t, t + FW_NARROW, ... */

/* Memory of a block for so many partial results of any kind, one reduction after another. */
#define FW_SHARED(name, partials) __shared__ int64_t name[2 * (partials)]

/* tree_in_warp: the threads' values as lanes; every thread gets the result.
 * tree_of_shares: FW_SHARE lanes a thread, in groups of FW_NARROW threads; every thread gets its group's result.
 * tree_of_warps: one value a warp, the same in its threads; every thread of the block of `warps` warps gets the result.
 * tree_of_columns: thread (lane, column) of a block of 32 by 32; every thread gets its column's result. */
#define FW_REDUCTION(X) \
    FW_FN fw_partial_##X fw_tree_in_warp_##X(fw_partial_##X r) { \
        for (int offset = FW_LANES / 2; offset > 0; offset /= 2) fw_merge_##X(&r, fw_shifted_##X(r, offset)); \
        return fw_first_##X(r, FW_LANES); \
    } \
    FW_FN fw_partial_##X fw_tree_of_shares_##X(fw_partial_##X *r) { \
        for (int offset = FW_SHARE / 2; offset > 0; offset /= 2) \
            for (int n = 0; n < offset; n++) fw_merge_##X(r + n, r[n + offset]); \
        for (int offset = FW_NARROW / 2; offset > 0; offset /= 2) fw_merge_##X(r, fw_shifted_##X(*r, offset)); \
        return fw_first_##X(*r, FW_NARROW); \
    } \
    FW_FN fw_partial_##X fw_tree_of_warps_##X(fw_partial_##X r, int warps, int64_t *memory) { \
        fw_partial_##X *shared = (fw_partial_##X *)memory; \
        const int lane = threadIdx.x % FW_LANES; \
        shared[threadIdx.x / FW_LANES] = r; \
        __syncthreads(); \
        r = fw_tree_in_warp_##X(lane < warps ? shared[lane] : fw_start_##X()); \
        __syncthreads(); \
        return r; \
    } \
    FW_FN fw_partial_##X fw_tree_of_columns_##X(fw_partial_##X r, int64_t *memory) { \
        fw_partial_##X *shared = (fw_partial_##X *)memory; \
        const int lane = threadIdx.x / FW_LANES; \
        shared[threadIdx.x] = r; \
        for (int offset = FW_LANES / 2; offset > 0; offset /= 2) { \
            __syncthreads(); \
            if (lane < offset) fw_merge_##X(shared + threadIdx.x, shared[threadIdx.x + offset * FW_LANES]); \
        } \
        __syncthreads(); \
        r = shared[threadIdx.x % FW_LANES]; \
        __syncthreads(); \
        return r; \
    }

#define FW_PLAIN_REDUCTION(X, T, identity, combined) \
    FW_COMBINATION(X, T, combined) \
    typedef struct { \
        T value; \
    } fw_partial_##X; \
    FW_FN fw_partial_##X fw_start_##X() { \
        fw_partial_##X r = {identity}; \
        return r; \
    } \
    FW_FN void fw_take_##X(fw_partial_##X *r, T value) { \
        r->value = fw_combine_##X(r->value, value); \
    } \
    FW_FN void fw_merge_##X(fw_partial_##X *r, fw_partial_##X other) { \
        fw_take_##X(r, other.value); \
    } \
    FW_FN fw_partial_##X fw_shifted_##X(fw_partial_##X r, int offset) { \
        r.value = __shfl_down_sync(FW_WHOLE_WARP, r.value, offset); \
        return r; \
    } \
    FW_FN fw_partial_##X fw_first_##X(fw_partial_##X r, int threads) { \
        r.value = __shfl_sync(FW_WHOLE_WARP, r.value, 0, threads); \
        return r; \
    } \
    FW_REDUCTION(X)

#define FW_POSITIONAL_REDUCTION(X, T, identity, is_better) \
    FW_PRECEDENCE(X, T, is_better) \
    typedef struct { \
        T value; \
        int64_t position; \
    } fw_partial_##X; \
    FW_FN fw_partial_##X fw_start_##X() { \
        fw_partial_##X r = {identity, INT64_MAX}; \
        return r; \
    } \
    FW_FN void fw_take_##X(fw_partial_##X *r, T value, int64_t position) { \
        int precedes = fw_precedes_##X(r->value, r->position, value, position); \
        r->value = precedes ? value : r->value; \
        r->position = precedes ? position : r->position; \
    } \
    FW_FN void fw_merge_##X(fw_partial_##X *r, fw_partial_##X other) { \
        fw_take_##X(r, other.value, other.position); \
    } \
    FW_FN fw_partial_##X fw_shifted_##X(fw_partial_##X r, int offset) { \
        r.value = __shfl_down_sync(FW_WHOLE_WARP, r.value, offset); \
        r.position = __shfl_down_sync(FW_WHOLE_WARP, r.position, offset); \
        return r; \
    } \
    FW_FN fw_partial_##X fw_first_##X(fw_partial_##X r, int threads) { \
        r.value = __shfl_sync(FW_WHOLE_WARP, r.value, 0, threads); \
        r.position = __shfl_sync(FW_WHOLE_WARP, r.position, 0, threads); \
        return r; \
    } \
    FW_REDUCTION(X)
