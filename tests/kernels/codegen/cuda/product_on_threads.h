/* Lets the CUDA text of a product kernel be compiled as C++ and run by a thread of the host for each thread of a block. It
 * is run as on a device of compute capability 7.0, which has no copies of its own and no `ldmatrix`. */

#include "../persistent/cuda_on_threads.h"

#undef __CUDA_ARCH__
#define __CUDA_ARCH__ 700
#undef __shared__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __syncthreads meet_in_block
#define __cvta_global_to_generic(address) (address)

std::barrier<> *block_barrier;

void meet_in_block() { block_barrier->arrive_and_wait(); }

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
