/* Scalar bodies of every op that a plain operator cannot give: one text, the same bits in every loop.
 *
 * A function is straight-line code: choices are ternaries that become blends, and only fw_fma_* contracts, so a
 * compiler may widen it to vectors and the vector body, the scalar tail and a lone call agree in every bit.
 * (Exceptions, computed an element at a time: fmod and what rests on it, integer division and power, and the
 * float64 functions, which are the platform's own.) With IEEE division and square root on both, the float32
 * functions agree between the C and the CUDA dialect too; float64 ones differ there in the last place.
 *
 * Polynomials were fitted by iteratively reweighted least squares (Lawson's minimax) against 40-digit values,
 * weighted by the error the function would have, then rounded to the working type one coefficient at a time from
 * the lowest power up, refitting the rest after each. A comment gives the range, the degree, and the largest
 * relative error of the fit itself.
 *
 * Largest float32 errors measured, in ulps, over every seventh float: exp 1.04, expm1 1.53, exp2 0.87, log 0.92,
 * log1p 1.52, log2 0.97, log10 0.92, sin 1.49, cos 1.49, tan 3.17 (below 2^45; at 2^52 2.95, 3.47, 4.27), tanh 2.46,
 * sigmoid 2.33, silu 3.20, softplus 1.77, erf 1.11, gelu 3.9 (above -5; 4.5 below), rsqrt 1.49. Over random pairs:
 * power 0.54, atan2 1.72.
 *
 * float16 and bfloat16 have no arithmetic: load to float, compute in float, round after each op.
 */

/* ---- which NaN a NaN is ---- */

/* A computed value as others see it: which NaN arithmetic gives depends on the processor, and on which operand the
 * compiler puts first. The choice is made among integers, since to a compiler one NaN may be as good as another. */
FW_FN float fw_canonical_f32(float x) {
    return fw_from_bits_f32(x == x ? fw_bits_f32(x) : 0x7fc00000u);
}

FW_FN double fw_canonical_f64(double x) {
    return fw_from_bits_f64(x == x ? fw_bits_f64(x) : 0x7ff8000000000000u);
}

/* ---- float16 and bfloat16 ----
 *
 * A NaN is stored as it was loaded, by its own bits: on CUDA even an absolute value is another NaN. One that no half
 * has must not be stored: it may become an infinity. */

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
    bits = x != x ? fw_bits_f32(x) >> 13 & 0x7fffu : bits;
    return (uint16_t)(sign | bits);
}

FW_FN float fw_load_bf16(uint16_t half) {
    return fw_from_bits_f32((uint32_t)half << 16);
}

/* The rounding increment may carry into the exponent, up to infinity: as it should. */
FW_FN uint32_t fw_rounded_bits_bf16(float x) {
    uint32_t bits = fw_bits_f32(x);
    return bits + 0x7fffu + (bits >> 16 & 1u);
}

