/* Lets the CUDA text of a product kernel be compiled as C++ and run by a thread of the host for each thread of a block. It
 * is run as on a device of compute capability 7.0, which has no `ldmatrix`. Copies to shared memory land as late as a device
 * may have them land: when the thread that began them waits for them. */

#include "../persistent/cuda_on_threads.h"

#include <atomic>
#include <deque>

#undef __CUDA_ARCH__
#define __CUDA_ARCH__ 700
#undef __shared__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __syncthreads use_memory_anew
#define __cvta_global_to_generic(address) (address)

std::barrier<> *block_barrier;

void meet_in_block() { block_barrier->arrive_and_wait(); }

/* A copy that was begun; without a source it writes zeros. */
struct Copy {
    void *to;
    const void *from;
    size_t bytes;
};

thread_local std::vector<Copy> begun;
thread_local std::deque<std::vector<Copy>> lists_of_copies;
std::atomic<bool> has_awaited_copies = true;

void begin_copy(void *to, const void *from, size_t bytes) { begun.push_back({to, from, bytes}); }

void end_copies() {
    lists_of_copies.push_back(begun);
    begun.clear();
}

void wait_for_copies(size_t kept) {
    for (; lists_of_copies.size() > kept; lists_of_copies.pop_front())
        for (const Copy &copy : lists_of_copies.front())
            if (copy.from) memcpy(copy.to, copy.from, copy.bytes);
            else memset(copy.to, 0, copy.bytes);
}

/* Where all threads of a block meet to use its memory for something else: a copy that lands now would spoil it. */
void use_memory_anew() {
    for (const std::vector<Copy> &list : lists_of_copies)
        if (!list.empty()) has_awaited_copies = false;
    meet_in_block();
}

/* Runs blocks one after another: they share the memory that a block has for itself. */
template <class Kernel> void run_blocks(int blocks, int threads_of_block, Kernel kernel) {
    gridDim = {blocks, 1, 1};
    for (int block = 0; block < blocks; block++) {
        std::barrier<> barrier(threads_of_block);
        block_barrier = &barrier;
        std::vector<std::thread> threads;
        for (int number = 0; number < threads_of_block; number++)
            threads.emplace_back([=] {
                threadIdx = {number, 0, 0};
                blockIdx = {block, 0, 0};
                kernel();
            });
        for (std::thread &thread : threads) thread.join();
    }
}
