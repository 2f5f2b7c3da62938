/* Scalar bodies of every op that a plain operator cannot give: one text, the same bits in every loop.
 *
 * A function is straight-line code: choices are ternaries that become blends, and only fw_fma_* contracts, so a
 * compiler may widen it to vectors and the vector body, the scalar tail and a lone call agree in every bit.
 * (Exceptions, called once an element: fmod and what rests on it, integer division and power, and the float64
 * functions, which are the platform's own.)
 *
 * Polynomials were fitted by iteratively reweighted least squares (Lawson's minimax) against 40-digit values,
 * weighted by the error the function would have, then rounded to the working type one coefficient at a time from
 * the lowest power up, refitting the rest after each. A comment gives the range, the degree, and the largest
 * relative error of the fit itself; "measured" is the largest error of the function in ulps over the floats.
 *
 * float16 and bfloat16 have no arithmetic: load to float, compute in float, round after each op.
 */

/* ---- float16 and bfloat16 ---- */

FW_FN float fw_load_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    float subnormal = fw_from_bits_f32(magnitude + (113u << 23)) - 6.103515625e-05f;
    uint32_t normal = magnitude + (magnitude >= (31u << 23) ? 224u << 23 : 112u << 23);
    uint32_t bits = magnitude < (1u << 23) ? fw_bits_f32(subnormal) : normal;
    return fw_from_bits_f32(sign | bits);
}

/* 1.5 * 2^(e+13) for a magnitude in [2^e, 2^(e+1)), e clamped to float16's exponents: adding it leaves ten
 * fraction bits, rounded half to even by the addition itself. */
FW_FN float fw_rounder_f16(float magnitude) {
    uint32_t exponent = fw_bits_f32(magnitude) & 0x7f800000u;
    exponent = exponent < (113u << 23) ? 113u << 23 : exponent;
    exponent = exponent > (143u << 23) ? 143u << 23 : exponent;
    return fw_from_bits_f32(exponent + (13u << 23) + (1u << 22));
}

FW_FN float fw_round_f16(float x) {
    float magnitude = fw_abs_f32(x);
    float rounder = fw_rounder_f16(magnitude);
    float rounded = (magnitude + rounder) - rounder;
    rounded = rounded > 65504.0f ? FW_INFINITY_F32 : rounded;
    return fw_copysign_f32(rounded, x);
}

FW_FN uint16_t fw_store_f16(float x) {
    uint32_t sign = fw_bits_f32(x) >> 16 & 0x8000u;
    float magnitude = fw_abs_f32(x);
    float rounder = fw_rounder_f16(magnitude);
    uint32_t rounder_bits = fw_bits_f32(rounder);
    uint32_t significand = fw_bits_f32(magnitude + rounder) - rounder_bits;
    uint32_t exponent = ((rounder_bits >> 23) - 126u) << 10;
    uint32_t bits = exponent + significand;
    bits = magnitude >= 65520.0f ? 0x7c00u : bits;
    bits = magnitude != magnitude ? 0x7e00u : bits;
    return (uint16_t)(sign | bits);
}

FW_FN float fw_load_bf16(uint16_t half) {
    return fw_from_bits_f32((uint32_t)half << 16);
}

/* The rounding increment may carry into the exponent, up to infinity: as it should. */
FW_FN uint32_t fw_rounded_bits_bf16(float x) {
    uint32_t bits = fw_bits_f32(x);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return x != x ? 0x7fc00000u : rounded & 0xffff0000u;
}

FW_FN float fw_round_bf16(float x) {
    return fw_from_bits_f32(fw_rounded_bits_bf16(x));
}

FW_FN uint16_t fw_store_bf16(float x) {
    return (uint16_t)(fw_rounded_bits_bf16(x) >> 16);
}

/* ---- exponentials, float32 ---- */

/* A value held as mantissa * 2^exponent, so that products round before they underflow, once. */
typedef struct {
    float mantissa;
    int32_t exponent;
} fw_scaled_f32;

