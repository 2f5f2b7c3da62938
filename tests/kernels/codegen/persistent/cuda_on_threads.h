/* Lets the CUDA text of a persistent cluster kernel be compiled as C++ and run by a thread of the host for each thread of
 * the cluster. The parts of a cluster that CUDA's assembler would give stand here as C++; their names are those of the
 * kernels' templates. Threads give way at random, so that they overtake one another in other ways in each run. */

#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <math.h>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#define __CUDACC__
#define __CUDA_ARCH__ 900
#define __global__ static
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

enum { WARP = 32, THREADS = 128, SHARED_BYTES = 227 << 10, LONGEST_WAIT_S = 60 };

struct Index {
    int x, y, z;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

thread_local Index threadIdx, blockIdx;
Index gridDim, blockDim = {THREADS, 1, 1};

/* ---- arithmetic ---- */

template <class To, class From> To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

float __int_as_float(int bits) { return same_bits<float>(bits); }
double __longlong_as_double(long long bits) { return same_bits<double>(bits); }
uint32_t __float_as_uint(float x) { return same_bits<uint32_t>(x); }
float __uint_as_float(uint32_t bits) { return same_bits<float>(bits); }
long long __double_as_longlong(double x) { return same_bits<long long>(x); }
float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
float __fsqrt_rn(float x) { return sqrtf(x); }
double __dsqrt_rn(double x) { return sqrt(x); }
int __clzll(long long bits) { return bits ? __builtin_clzll(bits) : 64; }
unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }

/* ---- blocks, warps and barriers ---- */

struct Warp {
    std::barrier<> meeting{WARP};
    char values[WARP][16];
};

/* Reached by one thread and by the bytes that the thread expects. More bytes may come before the thread. */
struct ByteBarrier {
    std::mutex mutex;
    std::condition_variable reached;
    bool is_awaited = false;
    long long missing_bytes = 0;
    uint32_t phase = 0;

    void advance() {
        if (!is_awaited || missing_bytes) return;
        phase++;
        is_awaited = false;
        reached.notify_all();
    }
};

struct Block {
    alignas(16) char shared[SHARED_BYTES];
    std::vector<Warp> warps{THREADS / WARP};
    std::mutex mutex;
    std::map<uint32_t, ByteBarrier> barriers;
};

struct Cluster {
    std::vector<Block> blocks;
    std::barrier<> meeting;

    explicit Cluster(int count) : blocks(count), meeting(count * THREADS) {}
};

Cluster *cluster;
thread_local int own_rank;
thread_local uint64_t random_bits;
thread_local std::optional<std::barrier<>::arrival_token> arrival;

void give_way_at_random() {
    random_bits = random_bits * 6364136223846793005ULL + 1442695040888963407ULL;
    const uint32_t drawn = random_bits >> 54;
    if (drawn < 64) std::this_thread::yield();
    if (drawn == 64) std::this_thread::sleep_for(std::chrono::microseconds(random_bits >> 20 & 255));
}

/* An address holds the rank of the block above the place in its shared memory. */
ByteBarrier &barrier_at(uint32_t address) {
    Block &block = cluster->blocks[address >> 24];
    std::lock_guard<std::mutex> guard(block.mutex);
    return block.barriers[address & 0xffffff];
}

Warp &own_warp() { return cluster->blocks[own_rank].warps[threadIdx.x / WARP]; }

void __syncwarp() { own_warp().meeting.arrive_and_wait(); }

template <class T> T exchanged(T value, int source) {
    Warp &warp = own_warp();
    memcpy(warp.values[threadIdx.x % WARP], &value, sizeof value);
    warp.meeting.arrive_and_wait();
    memcpy(&value, warp.values[source], sizeof value);
    warp.meeting.arrive_and_wait();
    return value;
}

template <class T> T __shfl_down_sync(unsigned, T value, int offset) {
    const int lane = threadIdx.x % WARP;
    return exchanged(value, lane + offset < WARP ? lane + offset : lane);
}

template <class T> T __shfl_sync(unsigned, T value, int source, int width = WARP) {
    return exchanged(value, threadIdx.x % WARP / width * width + source % width);
}

/* Reductions of several warps are in the prelude, but not in kernels of clusters. */
void __syncthreads() { abort(); }
#define __shared__

/* ---- what the templates say in assembler ---- */

uint32_t threads_rank_in_cluster() { return own_rank; }

uint32_t threads_shared_address(const void *place) {
    return (uint32_t)((const char *)place - cluster->blocks[own_rank].shared) | (uint32_t)own_rank << 24;
}

uint32_t threads_address_in_block(uint32_t address, uint32_t rank) { return (address & 0xffffff) | rank << 24; }

void threads_meet_in_cluster() { cluster->meeting.arrive_and_wait(); }

void threads_arrive_in_cluster() {
    __syncwarp();
    arrival.emplace(cluster->meeting.arrive());
}

void threads_await_cluster() {
    __syncwarp();
    cluster->meeting.wait(std::move(*arrival));
}

void threads_make_barrier(uint32_t barrier) { barrier_at(barrier); }

void threads_show_barriers() {}

void threads_expect_bytes(uint32_t barrier, uint32_t bytes) {
    give_way_at_random();
    ByteBarrier &found = barrier_at(barrier);
    std::lock_guard<std::mutex> guard(found.mutex);
    if (found.is_awaited) abort();
    found.is_awaited = true;
    found.missing_bytes += bytes;
    found.advance();
}

void threads_wait_for_bytes(uint32_t barrier, uint32_t parity) {
    give_way_at_random();
    ByteBarrier &found = barrier_at(barrier);
    std::unique_lock<std::mutex> guard(found.mutex);
    const auto has_come = [&] { return (found.phase & 1) != (parity & 1); };
    if (!found.reached.wait_for(guard, std::chrono::seconds(LONGEST_WAIT_S), has_come)) abort();
}

void threads_send(uint32_t place, float value, uint32_t barrier) {
    give_way_at_random();
    memcpy(cluster->blocks[place >> 24].shared + (place & 0xffffff), &value, sizeof value);
    ByteBarrier &found = barrier_at(barrier);
    std::lock_guard<std::mutex> guard(found.mutex);
    found.missing_bytes -= sizeof value;
    found.advance();
}

/* Runs the clusters of a launch one after another. `kernel` is called by each thread. */
template <class Kernel> void run_clusters(int blocks, int blocks_of_cluster, int rows, Kernel kernel) {
    gridDim = {blocks, 1, rows};
    for (int row = 0; row < rows; row++)
        for (int first = 0; first < blocks; first += blocks_of_cluster) {
            Cluster running(blocks_of_cluster);
            cluster = &running;
            std::vector<std::thread> threads;
            for (int number = 0; number < blocks_of_cluster * THREADS; number++)
                threads.emplace_back([=] {
                    own_rank = number / THREADS;
                    threadIdx = {number % THREADS, 0, 0};
                    blockIdx = {first + own_rank, 0, row};
                    random_bits = std::chrono::steady_clock::now().time_since_epoch().count() + number;
                    kernel();
                    cluster->meeting.arrive_and_drop();
                });
            for (std::thread &thread : threads) thread.join();
        }
}
