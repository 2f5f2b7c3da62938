#ifndef FW_PERSISTENT
#define FW_PERSISTENT

/* The iterations of a loop that one launch runs. Row r runs `counts[r]` iterations. `slots` has the slots of the `first`
 * first iterations, and then those of the last iterations of each row; nothing is read or written by the slots of the
 * iterations in between. A result is stored in the last `tail` iterations, or in all of them if its bit of `each` is
 * set. An operand is read again in each iteration if its bit of `moving` is set. */
typedef struct {
    const int64_t *slots; /* int64[entries][rows][columns] */
    const int64_t *counts; /* int64[rows] */
    int64_t rows, columns, first, entries, tail;
    uint64_t moving, each;
} fw_loop;

/* The slots of an iteration of this block's row. */
FW_FN const int64_t *fw_slots_of(const fw_loop &loop, int64_t count, int64_t iteration) {
    const int64_t entry = iteration < loop.first ? iteration : iteration - count + loop.entries;
    return loop.slots + (entry * loop.rows + blockIdx.z) * loop.columns;
}

/* Keeps a value in a register. The compiler would read a parameter again in each iteration. */
FW_FN bool fw_in_register(bool value) {
    uint32_t kept = value;
    asm volatile("" : "+r"(kept));
    return kept != 0;
}
#endif
#if __CUDA_ARCH__ >= 900
#ifndef FW_COPIES
#define FW_COPIES

/* Begins to copy bytes from global to shared memory: 4, 8, or a multiple of 16. */
template <int bytes>
FW_FN void fw_begin_copy(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const uint64_t source = __cvta_generic_to_global(from);
    if (bytes < 16) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(source), "n"(bytes));
#pragma unroll
    for (int n = 0; n < bytes / 16; n++)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place + 16 * n), "l"(source + 16 * n));
#else
#pragma unroll
    for (int n = 0; n < bytes / 4; n++) ((int32_t *)to)[n] = ((const int32_t *)from)[n];
#endif
}

/* Ends a list of copies, of those that this thread has begun since the last list. */
FW_FN void fw_end_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for the copies of this thread, except those of the last `lists` lists. */
template <int lists>
FW_FN void fw_wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(lists) : "memory");
#endif
}
#endif
#ifndef FW_CLUSTER
#define FW_CLUSTER

/* A cluster is a few blocks that run at the same time and write to one another's shared memory. Each block keeps the
 * columns of the right operands that it multiplies by, and each left operand twice: one copy has the elements of this
 * iteration, and the blocks send those of the next to the other. A barrier in shared memory counts the bytes that have
 * come. A thread sends an element only after it has got all elements of something that was sent in the iteration before.
 * Each thread had then read all that it needs of the iteration before that one: no copy is written while it is read. */

/* Tests define FW_RANDOM_WAITS. Then a wait of a random time precedes each send, wait and read, so that threads and blocks
 * overtake one another in all ways that the barriers allow. One wait in 4,096 may be as long as several iterations. */
#ifdef FW_RANDOM_WAITS
#define FW_WAIT_AT_RANDOM() fw_wait_at_random()
FW_FN void fw_wait_at_random() {
    uint32_t bits;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(bits)::"memory");
    bits = (bits ^ (blockIdx.x + gridDim.x * blockIdx.z) * 0x9E3779B9u ^ threadIdx.x * 0x85EBCA6Bu) + FW_RANDOM_WAITS;
    bits = (bits ^ bits >> 16) * 0x7FEB352Du;
    bits = (bits ^ bits >> 15) * 0x846CA68Bu;
    __nanosleep(bits >> 20 ? bits & 255 : bits & 65535);
}
#else
#define FW_WAIT_AT_RANDOM()
#endif

FW_FN uint32_t fw_rank_in_cluster() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

FW_FN uint32_t fw_shared_address(const void *place) {
    return (uint32_t)__cvta_generic_to_shared(place);
}