FW_FN float fw_round_bf16(float x) {
    return fw_from_bits_f32(x != x ? 0x7fc00000u : fw_rounded_bits_bf16(x) & 0xffff0000u);
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
    return fw_copysign_f32(fw_divide_fraction_f32(t, t + 2.0f), x);
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
FW_FN float fw_log1p_finite_f32(float x) {
    float sum = 1.0f + x;
    int32_t k = (int32_t)(fw_bits_f32(sum) - 0x3f3504f3u) >> 23;
    float scale = fw_power_of_two_f32(2 - k);
    fw_scaled_f32 parts;
    parts.mantissa = 0.25f * fw_fma_f32(scale, x, scale - 4.0f);
    parts.exponent = k;
    return fw_log_of_parts_f32(parts);
}

FW_FN float fw_log1p_f32(float x) {
    float result = fw_log_specials_f32(1.0f + x, fw_log1p_finite_f32(x));
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
    return fw_divide_fraction_f32(x < 0.0f ? e : 1.0f, 1.0f + e);
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
    return positive + fw_log1p_finite_f32(fw_exp_f32(-fw_abs_f32(x)));
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
 * p of degree 9 for a in [0, 14.6], error 2^-25.7 (below -14.6 the result is zero). The residual a - 4 - t (a + 4)
 * corrects t, so that a - a t is 8 a / (a + 4); the exponent takes in what the rounding of a^2/2 lost. The result is
 * x Phi(-a) below zero and x - x Phi(-a) above. */
FW_FN float fw_gelu_f32(float x) {
    float a = fw_abs_f32(x);
    a = a > 14.6f ? 14.6f : a;
    float half_square = 0.5f * a * a;
    float lost = fw_fma_f32(0.5f * a, a, -half_square);
    float reciprocal = 1.0f / (a + 4.0f);
    float t = (a - 4.0f) * reciprocal;
    float residual = fw_fma_f32(t, -a, fw_fma_f32(t + 1.0f, -4.0f, a));
    t = fw_fma_f32(reciprocal, residual, t);
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
    fw_scaled_f32 tail = fw_reduce_exp_f32(-half_square);
    tail.mantissa = fw_fma_f32(p, fw_expm1_core_f32(tail.mantissa - lost), p);
    tail.mantissa *= fw_fma_f32(-t, a, a);
    tail.exponent -= 3;
    float lower = fw_unscale_f32(tail);
    float positive = x <= 0.0f ? 0.0f : x;
    return fw_copysign_f32(positive - lower, x);
}

FW_FN float fw_rsqrt_f32(float x) {
    return 1.0f / fw_sqrt_f32(x);
}

/* ---- trigonometry, float32 ---- */

/* The distance of |x| to a nearby multiple of pi/2, and that multiple. */
typedef struct {
    float remainder;
    uint32_t quadrant;
} fw_angle_f32;

/* In double, pi/2 in two parts. While |x| < 2^52 the multiple k is exact in the low bits of k + 2^52, k * pi/2 is
 * subtracted without a rounding in the first step (the difference is a multiple of 2^-52 below 2) and with one in
 * the second. k is the nearest integer but for the rounding of 2/pi, so that |remainder| <= pi/4 for |x| < 2^45 and
 * 1.18 at 2^52. Larger arguments, whose neighbours are millions of periods apart, count as 0. */
FW_FN fw_angle_f32 fw_reduce_angle_f32(float x) {
    double magnitude = (double)fw_abs_f32(x);
    double shifted = fw_fma_f64(magnitude, 0.6366197723675814, 4503599627370496.0);
    double k = shifted - 4503599627370496.0;
    double r = fw_fma_f64(k, -1.5707963267948966, magnitude);
    r = fw_fma_f64(k, -6.123233995736766e-17, r);
    int32_t too_large = magnitude >= 4503599627370496.0;
    fw_angle_f32 angle;
    angle.remainder = too_large ? fw_abs_f32(x) * 0.0f : (float)r;
    angle.quadrant = too_large ? 0u : (uint32_t)fw_bits_f64(shifted);
    return angle;
}

/* |r| <= 1.18: degree 9, error 2^-30.8. */
FW_FN float fw_sin_core_f32(float r) {
    float s = r * r;
    float p = 2.66272536e-06f;
    p = fw_fma_f32(p, s, -0.000198292109f);
    p = fw_fma_f32(p, s, 0.00833327137f);
    p = fw_fma_f32(p, s, -0.166666657f);
    return fw_fma_f32(r * s, p, r);
}

/* |r| <= 1.18: degree 8, error 2^-26.7. */
FW_FN float fw_cos_core_f32(float r) {
    float s = r * r;
    float p = 2.39558904e-05f;
    p = fw_fma_f32(p, s, -0.00138804968f);
    p = fw_fma_f32(p, s, 0.0416664034f);
    p = fw_fma_f32(p, s, -0.5f);
    return fw_fma_f32(p, s, 1.0f);
}

FW_FN float fw_flip_sign_f32(float x, uint32_t sign) {
    return fw_from_bits_f32(fw_bits_f32(x) ^ sign);
}

FW_FN float fw_sin_f32(float x) {
    fw_angle_f32 angle = fw_reduce_angle_f32(x);
    float sine = fw_sin_core_f32(angle.remainder);
    float cosine = fw_cos_core_f32(angle.remainder);
    uint32_t sign = (fw_bits_f32(x) & 0x80000000u) ^ (angle.quadrant & 2u) << 30;
    return fw_flip_sign_f32(angle.quadrant & 1u ? cosine : sine, sign);
}

FW_FN float fw_cos_f32(float x) {
    fw_angle_f32 angle = fw_reduce_angle_f32(x);
    float sine = fw_sin_core_f32(angle.remainder);
    float cosine = fw_cos_core_f32(angle.remainder);
    uint32_t sign = ((angle.quadrant + 1u) & 2u) << 30;
    return fw_flip_sign_f32(angle.quadrant & 1u ? sine : cosine, sign);
}

FW_FN float fw_tan_f32(float x) {
    fw_angle_f32 angle = fw_reduce_angle_f32(x);
    float sine = fw_sin_core_f32(angle.remainder);
    float cosine = fw_cos_core_f32(angle.remainder);
    uint32_t odd = angle.quadrant & 1u;
    uint32_t sign = (fw_bits_f32(x) & 0x80000000u) ^ odd << 31;
    return fw_flip_sign_f32((odd ? cosine : sine) / (odd ? sine : cosine), sign);
}

/* atan(t) for t in [0, 1]: degree 17, error 2^-25.8. */
FW_FN float fw_atan_core_f32(float t) {
    float s = t * t;
    float p = 0.00291951792f;
    p = fw_fma_f32(p, s, -0.0163634513f);
    p = fw_fma_f32(p, s, 0.0432049856f);
    p = fw_fma_f32(p, s, -0.0755167082f);
    p = fw_fma_f32(p, s, 0.106657706f);
    p = fw_fma_f32(p, s, -0.14211002f);
    p = fw_fma_f32(p, s, 0.199937671f);
    p = fw_fma_f32(p, s, -0.333331525f);
    return fw_fma_f32(t * s, p, t);
}

/* The angle of the smaller over the larger side, then its octant. Equal sides, 0 and infinity too, have a defined
 * ratio; NaN comes back through the sum. */
FW_FN float fw_atan2_f32(float y, float x) {
    float ay = fw_abs_f32(y);
    float ax = fw_abs_f32(x);
    int32_t steep = ay > ax;
    float smaller = steep ? ax : ay;
    float larger = steep ? ay : ax;
    float ratio = smaller / (larger == 0.0f ? 1.0f : larger);
    ratio = ratio != ratio ? 1.0f : ratio;
    float core = fw_atan_core_f32(ratio);
    float angle = steep ? 1.57079637f - (core + 4.37113883e-08f) : core;
    float mirrored = 3.14159274f - (angle + 8.74227766e-08f);
    angle = fw_bits_f32(x) >> 31 ? mirrored : angle;
    angle = fw_copysign_f32(angle, y);
    return x != x ? x : (y != y ? y : angle);
}

/* ---- power, float32 ---- */

/* log2(x) for x >= 0, in double: with s = f / (2 + f), log2(1+f) = s p(s^2), degree 4 in s^2, error 2^-37.8. */
FW_FN double fw_log2_wide_f32(float x) {
    fw_scaled_f32 parts = fw_reduce_log_f32(x);
    double f = (double)parts.mantissa;
    double s = f / (2.0 + f);
    double s2 = s * s;
    double p = 0.34072792666937257;
    p = fw_fma_f64(p, s2, 0.4116728310409346);
    p = fw_fma_f64(p, s2, 0.57708358321016);
    p = fw_fma_f64(p, s2, 0.9617966733502789);
    p = fw_fma_f64(p, s2, 2.8853900817900797);
    double result = fw_fma_f64(s, p, (double)parts.exponent);
    result = x == 0.0f ? -FW_INFINITY_F64 : result;
    return x < FW_INFINITY_F32 ? result : (double)x;
}

/* 2^x in double, for a result that is then rounded to float32: degree 6, error 2^-28.9. */
FW_FN double fw_exp2_wide_f32(double x) {
    x = x < -200.0 ? -200.0 : x;
    x = x > 200.0 ? 200.0 : x;
    double shifted = x + 6755399441055744.0;
    double r = x - (shifted - 6755399441055744.0);
    double p = 0.00015353371958933573;
    p = fw_fma_f64(p, r, 0.0013398874833373804);
    p = fw_fma_f64(p, r, 0.009618437311822874);
    p = fw_fma_f64(p, r, 0.05550332469935436);
    p = fw_fma_f64(p, r, 0.24022647914114745);
    p = fw_fma_f64(p, r, 0.6931472028553534);
    p = fw_fma_f64(p, r, 1.0);
    return p * fw_from_bits_f64((fw_bits_f64(shifted) + 1023u) << 52);
}

/* IEEE pow: x^0 and 1^y are 1 even for NaN, a negative base needs an integer exponent, (-1)^y is 1 for infinite y. */
FW_FN float fw_power_f32(float x, float y) {
    float a = fw_abs_f32(x);
    float result = (float)fw_exp2_wide_f32((double)y * fw_log2_wide_f32(a));
    result = a == 1.0f ? (y != y ? y : 1.0f) : result;
    int32_t integer = fw_rint_f32(y) == y;
    int32_t odd = integer & (fw_rint_f32(0.5f * y) != 0.5f * y);
    uint32_t sign = odd ? fw_bits_f32(x) & 0x80000000u : 0u;
    result = fw_flip_sign_f32(result, sign);
    result = (x < 0.0f) & (integer == 0) & (x > -FW_INFINITY_F32) ? FW_NAN_F32 : result;
    return (x == 1.0f) | (y == 0.0f) ? 1.0f : result;
}

/* ---- functions, float64: the platform's, and what is made of them ---- */

#define FW_PLATFORM_F64(name) \
    FW_FN double fw_##name##_f64(double x) { \
        return name(x); \
    }
FW_PLATFORM_F64(exp)
FW_PLATFORM_F64(exp2)
FW_PLATFORM_F64(expm1)
FW_PLATFORM_F64(log)
FW_PLATFORM_F64(log2)
FW_PLATFORM_F64(log10)
FW_PLATFORM_F64(log1p)
FW_PLATFORM_F64(sin)
FW_PLATFORM_F64(cos)
FW_PLATFORM_F64(tan)
FW_PLATFORM_F64(tanh)
FW_PLATFORM_F64(erf)

FW_FN double fw_atan2_f64(double y, double x) {
    return atan2(y, x);
}

/* x^0 and 1^y are 1 even for NaN: to the platform's, only for one that is quiet. */
FW_FN double fw_power_f64(double x, double y) {
    double result = pow(x, y);
    return (x == 1.0) | (y == 0.0) ? 1.0 : result;
}

FW_FN double fw_rsqrt_f64(double x) {
    return 1.0 / fw_sqrt_f64(x);
}

FW_FN double fw_sigmoid_f64(double x) {
    double e = exp(-fw_abs_f64(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/* At -infinity the limit, -0: e^-800 is already 0. */
FW_FN double fw_silu_f64(double x) {
    double clamped = x < -800.0 ? -800.0 : x;
    return clamped * fw_sigmoid_f64(clamped);
}

FW_FN double fw_softplus_f64(double x) {
    double positive = x <= 0.0 ? 0.0 : x;
    return positive + log1p(exp(-fw_abs_f64(x)));
}

/* At -infinity the limit, -0: erfc(40 / sqrt(2)) is already 0. */
FW_FN double fw_gelu_f64(double x) {
    double clamped = x < -40.0 ? -40.0 : x;
    return 0.5 * clamped * erfc(clamped * -0.7071067811865476);
}

/* ---- arithmetic of either float type ---- */

FW_FN float fw_fmod_f32(float a, float b) {
    return fmodf(a, b);
}

FW_FN double fw_fmod_f64(double a, double b) {
    return fmod(a, b);
}

/* minimum, maximum: NaN from either side; of equal values (+0 and -0) the second, as NumPy. Those of float16 are
 * first_minimum and first_maximum: of equal values the first, as NumPy.
 * clip: x itself where it equals a bound, as NumPy where the bounds are scalars.
 * relu: NaN stays NaN. sign: NaN stays NaN, and -0 gives +0.
 * remainder, floor_divide: Python's, the remainder has the divisor's sign and the quotient agrees with it. */
#define FW_FLOAT_ARITHMETIC(F, T) \
    FW_FN T fw_square_##F(T x) { \
        return x * x; \
    } \
    FW_FN T fw_minimum_##F(T a, T b) { \
        return (a < b) | (a != a) ? a : b; \
    } \
    FW_FN T fw_maximum_##F(T a, T b) { \
        return (a > b) | (a != a) ? a : b; \
    } \
    FW_FN T fw_first_minimum_##F(T a, T b) { \
        return (a <= b) | (a != a) ? a : b; \
    } \
    FW_FN T fw_first_maximum_##F(T a, T b) { \
        return (a >= b) | (a != a) ? a : b; \
    } \
    FW_FN T fw_clip_##F(T x, T low, T high) { \
        return fw_first_minimum_##F(fw_first_maximum_##F(x, low), high); \
    } \
    FW_FN T fw_relu_##F(T x) { \
        return x <= (T)0 ? (T)0 : x; \
    } \
    FW_FN T fw_sign_##F(T x) { \
        T nonzero = x > (T)0 ? (T)1 : (T)-1; \
        return x == (T)0 ? (T)0 : (x != x ? x : nonzero); \
    } \
    FW_FN T fw_round_##F(T x) { \
        return fw_rint_##F(x); \
    } \
    FW_FN T fw_remainder_##F(T a, T b) { \
        T r = fw_fmod_##F(a, b); \
        T moved = (b < (T)0) != (r < (T)0) ? r + b : r; \
        return r == (T)0 ? fw_copysign_##F((T)0, b) : moved; \
    } \
    FW_FN T fw_floor_divide_##F(T a, T b) { \
        T r = fw_fmod_##F(a, b); \
        T quotient = (a - r) / b; \
        quotient = (r != (T)0) & ((b < (T)0) != (r < (T)0)) ? quotient - (T)1 : quotient; \
        T whole = fw_floor_##F(quotient); \
        whole = quotient - whole > (T)0.5 ? whole + (T)1 : whole; \
        whole = quotient == (T)0 ? fw_copysign_##F((T)0, a / b) : whole; \
        return b == (T)0 ? a / b : whole; \
    } \
    FW_FN uint8_t fw_isnan_##F(T x) { \
        return x != x; \
    } \
    FW_FN uint8_t fw_isinf_##F(T x) { \
        return fw_abs_##F(x) == FW_INFINITY_OF(F); \
    } \
    FW_FN uint8_t fw_isfinite_##F(T x) { \
        return fw_abs_##F(x) < FW_INFINITY_OF(F); \
    }
