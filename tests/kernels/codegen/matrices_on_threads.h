/* Runs the algorithms for small matrices with a thread of the host for each lane, and compares with one lane. */

#include <barrier>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

enum { ROOM = FW_MOST_SIDE * (FW_MOST_SIDE + 1), COUNT = 4 };

typedef void (*Algorithm)(fw_work_f32, fw_shape, const float *, const float *, float *);

std::vector<float> numbers(int count, int seed) {
    std::mt19937 random(seed);
    std::vector<float> found(count);
    for (float &each : found) each = std::normal_distribution<float>()(random);
    return found;
}

/* The first matrix is symmetric and positive definite, the second any, the third singular, and the last not finite. */
std::vector<float> matrices(int rows, int columns) {
    std::vector<float> a = numbers(COUNT * rows * columns, rows);
    for (int i = 0; i < rows && rows == columns; i++)
        for (int j = 0; j < columns; j++) a[i * columns + j] = i == j ? rows : 1.0f / (1 + i + j);
    for (int i = 0; i < rows; i++) a[2 * rows * columns + i * columns] = 0;
    a.back() = FW_INFINITY_F32;
    return a;
}

/* `elements` is how many the result of each matrix has. */
std::vector<float> results(Algorithm algorithm, int lanes, int across, fw_shape shape, int elements) {
    const std::vector<float> from = matrices(shape.rows, shape.columns), right = numbers(COUNT * ROOM, 7);
    std::vector<float> to(COUNT * elements, 77), matrix(ROOM), near(ROOM), first(FW_MOST_SIDE), second(FW_MOST_SIDE);
    std::vector<int> place(FW_MOST_SIDE);
    int note;
    std::barrier<> own(lanes);
    meeting = &own;
    const int near_elements = lanes > 8 ? ROOM : 0; /* with and without room for what becomes a result */
    const int pitch = (shape.rows > shape.columns ? shape.rows : shape.columns) | 1;
    auto lane = [&](int number) {
        const fw_work_f32 work = {matrix.data(), first.data(), second.data(), near.data(), place.data(), &note,
                                  near_elements, pitch,        number,        lanes,       across};
        for (int at = 0; at < COUNT; at++) {
            const float *a = &from[at * shape.rows * shape.columns], *b = &right[at * shape.rows * shape.others];
            algorithm(work, shape, a, b, &to[at * elements]);
            own.arrive_and_wait();
        }
    };
    std::vector<std::thread> threads;
    for (int number = 0; number < lanes; number++) threads.emplace_back(lane, number);
    for (std::thread &each : threads) each.join();
    return to;
}

/* Returns 1, and says where, if other numbers of lanes give other bits. */
int differs(const char *name, Algorithm algorithm, fw_shape shape, int elements) {
    const std::vector<float> wanted = results(algorithm, 1, 1, shape, elements);
    int found = 0;
    for (const auto &[lanes, across] : {std::pair(8, 4), std::pair(32, 8)}) {
        const std::vector<float> other = results(algorithm, lanes, across, shape, elements);
        if (memcmp(wanted.data(), other.data(), wanted.size() * sizeof(float)) == 0) continue;
        printf("%s of [%d, %d] with %d lanes\n", name, shape.rows, shape.columns, lanes);
        found = 1;
    }
    return found;
}
