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
#ifndef FW_HAS_sum_f32
#define FW_HAS_sum_f32
FW_PLAIN_REDUCTION(sum_f32, float, 0.0f, a + b)
#endif
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128, 4) fw_e092db49a0062484bab4(const int64_t *sizes, const fw_operand *operands, const __grid_constant__ fw_loop loop) {
    extern __shared__ float4 fw_shared_memory[];
    float *columns = (float *)fw_shared_memory, *exchanged = columns + 2176;
    const uint32_t shared_at = fw_shared_address(columns);
    const uint32_t barriers_at = shared_at + 10336;
    const uint32_t rank = fw_rank_in_cluster();
    const int64_t first_row = blockIdx.x / 2 * 1;
    const int rows = (int)fw_lesser(2 - first_row, 1);
    const int place = threadIdx.x % 32;
    const int own_row = threadIdx.x / 32 * 1;
    const bool has_column_64 = place < 32 && (int)rank * 32 + place < 64;
    const int64_t column_64 = has_column_64 ? (int)rank * 32 + place : 0;
    const int count = (int)loop.counts[blockIdx.z];
    const int64_t *slots = fw_slots_of(loop, count, 0);
    const float *right_0 = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    #pragma unroll 1
    for (int i = threadIdx.x; i < 2048; i += 128) {
        const int c = i % 32, k = i / 32;
        const int of_all = (int)rank * 32 + c;
        float *to = columns + 0 + c * 68 + k;
        if (k < 64 && of_all < 64) fw_begin_copy<4>(to, right_0 + k * (int64_t)64 + of_all * (int64_t)1);
        else *to = 0.0f;
    }
    const float *left_0 = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    #pragma unroll 1
    for (int i = threadIdx.x; i < 64; i += 128) {
        const int r = i / 64, k = i % 64;
        float *to_0 = exchanged + 0 + 0 * 68 + r * 68 + k;
        float *to_1 = exchanged + 0 + 1 * 68 + r * 68 + k;
        if (r < rows && k < 64) {
            fw_begin_copy<4>(to_0, left_0 + (first_row + r) * 64 + k * 1);
            fw_begin_copy<4>(to_1, left_0 + (first_row + r) * 64 + k * 1);
            continue;
        }
        *to_0 = *to_1 = -0.0f;
    }
    #pragma unroll 1
    for (int i = threadIdx.x; i < 64; i += 128) {
        const int r = i / 64, k = i % 64;
        float *to_0 = exchanged + 136 + 0 * 68 + r * 68 + k;
        float *to_1 = exchanged + 136 + 1 * 68 + r * 68 + k;
        *to_0 = *to_1 = -0.0f;
    }
    #pragma unroll 1
    for (int i = threadIdx.x; i < 64; i += 128) {
        const int r = i / 64, k = i % 64;
        float *to_0 = exchanged + 272 + 0 * 68 + r * 68 + k;
        float *to_1 = exchanged + 272 + 1 * 68 + r * 68 + k;
        *to_0 = *to_1 = -0.0f;
    }
    if (threadIdx.x == 0) {
        fw_make_barrier(barriers_at + 0);
        fw_make_barrier(barriers_at + 8);
        fw_make_barrier(barriers_at + 16);
        fw_make_barrier(barriers_at + 24);
        fw_make_barrier(barriers_at + 32);
        fw_make_barrier(barriers_at + 40);
        fw_show_barriers();
        fw_expect_bytes(barriers_at + 0, rows * 256);
        fw_expect_bytes(barriers_at + 8, rows * 256);
        fw_expect_bytes(barriers_at + 16, rows * 256);
        fw_expect_bytes(barriers_at + 24, rows * 256);
        fw_expect_bytes(barriers_at + 32, rows * 256);
        fw_expect_bytes(barriers_at + 40, rows * 256);
    }
    uint32_t shared_in_block[2];
    #pragma unroll
    for (int b = 0; b < 2; b++)
        shared_in_block[b] = fw_address_in_block(shared_at, (rank + b) % 2);
    const float *p2 = (const float *)(slots + operands[2].column);
    float e2[1] = {};
    #pragma unroll
    for (int r = 0; r < 1; r++) {
        const int64_t row = first_row + own_row + r;
        if (own_row + r >= rows) break;
        const int64_t i0 = row;
        const int64_t i1 = column_64;
        const float *a1 = p2;
        e2[r] = *a1;
    }
    const float *p3 = (const float *)(slots[operands[3].column] + operands[3].byte_offset);
    float e3[1] = {};
    #pragma unroll
    for (int r = 0; r < 1; r++) {
        const int64_t row = first_row + own_row + r;
        if (own_row + r >= rows) break;
        const int64_t i0 = row;
        const int64_t i1 = column_64;
        const float *a2 = p3;
        const int64_t a2s0 = 64;
        const int64_t a2s1 = 1;
        e3[r] = a2[i0 * a2s0 + i1];
    }
    const float *p4 = (const float *)(slots[operands[4].column] + operands[4].byte_offset);
    float e4[1] = {};
    #pragma unroll
    for (int r = 0; r < 1; r++) {
        const int64_t row = first_row + own_row + r;
        if (own_row + r >= rows) break;
        const int64_t i0 = row;
        const int64_t i1 = column_64;
        const float *a1 = p4;
        const int64_t a1s0 = 1;
        const int64_t a1s1 = 0;
        e4[r] = a1[i0 * a1s0];
    }
    const float *p5 = (const float *)(slots[operands[5].column] + operands[5].byte_offset);
    float e5[1] = {};
    #pragma unroll
    for (int r = 0; r < 1; r++) {
        const int64_t row = first_row + own_row + r;
        if (own_row + r >= rows) break;
        const int64_t i0 = row;
        const int64_t i1 = column_64;
        const float *a3 = p5;
        const int64_t a3s0 = 64;
        const int64_t a3s1 = 1;
        e5[r] = a3[i0 * a3s0 + i1];
    }
    const float *p6 = (const float *)(slots[operands[6].column] + operands[6].byte_offset);
    float e6[1] = {};
    #pragma unroll
    for (int r = 0; r < 1; r++) {
        const int64_t row = first_row + own_row + r;
        if (own_row + r >= rows) break;
        const int64_t i0 = row;
        const int64_t i1 = column_64;
        const float *a4 = p6;
        const int64_t a4s0 = 64;
        const int64_t a4s1 = 1;
        e6[r] = a4[i0 * a4s0 + i1];
    }
    const bool is_moving = fw_in_register(loop.moving != 0), is_kept = fw_in_register(loop.each != 0);
    if (is_moving) {
        const int64_t *next_slots = fw_slots_of(loop, count, 1 < count ? 1 : 0);
        p2 = (const float *)(next_slots + operands[2].column);
    }
    fw_end_copies();
    fw_wait_for_copies<0>();
    __syncwarp();
    fw_meet_in_cluster();
    const int warp_place = place / 32 * 32;
    if (threadIdx.x >= 32 || own_row >= rows) return;
    if (!(warp_place < 32 && (int)rank * 32 + warp_place < 64)) return;
    for (int t = 0; t < count; t++) {
        const int turn = t & 1;
        float n2[1];
        if (is_moving) {
            #pragma unroll
            for (int r = 0; r < 1; r++) {
                const int64_t row = first_row + own_row + r;
                if (own_row + r >= rows) break;
                const int64_t i0 = row;
                const int64_t i1 = column_64;
                const float *a1 = p2;
                n2[r] = *a1;
            }
            const int64_t *next_slots = fw_slots_of(loop, count, t + 2 < count ? t + 2 : count - 1);
            p2 = (const float *)(next_slots + operands[2].column);
        }
        if (t > 0) {
            fw_wait_for_bytes(barriers_at + (0 + turn) * 8, (t - 1) / 2 & 1);
            if (threadIdx.x == 0) fw_expect_bytes(barriers_at + (0 + turn) * 8, rows * 256);
        }
        float s0[1];
        {
            const float *const of_rows[1] = {exchanged + 0 + turn * 68 + own_row * 68};
            float sums[1][1];
            fw_chains<64, 1, 1, 1, 0u, 68, 2176, 4, 2>(of_rows, columns + 0 + (has_column_64 ? place : 0) * 68, sums);
            #pragma unroll
            for (int r = 0; r < 1; r++) {
                s0[r] = sums[0][r];
            }
        }
        float c0_0[1];
        float c0_1[1];
        #pragma unroll
        for (int r = 0; r < 1; r++) {
            const int64_t row = first_row + own_row + r;
            const int64_t i0 = row;
            const int64_t i1 = column_64;
            const float v0 = fw_canonical_f32(s0[r]);
            const float v1 = e2[r];
            const float v2 = e3[r];
            const float v3 = v0 * v1;
            const float v4 = v2 * v3;
            c0_0[r] = fw_canonical_f32(v3);
            c0_1[r] = fw_canonical_f32(v4);
        }
        if (has_column_64) {
            #pragma unroll
            for (int r = 0; r < 1; r++) {
                const int64_t row = first_row + own_row + r;
                if (own_row + r >= rows) break;
                #pragma unroll
                for (int b = 0; b < 2; b++) {
                    fw_send(shared_in_block[b] + 8704 + (136 + (turn ^ 1) * 68 + (own_row + r) * 68 + (int)column_64) * 4, c0_1[r], shared_in_block[b] + 10336 + (2 + (turn ^ 1)) * 8);
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 1; r++) {
            const int64_t row = first_row + own_row + r;
            const int64_t i0 = row;
            const int64_t i1 = column_64;
        }
        fw_wait_for_bytes(barriers_at + (2 + (turn ^ 1)) * 8, t / 2 & 1);
        if (threadIdx.x == 0) fw_expect_bytes(barriers_at + (2 + (turn ^ 1)) * 8, rows * 256);
        float r1_7[1];
        #pragma unroll
        for (int r = 0; r < 1; r++) {
            const int64_t row = first_row + own_row + r;
            const float *of_row = exchanged + 136 + (turn ^ 1) * 68 + (own_row + r) * 68;
            fw_partial_sum_f32 partial = fw_start_sum_f32();
            #pragma unroll
            for (int k = 0; k < 64; k += FW_LANES) {
                const int i = k + threadIdx.x % FW_LANES;
                if (i < 64) fw_take_sum_f32(&partial, of_row[i]);
            }
            partial = fw_tree_in_warp_sum_f32(partial);
            r1_7[r] = partial.value;
        }
        float c1_0[1];
        float c1_1[1];
        float x1_16[1];
        #pragma unroll
        for (int r = 0; r < 1; r++) {
            const int64_t row = first_row + own_row + r;
            const int64_t i0 = row;
            const int64_t i1 = column_64;
            const float v1 = e4[r];
            const float v2 = e3[r];
            const float v3 = e5[r];
            const float v4 = e6[r];
            const float v5 = e2[r];
            const float v6 = c0_0[r];
            const float v7 = r1_7[r];
            const float v8 = v1 + v7;
            const float v9 = fw_tanh_f32(v8);
            const float v10 = v9 * v2;
            const float v11 = v3 + v10;
            const float v12 = fw_tanh_f32(v11);
            const float v13 = v4 * v5;
            const float v14 = v9 * v6;
            const float v15 = v13 - v14;
            const float v16 = v15 * v15;
            x1_16[r] = v16;
            c1_0[r] = fw_canonical_f32(v12);
            c1_1[r] = fw_canonical_f32(v15);
        }
        if (has_column_64) {
            #pragma unroll
            for (int r = 0; r < 1; r++) {
                const int64_t row = first_row + own_row + r;
                if (own_row + r >= rows) break;
                #pragma unroll
                for (int b = 0; b < 2; b++) {
                    fw_send(shared_in_block[b] + 8704 + (272 + (turn ^ 1) * 68 + (own_row + r) * 68 + (int)column_64) * 4, x1_16[r], shared_in_block[b] + 10336 + (4 + (turn ^ 1)) * 8);
                }
            }
        }
        fw_wait_for_bytes(barriers_at + (4 + (turn ^ 1)) * 8, t / 2 & 1);
        if (threadIdx.x == 0) fw_expect_bytes(barriers_at + (4 + (turn ^ 1)) * 8, rows * 256);
        float r1_17[1];
        #pragma unroll
        for (int r = 0; r < 1; r++) {
            const int64_t row = first_row + own_row + r;
            const float *of_row = exchanged + 272 + (turn ^ 1) * 68 + (own_row + r) * 68;
            fw_partial_sum_f32 partial = fw_start_sum_f32();
            #pragma unroll
            for (int k = 0; k < 64; k += FW_LANES) {
                const int i = k + threadIdx.x % FW_LANES;
                if (i < 64) fw_take_sum_f32(&partial, of_row[i]);
            }
            partial = fw_tree_in_warp_sum_f32(partial);
            r1_17[r] = partial.value;
        }
        float c1_2[1];
        float c1_3[1];
        #pragma unroll
        for (int r = 0; r < 1; r++) {
            const int64_t row = first_row + own_row + r;
            const int64_t i0 = row;
            const int64_t i1 = column_64;
            const float v1 = e4[r];
            const float v2 = e3[r];
            const float v4 = e6[r];
            const float v5 = e2[r];
            const float v6 = c0_0[r];
            const float v7 = r1_7[r];
            const float v8 = v1 + v7;
            const float v9 = fw_tanh_f32(v8);
            const float v13 = v4 * v5;
            const float v14 = v9 * v6;
            const float v15 = v13 - v14;
            const float v17 = r1_17[r];
            const float v18 = v17 - v1;
            const float v19 = fw_tanh_f32(v18);
            const float v20 = v2 * v19;
            const float v21 = v15 + v20;
            c1_2[r] = fw_canonical_f32(v17);
            c1_3[r] = fw_canonical_f32(v21);
        }
        if (has_column_64 && t + 1 < count) {
            #pragma unroll
            for (int r = 0; r < 1; r++) {
                const int64_t row = first_row + own_row + r;
                if (own_row + r >= rows) break;
                #pragma unroll
                for (int b = 0; b < 2; b++) {
                    fw_send(shared_in_block[b] + 8704 + (0 + (turn ^ 1) * 68 + (own_row + r) * 68 + (int)column_64) * 4, c1_3[r], shared_in_block[b] + 10336 + (0 + (turn ^ 1)) * 8);
                }
            }
        }
        if (is_kept || t >= count - (int)loop.tail) {
            const int64_t *slots = fw_slots_of(loop, count, t);
            if (has_column_64 && (loop.each >> 0 & 1 || t >= count - (int)loop.tail)) {
                float *o0 = (float *)(slots[operands[7].column] + operands[7].byte_offset);
                const int64_t o0s0 = 64;
                const int64_t o0s1 = 1;
                #pragma unroll
                for (int r = 0; r < 1; r++) {
                    const int64_t row = first_row + own_row + r;
                    if (own_row + r >= rows) break;
                    const int64_t i0 = row;
                    const int64_t i1 = column_64;
                    o0[i0 * o0s0 + i1] = c1_0[r];
                }
            }
            if (has_column_64 && (loop.each >> 1 & 1 || t >= count - (int)loop.tail)) {
                float *o1 = (float *)(slots[operands[8].column] + operands[8].byte_offset);
                const int64_t o1s0 = 64;
                const int64_t o1s1 = 1;
                #pragma unroll
                for (int r = 0; r < 1; r++) {
                    const int64_t row = first_row + own_row + r;
                    if (own_row + r >= rows) break;
                    const int64_t i0 = row;
                    const int64_t i1 = column_64;
                    o1[i0 * o1s0 + i1] = c1_1[r];
                }
            }
            if (place == 0 && rank == 0 && (loop.each >> 2 & 1 || t >= count - (int)loop.tail)) {
                float *o2 = (float *)(slots[operands[9].column] + operands[9].byte_offset);
                const int64_t o2s0 = 1;
                const int64_t o2s1 = 0;
                #pragma unroll
                for (int r = 0; r < 1; r++) {
                    const int64_t row = first_row + own_row + r;
                    if (own_row + r >= rows) break;
                    const int64_t i0 = row;
                    const int64_t i1 = column_64;
                    o2[i0 * o2s0] = c1_2[r];
                }
            }
            if (has_column_64 && (loop.each >> 3 & 1 || t >= count - (int)loop.tail)) {
                float *o3 = (float *)(slots[operands[10].column] + operands[10].byte_offset);
                const int64_t o3s0 = 64;
                const int64_t o3s1 = 1;
                #pragma unroll
                for (int r = 0; r < 1; r++) {
                    const int64_t row = first_row + own_row + r;
                    if (own_row + r >= rows) break;
                    const int64_t i0 = row;
                    const int64_t i1 = column_64;
                    o3[i0 * o3s0 + i1] = c1_3[r];
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < 1; r++) {
            const int64_t row = first_row + own_row + r;
            e3[r] = c1_3[r];
            e4[r] = c1_2[r];
            e5[r] = c1_0[r];
            e6[r] = c1_1[r];
        }
        if (is_moving) {
            #pragma unroll
            for (int r = 0; r < 1; r++) {
                const int64_t row = first_row + own_row + r;
                e2[r] = n2[r];
            }
        }
    }
    /* No block ends while others may send to it. */
    __syncwarp();
    fw_meet_in_cluster();
}
#endif
