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