#define FW_INFINITY_OF(F) FW_INFINITY_OF_##F
#define FW_INFINITY_OF_f32 FW_INFINITY_F32
#define FW_INFINITY_OF_f64 FW_INFINITY_F64
FW_FLOAT_ARITHMETIC(f32, float)
FW_FLOAT_ARITHMETIC(f64, double)

/* ---- arithmetic of integers ---- */

#define FW_IDENTITY(name, I, T) \
    FW_FN T fw_##name##_##I(T x) { \
        return x; \
    }

#define FW_CONSTANT(name, value, I, T) \
    FW_FN uint8_t fw_##name##_##I(T x) { \
        (void)x; \
        return value; \
    }

/* What asks about fractions, infinity and NaN has one answer for integers and booleans. */
#define FW_INTEGER_IDENTITIES(I, T) \
    FW_IDENTITY(round, I, T) \
    FW_IDENTITY(floor, I, T) \
    FW_IDENTITY(ceil, I, T) \
    FW_IDENTITY(trunc, I, T) \
    FW_CONSTANT(isnan, 0, I, T) \
    FW_CONSTANT(isinf, 0, I, T) \
    FW_CONSTANT(isfinite, 1, I, T)

/* Everything wraps, through the unsigned type U, since not every dialect wraps signed overflow.
 * Division by zero gives 0; the least integer over -1 wraps. Two's complement conversions as all compilers do. */