/* 2^exponent, exponent in [-126, 127]. */
FW_FN float fw_power_of_two_f32(int32_t exponent) {
    return fw_from_bits_f32((uint32_t)(exponent + 127) << 23);
}

/* In two steps, of which only the last can round or overflow; exponent in [-252, 254]. */
FW_FN float fw_unscale_f32(fw_scaled_f32 x) {
    int32_t half = x.exponent >> 1;
    return x.mantissa * fw_power_of_two_f32(half) * fw_power_of_two_f32(x.exponent - half);
}

/* The integer nearest to a number rounded by adding 1.5 * 2^23. */
FW_FN int32_t fw_integer_of_shifted_f32(float shifted) {
    return (int32_t)(fw_bits_f32(shifted) - 0x4b400000u);
}

/* e^r - 1 for |r| <= ln(2)/2, degree 6, error 2^-26.1. */
FW_FN float fw_expm1_core_f32(float r) {
    float q = 0.00138983922f;
    q = fw_fma_f32(q, r, 0.00836615171f);
    q = fw_fma_f32(q, r, 0.0416668542f);
    q = fw_fma_f32(q, r, 0.16666548f);
    q = fw_fma_f32(q, r, 0.5f);
    return fw_fma_f32(r * r, q, r);
}

/* x = exponent * ln(2) + mantissa, for |x| < 2^20: the high part of ln(2) has nine trailing zeros, so the first
 * step is exact while |exponent| < 512. */
FW_FN fw_scaled_f32 fw_reduce_exp_f32(float x) {
    float shifted = fw_fma_f32(x, 1.44269504f, 12582912.0f);
    float k = shifted - 12582912.0f;
    fw_scaled_f32 parts;
    parts.mantissa = fw_fma_f32(k, -1.42860677e-06f, fw_fma_f32(k, -0.693145752f, x));
    parts.exponent = fw_integer_of_shifted_f32(shifted);
    return parts;
}

FW_FN fw_scaled_f32 fw_exp_scaled_f32(float x) {
    fw_scaled_f32 parts = fw_reduce_exp_f32(x);
    parts.mantissa = 1.0f + fw_expm1_core_f32(parts.mantissa);
    return parts;
}

/* e^-104 rounds to zero and e^89 to infinity. */
FW_FN float fw_exp_f32(float x) {
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    return fw_unscale_f32(fw_exp_scaled_f32(x));
}

/* 2^r - 1 over r, |r| <= 1/2: degree 5, error of 2^r 2^-28.3. */
FW_FN float fw_exp2_f32(float x) {
    x = x < -151.0f ? -151.0f : x;
    x = x > 129.0f ? 129.0f : x;
    float shifted = x + 12582912.0f;
    float r = x - (shifted - 12582912.0f);
    float p = 0.000153264627f;
    p = fw_fma_f32(p, r, 0.00133908063f);
    p = fw_fma_f32(p, r, 0.00961850584f);
    p = fw_fma_f32(p, r, 0.0555035993f);
    p = fw_fma_f32(p, r, 0.240226477f);
    p = fw_fma_f32(p, r, 0.693147182f);
    fw_scaled_f32 parts;
    parts.mantissa = fw_fma_f32(p, r, 1.0f);
    parts.exponent = fw_integer_of_shifted_f32(shifted);
    return fw_unscale_f32(parts);
}

/* e^x - 1 = 2^k (e^r - 1) + (2^k - 1), for x in [-104, 88.7]; does not keep the sign of zero. */
FW_FN float fw_expm1_unsigned_zero_f32(float x) {
    fw_scaled_f32 parts = fw_reduce_exp_f32(x);
    float scale = fw_power_of_two_f32(parts.exponent);
    return fw_fma_f32(fw_expm1_core_f32(parts.mantissa), scale, scale - 1.0f);
}