/* The address by which this block reaches a place in the shared memory of another block. */
FW_FN uint32_t fw_address_in_block(uint32_t address, uint32_t rank) {
    uint32_t mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

/* Waits for all threads of the cluster that have not ended. */
FW_FN void fw_meet_in_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The same in two parts: what a thread does before the first part, it has done when others are behind the second. */
FW_FN void fw_arrive_in_cluster() {
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

FW_FN void fw_await_cluster() {
    FW_WAIT_AT_RANDOM();
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Makes a barrier that one thread and some bytes reach. */
FW_FN void fw_make_barrier(uint32_t barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

FW_FN void fw_show_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Lets a barrier wait for so many bytes. */
FW_FN void fw_expect_bytes(uint32_t barrier, uint32_t bytes) {
    FW_WAIT_AT_RANDOM();
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

FW_FN void fw_wait_for_bytes(uint32_t barrier, uint32_t parity) {
    FW_WAIT_AT_RANDOM();
    uint32_t is_done;
    do {
        asm volatile(
            "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}"
            : "=r"(is_done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (!is_done);
}

/* Writes a float to a block's shared memory, and counts its bytes at a barrier there. */
FW_FN void fw_send(uint32_t place, float value, uint32_t barrier) {
    FW_WAIT_AT_RANDOM();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(place), "f"(value),
                 "r"(barrier)
                 : "memory");
}

/* Computes chains of fma over `depth` ascending steps: `height` elements of a column of each of `products` products. Four
 * bits of `left_of` tell for each product which of the `lefts` left operands it has. Rows of a left operand are `pitch`
 * elements apart, and the columns of one product are `next_product` elements behind those of the one before. A thread
 * reads `fours` packs of four ahead; the warp's barriers keep the compiler from moving the reads down to their uses.
 * `pairs` of batches are written out. */
template <int depth, int height, int lefts, int products, uint32_t left_of, int pitch, int next_product, int fours, int pairs>
FW_FN void fw_chains(const float *const (&left)[lefts], const float *right, float (&sums)[products][height]) {
    const int batches = depth / (4 * fours);
    static_assert(batches % (2 * pairs) == 0 && batches * 4 * fours == depth, "two batches take turns");
    float4 of_left[2][fours][lefts][height], of_right[2][fours][products];
    const auto fetch = [&](int batch, int turn) {
        FW_WAIT_AT_RANDOM();
#pragma unroll
        for (int n = 0; n < fours; n++) {
#pragma unroll
            for (int p = 0; p < products; p++)
                of_right[turn][n][p] = *(const float4 *)(right + p * next_product + (batch * fours + n) * 4);
#pragma unroll
            for (int l = 0; l < lefts; l++)
#pragma unroll
                for (int r = 0; r < height; r++)
                    of_left[turn][n][l][r] = *(const float4 *)(left[l] + r * pitch + (batch * fours + n) * 4);
        }
    };
    const auto take = [&](int turn) {
#pragma unroll
        for (int n = 0; n < fours; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int p = 0; p < products; p++)
#pragma unroll
                    for (int r = 0; r < height; r++) {
                        const float4 &of_row = of_left[turn][n][left_of >> 4 * p & 15][r];
                        sums[p][r] = fw_fma_f32((&of_row.x)[i], (&of_right[turn][n][p].x)[i], sums[p][r]);
                    }
    };
#pragma unroll
    for (int p = 0; p < products; p++)
#pragma unroll
        for (int r = 0; r < height; r++) sums[p][r] = 0;
    fetch(0, 0);
#pragma nounroll
    for (int first = 0; first < batches; first += 2 * pairs) {
#pragma unroll
        for (int batch = first; batch < first + 2 * pairs; batch += 2) {
            fetch(batch + 1, 1);
            __syncwarp();
            take(0);
            if (batch + 2 < batches) fetch(batch + 2, 0);
            __syncwarp();
            take(1);
        }
    }
}
#endif
extern "C" __global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(128, 4) fw_f8a3a2cbe75e50f83095(const int64_t *sizes, const fw_operand *operands, const __grid_constant__ fw_loop loop) {
    extern __shared__ float4 fw_shared_memory[];
    float *columns = (float *)fw_shared_memory, *exchanged = columns + 8320;
    const uint32_t shared_at = fw_shared_address(columns);
    const uint32_t barriers_at = shared_at + 45760;
    const uint32_t rank = fw_rank_in_cluster();
    const int64_t first_row = blockIdx.x / 8 * 6;
    const int rows = (int)fw_lesser(64 - first_row, 6);
    const int place = threadIdx.x % 32;
    const int own_row = threadIdx.x / 32 * 2;
    const bool has_column_256 = place < 32 && (int)rank * 32 + place < 256;
    const int64_t column_256 = has_column_256 ? (int)rank * 32 + place : 0;
    const int count = (int)loop.counts[blockIdx.z];
    const int64_t *slots = fw_slots_of(loop, count, 0);
    const float *right_0 = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    #pragma unroll 1
    for (int i = threadIdx.x; i < 8192; i += 128) {
        const int c = i % 32, k = i / 32;
        const int of_all = (int)rank * 32 + c;
        float *to = columns + 0 + c * 260 + k;
        if (k < 256 && of_all < 256) fw_begin_copy<4>(to, right_0 + k * (int64_t)256 + of_all * (int64_t)1);
        else *to = 0.0f;
    }
    const float *left_0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    #pragma unroll 1
    for (int i = threadIdx.x; i < 1536; i += 128) {
        const int r = i / 256, k = i % 256;
        float *to_0 = exchanged + 0 + 0 * 1560 + r * 260 + k;
        float *to_1 = exchanged + 0 + 1 * 1560 + r * 260 + k;
        if (r < rows && k < 256) {
            fw_begin_copy<4>(to_0, left_0 + (first_row + r) * 256 + k * 1);
            fw_begin_copy<4>(to_1, left_0 + (first_row + r) * 256 + k * 1);
            continue;
        }
        *to_0 = *to_1 = -0.0f;
    }
    if (threadIdx.x == 0) {
        fw_make_barrier(barriers_at + 0);
        fw_make_barrier(barriers_at + 8);
        fw_show_barriers();
        fw_expect_bytes(barriers_at + 0, rows * 1024);
        fw_expect_bytes(barriers_at + 8, rows * 1024);
    }
    uint32_t shared_in_block[8];
    #pragma unroll
    for (int b = 0; b < 8; b++)
        shared_in_block[b] = fw_address_in_block(shared_at, (rank + b) % 8);
    const float *p2 = (const float *)(slots[operands[2].column] + operands[2].byte_offset);
    float e2[2] = {};
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const int64_t row = first_row + own_row + r;
        if (own_row + r >= rows) break;
        const int64_t i0 = row;
        const int64_t i1 = column_256;
        const float *a1 = p2;
        const int64_t a1s0 = 0;
        const int64_t a1s1 = 1;
        e2[r] = a1[i0 * a1s0 + i1];
    }
    const float *p3 = (const float *)(slots[operands[3].column] + operands[3].byte_offset);
    float e3[2] = {};
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const int64_t row = first_row + own_row + r;
        if (own_row + r >= rows) break;
        const int64_t i0 = row;
        const int64_t i1 = column_256;
        const float *a2 = p3;
        const int64_t a2s0 = 256;
        const int64_t a2s1 = 1;
        e3[r] = a2[i0 * a2s0 + i1];
    }
    const float *p4 = (const float *)(slots + operands[4].column);
    float e4[2] = {};
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const int64_t row = first_row + own_row + r;
        if (own_row + r >= rows) break;
        const int64_t i0 = row;
        const int64_t i1 = column_256;
        const float *a3 = p4;
        e4[r] = *a3;
    }
    const bool is_moving = fw_in_register(loop.moving != 0), is_kept = fw_in_register(loop.each != 0);
    if (is_moving) {
        const int64_t *next_slots = fw_slots_of(loop, count, 1 < count ? 1 : 0);
        p2 = (const float *)(next_slots[operands[2].column] + operands[2].byte_offset);
        p4 = (const float *)(next_slots + operands[4].column);
    }
    fw_end_copies();
    fw_wait_for_copies<0>();
    __syncwarp();
    fw_meet_in_cluster();
    const int warp_place = place / 32 * 32;
    if (threadIdx.x >= 96 || own_row >= rows) return;
    if (!(warp_place < 32 && (int)rank * 32 + warp_place < 256)) return;
    for (int t = 0; t < count; t++) {
        const int turn = t & 1;
        float n2[2];
        float n4[2];
        if (is_moving) {
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const int64_t row = first_row + own_row + r;
                if (own_row + r >= rows) break;
                const int64_t i0 = row;
                const int64_t i1 = column_256;
                const float *a1 = p2;
                const int64_t a1s0 = 0;
                const int64_t a1s1 = 1;
                n2[r] = a1[i0 * a1s0 + i1];
            }
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const int64_t row = first_row + own_row + r;
                if (own_row + r >= rows) break;
                const int64_t i0 = row;
                const int64_t i1 = column_256;
                const float *a3 = p4;
                n4[r] = *a3;
            }
            const int64_t *next_slots = fw_slots_of(loop, count, t + 2 < count ? t + 2 : count - 1);
            p2 = (const float *)(next_slots[operands[2].column] + operands[2].byte_offset);
            p4 = (const float *)(next_slots + operands[4].column);
        }
        if (t > 0) {
            fw_wait_for_bytes(barriers_at + (0 + turn) * 8, (t - 1) / 2 & 1);
            if (threadIdx.x == 0) fw_expect_bytes(barriers_at + (0 + turn) * 8, rows * 1024);
        }
        float s0[2];
        {
            const float *const of_rows[1] = {exchanged + 0 + turn * 1560 + own_row * 260};
            float sums[1][2];
            fw_chains<256, 2, 1, 1, 0u, 260, 8320, 2, 16>(of_rows, columns + 0 + (has_column_256 ? place : 0) * 260, sums);
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                s0[r] = sums[0][r];
            }
        }
        float c0_0[2];
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            const int64_t row = first_row + own_row + r;
            const int64_t i0 = row;
            const int64_t i1 = column_256;
            const float v0 = fw_canonical_f32(s0[r]);
            const float v1 = e2[r];
            const float v2 = e3[r];
            const float v3 = e4[r];
            const float v4 = v0 + v1;
            const float v5 = fw_tanh_f32(v4);
            const float v6 = v2 * v3;
            const float v7 = v5 + v6;
            c0_0[r] = fw_canonical_f32(v7);
        }
        if (has_column_256 && t + 1 < count) {
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const int64_t row = first_row + own_row + r;
                if (own_row + r >= rows) break;
                #pragma unroll
                for (int b = 0; b < 8; b++) {
                    fw_send(shared_in_block[b] + 33280 + (0 + (turn ^ 1) * 1560 + (own_row + r) * 260 + (int)column_256) * 4, c0_0[r], shared_in_block[b] + 45760 + (0 + (turn ^ 1)) * 8);
                }
            }
        }
        if (is_kept || t >= count - (int)loop.tail) {
            const int64_t *slots = fw_slots_of(loop, count, t);
            if (has_column_256 && (loop.each >> 0 & 1 || t >= count - (int)loop.tail)) {
                float *o0 = (float *)(slots[operands[5].column] + operands[5].byte_offset);
                const int64_t o0s0 = 256;
                const int64_t o0s1 = 1;
                #pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int64_t row = first_row + own_row + r;
                    if (own_row + r >= rows) break;
                    const int64_t i0 = row;
                    const int64_t i1 = column_256;
                    o0[i0 * o0s0 + i1] = c0_0[r];
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            const int64_t row = first_row + own_row + r;
            e3[r] = c0_0[r];
        }
        if (is_moving) {
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const int64_t row = first_row + own_row + r;
                e2[r] = n2[r];
                e4[r] = n4[r];
            }
        }
    }
    /* No block ends while others may send to it. */
    __syncwarp();
    fw_meet_in_cluster();
}
#endif