#define FW_INTEGER_ARITHMETIC(I, T, U) \
    FW_FN T fw_add_##I(T a, T b) { \
        return (T)((U)a + (U)b); \
    } \
    FW_FN T fw_subtract_##I(T a, T b) { \
        return (T)((U)a - (U)b); \
    } \
    FW_FN T fw_multiply_##I(T a, T b) { \
        return (T)((U)a * (U)b); \
    } \
    FW_FN T fw_negative_##I(T x) { \
        return (T)((U)0 - (U)x); \
    } \
    FW_FN T fw_square_##I(T x) { \
        return fw_multiply_##I(x, x); \
    } \
    FW_FN T fw_minimum_##I(T a, T b) { \
        return a < b ? a : b; \
    } \
    FW_FN T fw_maximum_##I(T a, T b) { \
        return a > b ? a : b; \
    } \
    FW_FN T fw_clip_##I(T x, T low, T high) { \
        return fw_minimum_##I(fw_maximum_##I(x, low), high); \
    } \
    FW_FN T fw_relu_##I(T x) { \
        return x > 0 ? x : 0; \
    } \
    FW_INTEGER_IDENTITIES(I, T) \
    /* as a U a negative count is beyond the width, too */ \
    FW_FN T fw_bitwise_left_shift_##I(T x, T count) { \
        T shifted = (T)((U)x << ((U)count & (8 * sizeof x - 1))); \
        return (U)count < 8 * sizeof x ? shifted : 0; \
    } \
    /* by Euclid, of the sizes, which a U holds */ \
    FW_FN T fw_gcd_##I(T a, T b) { \
        U size = a > 0 ? (U)a : (U)0 - (U)a; \
        U rest = b > 0 ? (U)b : (U)0 - (U)b; \
        while (rest != 0) { \
            U next = size % rest; \
            size = rest; \
            rest = next; \
        } \
        return (T)size; \
    } \
    /* exponent >= 0, by squaring */ \
    FW_FN T fw_raise_##I(T base, T exponent) { \
        U result = 1; \
        U factor = (U)base; \
        for (U rest = (U)exponent; rest != 0; rest >>= 1) { \
            result = rest & 1 ? result * factor : result; \
            factor *= factor; \
        } \
        return (T)result; \
    }