/* The last doubling reaches the numbers above 2^127, where the scale 2^128 would not exist. */
FW_FN float fw_expm1_f32(float x) {
    float clamped = x < -20.0f ? -20.0f : x;
    clamped = clamped > 89.0f ? 89.0f : clamped;
    fw_scaled_f32 parts = fw_reduce_exp_f32(clamped);
    float last = parts.exponent > 127 ? 2.0f : 1.0f;
    float scale = fw_power_of_two_f32(parts.exponent > 127 ? 127 : parts.exponent);
    float offset = parts.exponent > 127 ? scale : scale - 1.0f;
    float result = last * fw_fma_f32(fw_expm1_core_f32(parts.mantissa), scale, offset);
    return fw_copysign_f32(result, x);
}

/* (e^2a - 1) / (e^2a + 1), a = |x|; at 10 it has long been 1. */
FW_FN float fw_tanh_f32(float x) {
    float magnitude = fw_abs_f32(x);
    magnitude = magnitude > 10.0f ? 10.0f : magnitude;
    float t = fw_expm1_unsigned_zero_f32(2.0f * magnitude);
    return fw_copysign_f32(t / (t + 2.0f), x);
}

/* sinh on [0, 1]: odd polynomial of degree 7, error 2^-25.3; above, (e^a - e^-a) / 2 with e^a halved in its
 * exponent so that it overflows only where sinh does. */
FW_FN float fw_half_exp_f32(float magnitude) {
    magnitude = magnitude > 90.0f ? 90.0f : magnitude;
    fw_scaled_f32 parts = fw_exp_scaled_f32(magnitude);
    parts.exponent -= 1;
    return fw_unscale_f32(parts);
}

FW_FN float fw_sinh_f32(float x) {
    float magnitude = fw_abs_f32(x);
    float s = magnitude * magnitude;
    float p = 0.000203733405f;
    p = fw_fma_f32(p, s, 0.00833027065f);
    p = fw_fma_f32(p, s, 0.166667163f);
    float small = fw_fma_f32(magnitude * s, p, magnitude);
    float half_exp = fw_half_exp_f32(magnitude);
    float large = half_exp - 0.25f / half_exp;
    return fw_copysign_f32(magnitude < 1.0f ? small : large, x);
}

FW_FN float fw_cosh_f32(float x) {
    float half_exp = fw_half_exp_f32(fw_abs_f32(x));
    return half_exp + 0.25f / half_exp;
}

/* ---- logarithms, float32 ---- */

