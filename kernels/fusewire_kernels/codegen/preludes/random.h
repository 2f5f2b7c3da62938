/* Random bits, and the numbers of distributions that they stand for: the steps of `ops/random_numbers.py`.
 *
 * Integer arithmetic or IEEE 754 defines the result of each step. There is no fused multiply-add and no function of the
 * platform, so that every backend gives the same bits, in float64 too. Choices of this text are explained there. */

typedef struct {
    uint32_t w0, w1, w2, w3, k0, k1;
} fw_philox;

FW_FN fw_philox fw_philox_round(fw_philox x) {
    const uint64_t first = (uint64_t)x.w0 * 0xd2511f53u;
    const uint64_t second = (uint64_t)x.w2 * 0xcd9e8d57u;
    const fw_philox next = {
        (uint32_t)(second >> 32) ^ x.w1 ^ x.k0, (uint32_t)second,
        (uint32_t)(first >> 32) ^ x.w3 ^ x.k1,  (uint32_t)first,
        x.k0 + 0x9e3779b9u,                     x.k1 + 0xbb67ae85u,
    };
    return next;
}

/* Words 0 and 1 of Philox4x32-10 at the counter stream * 2^64 + position. A loop of rounds would not be vectorised. */
FW_FN uint64_t fw_random_bits_u64(uint64_t position, uint64_t stream, uint64_t key) {
    fw_philox x = {
        (uint32_t)position, (uint32_t)(position >> 32), (uint32_t)stream, (uint32_t)(stream >> 32),
        (uint32_t)key,      (uint32_t)(key >> 32),
    };
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    x = fw_philox_round(x);
    return x.w0 | (uint64_t)x.w1 << 32;
}

/* (k + 1/2) / 2^52, exactly, where k are the upper 52 bits. */
FW_FN double fw_uniform_of_bits(uint64_t bits) {
    return fw_from_bits_f64(bits >> 12 | 0x3ff0000000000000u) - 0x1.fffffffffffffp-1;
}

/* -log(x) for normal x > 0. x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and log(1 + f) = 2 atanh(f / (2 + f))
 * by its series, whose next term is below 2^-55 of the sum. */
FW_FN double fw_minus_log(double x) {
    const uint64_t offset = 0x3fe6a09e667f3bcdu;
    const uint64_t bits = fw_bits_f64(x) - offset;
    const double e = fw_from_bits_f64((bits >> 52 ^ 0x800u) + 0x4330000000000000u) - (0x1p52 + 0x800);
    const double f = fw_from_bits_f64((bits & 0xfffffffffffffu) + offset) - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    double series = 1.0 / 19;
    series = series * z + 1.0 / 17;
    series = series * z + 1.0 / 15;
    series = series * z + 1.0 / 13;
    series = series * z + 1.0 / 11;
    series = series * z + 1.0 / 9;
    series = series * z + 1.0 / 7;
    series = series * z + 1.0 / 5;
    series = series * z + 1.0 / 3;
    series = series * z + 1.0;
    return e * -0.6931471805599453 - 2.0 * s * series;
}

FW_FN double fw_exponential_of_bits_u64(uint64_t bits) {
    return fw_minus_log(fw_uniform_of_bits(bits));
}

/* The normal quantile at u is (u - 1/2) r(-log(4 u (1 - u))), with a rational r. */
FW_FN double fw_normal_of_bits_u64(uint64_t bits) {
    const double u = fw_uniform_of_bits(bits);
    const double w = fw_minus_log(4.0 * u * (1.0 - u));
    double p = 1.378548601511e-12;
    p = p * w + 5.27949740774e-9;
    p = p * w + 6.942838361071e-7;
    p = p * w + 1.006517493136e-5;
    p = p * w + 0.0001835290164935;
    p = p * w + 0.002545337531643;
    p = p * w + 0.02495823819592;
    p = p * w + 0.1733358308352;
    p = p * w + 0.8439462730893;
    p = p * w + 2.506628274445;
    double q = 5.858296341358e-11;
    q = q * w + 2.869352394301e-8;
    q = q * w + 1.254223294465e-6;
    q = q * w + 1.08745070692e-5;
    q = q * w + 0.0003431548659911;
    q = q * w + 0.002056482031718;
    q = q * w + 0.03651375506522;
    q = q * w + 0.07488645927882;
    q = q * w + 1.0;
    return (u - 0.5) * p / q;
}