#define FW_SIGNED_ARITHMETIC(I, T, U) \
    FW_INTEGER_ARITHMETIC(I, T, U) \
    /* the least integer stays what it is, as NumPy's does */ \
    FW_FN T fw_abs_##I(T x) { \
        U sign = (U)fw_opaque_##I(x >> (8 * sizeof x - 1)); \
        return (T)(((U)x ^ sign) - sign); \
    } \
    FW_FN T fw_sign_##I(T x) { \
        return (T)((x > 0) - (x < 0)); \
    } \
    /* beyond the width every bit is the sign */ \
    FW_FN T fw_bitwise_right_shift_##I(T x, T count) { \
        return x >> ((U)count < 8 * sizeof x ? count : (T)(8 * sizeof x - 1)); \
    } \
    /* rounds towards zero */ \
    FW_FN T fw_quotient_##I(T a, T b) { \
        T divisor = (b == 0) | (b == -1) ? 1 : b; \
        T quotient = a / divisor; \
        quotient = b == -1 ? fw_negative_##I(a) : quotient; \
        return b == 0 ? 0 : quotient; \
    } \
    FW_FN T fw_fmod_##I(T a, T b) { \
        T divisor = (b == 0) | (b == -1) ? 1 : b; \
        return a % divisor; \
    } \
    FW_FN T fw_remainder_##I(T a, T b) { \
        T r = fw_fmod_##I(a, b); \
        return (r != 0) & ((r < 0) != (b < 0)) ? r + b : r; \
    } \
    FW_FN T fw_floor_divide_##I(T a, T b) { \
        T quotient = fw_quotient_##I(a, b); \
        T r = fw_fmod_##I(a, b); \
        return (r != 0) & ((r < 0) != (b < 0)) ? quotient - 1 : quotient; \
    } \
    /* a negative exponent: 0 except for the units 1 and -1 */ \
    FW_FN T fw_power_##I(T base, T exponent) { \
        T unit = base == 1 ? 1 : (base == -1 ? (exponent & 1 ? -1 : 1) : 0); \
        T power = fw_raise_##I(base, exponent < 0 ? 0 : exponent); \
        return exponent < 0 ? unit : power; \
    }