/* x = 2^exponent * (1 + mantissa), mantissa in [sqrt(1/2) - 1, sqrt(2) - 1], for finite x > 0. */
FW_FN fw_scaled_f32 fw_reduce_log_f32(float x) {
    int32_t subnormal = x < 1.17549435e-38f;
    float normal = subnormal ? x * 8388608.0f : x;
    uint32_t bits = fw_bits_f32(normal) - 0x3f3504f3u;
    fw_scaled_f32 parts;
    parts.mantissa = fw_from_bits_f32((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    parts.exponent = ((int32_t)bits >> 23) - (subnormal ? 23 : 0);
    return parts;
}

/* What every logarithm is outside (0, infinity). */
FW_FN float fw_log_specials_f32(float x, float result) {
    result = x < FW_INFINITY_F32 ? result : x;
    result = x == 0.0f ? -FW_INFINITY_F32 : result;
    return x < 0.0f ? FW_NAN_F32 : result;
}

/* (log(1+f) - f) / f^2 on the reduced range: degree 8, error of the logarithm 2^-27.3. */
FW_FN float fw_log_core_f32(float f) {
    float p = -0.0763643533f;
    p = fw_fma_f32(p, f, 0.127622157f);
    p = fw_fma_f32(p, f, -0.131596103f);
    p = fw_fma_f32(p, f, 0.1420158f);
    p = fw_fma_f32(p, f, -0.166234091f);
    p = fw_fma_f32(p, f, 0.200012416f);
    p = fw_fma_f32(p, f, -0.250008196f);
    p = fw_fma_f32(p, f, 0.333333313f);
    return fw_fma_f32(p, f, -0.5f);
}

/* exponent * ln(2) + log(1 + mantissa), the small terms first. */
FW_FN float fw_log_of_parts_f32(fw_scaled_f32 parts) {
    float f = parts.mantissa;
    float k = (float)parts.exponent;
    float result = fw_fma_f32(k, 1.42860677e-06f, f * f * fw_log_core_f32(f)) + f;
    return fw_fma_f32(k, 0.693145752f, result);
}

FW_FN float fw_log_f32(float x) {
    return fw_log_specials_f32(x, fw_log_of_parts_f32(fw_reduce_log_f32(x)));
}

/* 1 + x = 2^k (1 + f) with k from the rounded sum and f = (2^-k - 1) + 2^-k x rounded once; all four times larger
 * so that 2^-k stays normal at k = 128. */
FW_FN float fw_log1p_f32(float x) {
    float sum = 1.0f + x;
    int32_t k = (int32_t)(fw_bits_f32(sum) - 0x3f3504f3u) >> 23;
    float scale = fw_power_of_two_f32(2 - k);
    fw_scaled_f32 parts;
    parts.mantissa = 0.25f * fw_fma_f32(scale, x, scale - 4.0f);
    parts.exponent = k;
    float result = fw_log_specials_f32(sum, fw_log_of_parts_f32(parts));
    return x == 0.0f ? x : result;
}

/* log2(1+f) = f * log2(e) + f^2 p(f): degree 8, error 2^-27.7; log2(e) in two parts. */
FW_FN float fw_log2_f32(float x) {
    fw_scaled_f32 parts = fw_reduce_log_f32(x);
    float f = parts.mantissa;
    float p = -0.110255793f;
    p = fw_fma_f32(p, f, 0.187088236f);
    p = fw_fma_f32(p, f, -0.191390857f);
    p = fw_fma_f32(p, f, 0.204486579f);
    p = fw_fma_f32(p, f, -0.239567354f);
    p = fw_fma_f32(p, f, 0.288571417f);
    p = fw_fma_f32(p, f, -0.36069867f);
    p = fw_fma_f32(p, f, 0.480898201f);
    p = fw_fma_f32(p, f, -0.721347332f);
    p = fw_fma_f32(p, f, 1.92596299e-08f);
    float result = (float)parts.exponent + fw_fma_f32(f, 1.44269502f, f * p);
    return fw_log_specials_f32(x, result);
}

/* log10(1+f) = f * log10(e) + f^2 p(f): degree 8, error 2^-27.7; log10(e) and log10(2) in two parts. */
FW_FN float fw_log10_f32(float x) {
    fw_scaled_f32 parts = fw_reduce_log_f32(x);
    float f = parts.mantissa;
    float k = (float)parts.exponent;
    float p = -0.0332714021f;
    p = fw_fma_f32(p, f, 0.0562798232f);
    p = fw_fma_f32(p, f, -0.0575642847f);
    p = fw_fma_f32(p, f, 0.0615594797f);
    p = fw_fma_f32(p, f, -0.0721228942f);
    p = fw_fma_f32(p, f, 0.086868681f);
    p = fw_fma_f32(p, f, -0.108580895f);
    p = fw_fma_f32(p, f, 0.144764781f);
    p = fw_fma_f32(p, f, -0.217147186f);
    p = fw_fma_f32(p, f, -1.01030501e-08f);
    float result = fw_fma_f32(f, 0.434294492f, fw_fma_f32(k, 4.60503907e-06f, f * p));
    return fw_log_specials_f32(x, fw_fma_f32(k, 0.301025391f, result));
}

/* ---- activations, float32 ---- */

/* With e = e^-|x| nothing overflows: 1 / (1 + e) above zero, e / (1 + e) below. */
FW_FN float fw_sigmoid_f32(float x) {
    float e = fw_exp_f32(-fw_abs_f32(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* x * sigmoid(x), and its limit -0 at -infinity. Below zero x joins the mantissa before e^x underflows. */
FW_FN float fw_silu_f32(float x) {
    float clamped = x < -110.0f ? -110.0f : x;
    float exponent = -fw_abs_f32(clamped);
    exponent = exponent < -110.0f ? -110.0f : exponent;
    fw_scaled_f32 parts = fw_exp_scaled_f32(exponent);
    float denominator = 1.0f + fw_unscale_f32(parts);
    parts.mantissa *= clamped;
    return (x < 0.0f ? fw_unscale_f32(parts) : x) / denominator;
}

FW_FN float fw_softplus_f32(float x) {
    float positive = x <= 0.0f ? 0.0f : x;
    return positive + fw_log1p_f32(fw_exp_f32(-fw_abs_f32(x)));
}

/* Below 0.92, x + x p(x^2): degree 5 in x^2, error 2^-25.1. Above, 1 - e^p(x): degree 6 on [0.9, 4], error
 * 2^-29.1; from 4 on it is 1. */
FW_FN float fw_erf_f32(float x) {
    float magnitude = fw_abs_f32(x);
    float s = magnitude * magnitude;
    float p = -0.000580782769f;
    p = fw_fma_f32(p, s, 0.00495530711f);
    p = fw_fma_f32(p, s, -0.0267392769f);
    p = fw_fma_f32(p, s, 0.112810135f);
    p = fw_fma_f32(p, s, -0.376124114f);
    p = fw_fma_f32(p, s, 0.128379136f);
    float small = fw_fma_f32(p, magnitude, magnitude);
    float a = magnitude > 4.0f ? 4.0f : magnitude;
    float q = 0.000198222639f;
    q = fw_fma_f32(q, a, -0.00306551089f);
    q = fw_fma_f32(q, a, 0.0223152619f);
    q = fw_fma_f32(q, a, -0.104113728f);
    q = fw_fma_f32(q, a, -0.636976063f);
    q = fw_fma_f32(q, a, -1.12779725f);
    q = fw_fma_f32(q, a, -0.000166446422f);
    float large = 1.0f - fw_unscale_f32(fw_exp_scaled_f32(q));
    return fw_copysign_f32(magnitude < 0.92f ? small : large, x);
}

/* x times the normal distribution function, accurate in both tails. For a = |x|,
 *     Phi(-a) = e^(-a^2/2) p(t) / (a + 4),  t = (a - 4) / (a + 4),
 * p of degree 9 for a in [0, 14.6], error 2^-25.7 (below -14.6 the result is zero). a^2/2 is squared exactly: what
 * its rounding lost multiplies the exponential. The result is x Phi(-a) below zero and x - x Phi(-a) above. */
FW_FN float fw_gelu_f32(float x) {
    float a = fw_abs_f32(x);
    a = a > 14.6f ? 14.6f : a;
    float half_square = 0.5f * a * a;
    float lost = fw_fma_f32(0.5f * a, a, -half_square);
    float reciprocal = 1.0f / (a + 4.0f);
    float t = (a - 4.0f) * reciprocal;
    float p = -0.000126272309f;
    p = fw_fma_f32(p, t, 0.000199256698f);
    p = fw_fma_f32(p, t, 0.00158220739f);
    p = fw_fma_f32(p, t, -0.00352550484f);
    p = fw_fma_f32(p, t, -0.00753558148f);
    p = fw_fma_f32(p, t, 0.0604070276f);
    p = fw_fma_f32(p, t, -0.186521262f);
    p = fw_fma_f32(p, t, 0.387136519f);
    p = fw_fma_f32(p, t, -0.607896686f);
    p = fw_fma_f32(p, t, 0.755285144f);
    fw_scaled_f32 tail = fw_exp_scaled_f32(-half_square);
    tail.mantissa = fw_fma_f32(tail.mantissa, -lost, tail.mantissa) * (a * (p * reciprocal));
    float lower = fw_unscale_f32(tail);
    float positive = x <= 0.0f ? 0.0f : x;
    return positive - lower;
}

FW_FN float fw_rsqrt_f32(float x) {
    return 1.0f / fw_sqrt_f32(x);
}