#define FW_UNSIGNED_ARITHMETIC(I, T, U) \
    FW_INTEGER_ARITHMETIC(I, T, U) \
    FW_IDENTITY(abs, I, T) \
    FW_FN T fw_sign_##I(T x) { \
        return x != 0; \
    } \
    FW_FN T fw_bitwise_right_shift_##I(T x, T count) { \
        return count < 8 * sizeof x ? (T)(x >> (count & (8 * sizeof x - 1))) : 0; \
    } \
    FW_FN T fw_floor_divide_##I(T a, T b) { \
        return b == 0 ? 0 : (T)(a / (b == 0 ? 1 : b)); \
    } \
    FW_FN T fw_remainder_##I(T a, T b) { \
        return b == 0 ? 0 : (T)(a % (b == 0 ? 1 : b)); \
    } \
    FW_FN T fw_power_##I(T base, T exponent) { \
        return fw_raise_##I(base, exponent); \
    }

FW_SIGNED_ARITHMETIC(i8, int8_t, uint32_t)
FW_SIGNED_ARITHMETIC(i16, int16_t, uint32_t)
FW_SIGNED_ARITHMETIC(i32, int32_t, uint32_t)
FW_SIGNED_ARITHMETIC(i64, int64_t, uint64_t)
FW_UNSIGNED_ARITHMETIC(u8, uint8_t, uint32_t)
FW_UNSIGNED_ARITHMETIC(u16, uint16_t, uint32_t)
FW_UNSIGNED_ARITHMETIC(u32, uint32_t, uint32_t)
FW_UNSIGNED_ARITHMETIC(u64, uint64_t, uint64_t)

/* ---- booleans: a byte, 0 or 1; the sum is "or", the product "and" ---- */

FW_INTEGER_IDENTITIES(b8, uint8_t)
FW_IDENTITY(abs, b8, uint8_t)

FW_FN uint8_t fw_add_b8(uint8_t a, uint8_t b) {
    return a | b;
}

FW_FN uint8_t fw_multiply_b8(uint8_t a, uint8_t b) {
    return a & b;
}

FW_FN uint8_t fw_minimum_b8(uint8_t a, uint8_t b) {
    return a & b;
}

FW_FN uint8_t fw_maximum_b8(uint8_t a, uint8_t b) {
    return a | b;
}

FW_FN uint8_t fw_clip_b8(uint8_t x, uint8_t low, uint8_t high) {
    return (x | low) & high;
}

/* ---- conversions: fw_cast_<from>_<to>, for every pair ----
 *
 * To bool (b8, a byte 0 or 1): x != 0, NaN is true. Float to integer: towards zero, saturating, NaN gives 0.
 * Integer to integer wraps. To f16 and bf16: a float that holds the rounded value. */

#define FW_PLAIN_CAST(from, F, to, T) \
    FW_FN T fw_cast_##from##_##to(F x) { \
        return (T)x; \
    }

#define FW_BOOL_CAST(from, F) \
    FW_FN uint8_t fw_cast_##from##_b8(F x) { \
        return x != (F)0; \
    }

/* below: the largest F that is not above the integer type's greatest value. The sum makes +0 of -0: GCC takes a float
 * that is cut to an integer and converted back for one that is cut in place, which keeps its sign. */
#define FW_SATURATING_CAST(from, F, to, T, least, below, greatest) \
    FW_FN T fw_cast_##from##_##to(F x) { \
        F clamped = x > (F)(least) ? x : (F)(least); \
        clamped = clamped > (F)(below) ? (F)(below) : clamped; \
        T whole = (T)(fw_trunc_##from(clamped) + (F)0); \
        whole = x > (F)(below) ? (T)(greatest) : whole; \
        return x != x ? (T)0 : whole; \
    }

/* To the integers all of whose values F holds. */
#define FW_SHORT_CASTS(from, F) \
    FW_SATURATING_CAST(from, F, i8, int8_t, INT8_MIN, INT8_MAX, INT8_MAX) \
    FW_SATURATING_CAST(from, F, i16, int16_t, INT16_MIN, INT16_MAX, INT16_MAX) \
    FW_SATURATING_CAST(from, F, u8, uint8_t, 0, UINT8_MAX, UINT8_MAX) \
    FW_SATURATING_CAST(from, F, u16, uint16_t, 0, UINT16_MAX, UINT16_MAX)

#define FW_HALF_CASTS(from, F) \
    FW_FN float fw_cast_##from##_f16(F x) { \
        return fw_round_f16((float)x); \
    } \
    FW_FN float fw_cast_##from##_bf16(F x) { \
        return fw_round_bf16((float)x); \
    }

#define FW_INTEGER_CASTS(from, F) \
    FW_PLAIN_CAST(from, F, f32, float) \
    FW_PLAIN_CAST(from, F, f64, double) \
    FW_PLAIN_CAST(from, F, i8, int8_t) \
    FW_PLAIN_CAST(from, F, i16, int16_t) \
    FW_PLAIN_CAST(from, F, i32, int32_t) \
    FW_PLAIN_CAST(from, F, i64, int64_t) \
    FW_PLAIN_CAST(from, F, u8, uint8_t) \
    FW_PLAIN_CAST(from, F, u16, uint16_t) \
    FW_PLAIN_CAST(from, F, u32, uint32_t) \
    FW_PLAIN_CAST(from, F, u64, uint64_t) \
    FW_BOOL_CAST(from, F) \
    FW_HALF_CASTS(from, F)
FW_INTEGER_CASTS(i8, int8_t)
FW_INTEGER_CASTS(i16, int16_t)
FW_INTEGER_CASTS(i32, int32_t)
FW_INTEGER_CASTS(i64, int64_t)
FW_INTEGER_CASTS(u8, uint8_t)
FW_INTEGER_CASTS(u16, uint16_t)
FW_INTEGER_CASTS(u32, uint32_t)
FW_INTEGER_CASTS(u64, uint64_t)
FW_INTEGER_CASTS(b8, uint8_t)

FW_PLAIN_CAST(f32, float, f32, float)
FW_PLAIN_CAST(f32, float, f64, double)
FW_SHORT_CASTS(f32, float)
FW_SATURATING_CAST(f32, float, i32, int32_t, INT32_MIN, 2147483520, INT32_MAX)
FW_SATURATING_CAST(f32, float, i64, int64_t, INT64_MIN, 9223371487098961920, INT64_MAX)
FW_SATURATING_CAST(f32, float, u32, uint32_t, 0, 4294967040, UINT32_MAX)
FW_SATURATING_CAST(f32, float, u64, uint64_t, 0, 18446742974197923840ULL, UINT64_MAX)
FW_BOOL_CAST(f32, float)
FW_HALF_CASTS(f32, float)

FW_PLAIN_CAST(f64, double, f32, float)
FW_PLAIN_CAST(f64, double, f64, double)
FW_SHORT_CASTS(f64, double)
FW_SATURATING_CAST(f64, double, i32, int32_t, INT32_MIN, INT32_MAX, INT32_MAX)
FW_SATURATING_CAST(f64, double, i64, int64_t, INT64_MIN, 9223372036854774784, INT64_MAX)
FW_SATURATING_CAST(f64, double, u32, uint32_t, 0, UINT32_MAX, UINT32_MAX)
FW_SATURATING_CAST(f64, double, u64, uint64_t, 0, 18446744073709549568ULL, UINT64_MAX)
FW_BOOL_CAST(f64, double)

/* Rounding to float32 first would round twice: cut to float32 with the last bit set when anything was lost ("round
 * to odd"), and the second rounding sees which side of a tie it is on. */
FW_FN float fw_cast_f64_f16(double x) {
    float nearest = (float)x;
    double back = (double)nearest;
    uint32_t bits = fw_bits_f32(nearest);
    bits -= fw_abs_f64(back) > fw_abs_f64(x) ? 1u : 0u;
    bits |= back != x ? 1u : 0u;
    return fw_round_f16(fw_from_bits_f32(bits));
}

/* Through float32, as the bfloat16 of NumPy arrays does. */
FW_FN float fw_cast_f64_bf16(double x) {
    return fw_round_bf16((float)x);
}
