/* The C dialect of generated kernels: the types and primitives that math.h builds on, for gcc and clang. */

#include <math.h>
#include <stdint.h>

#define FW_FN static inline __attribute__((always_inline))

#define FW_INFINITY_F32 __builtin_inff()
#define FW_INFINITY_F64 __builtin_inf()
#define FW_NAN_F32 __builtin_nanf("")
#define FW_NAN_F64 __builtin_nan("")

#define fw_fma_f32(a, b, c) __builtin_fmaf((a), (b), (c))
#define fw_fma_f64(a, b, c) __builtin_fma((a), (b), (c))
#define fw_divide_fraction_f32(a, b) ((a) / (b))
#define fw_sqrt_f32(x) __builtin_sqrtf(x)
#define fw_sqrt_f64(x) __builtin_sqrt(x)
#define fw_rint_f32(x) __builtin_rintf(x)
#define fw_rint_f64(x) __builtin_rint(x)
#define fw_floor_f32(x) __builtin_floorf(x)
#define fw_floor_f64(x) __builtin_floor(x)
#define fw_ceil_f32(x) __builtin_ceilf(x)
#define fw_ceil_f64(x) __builtin_ceil(x)
#define fw_trunc_f32(x) __builtin_truncf(x)
#define fw_trunc_f64(x) __builtin_trunc(x)
#define fw_abs_f32(x) __builtin_fabsf(x)
#define fw_abs_f64(x) __builtin_fabs(x)
#define fw_copysign_f32(magnitude, sign) __builtin_copysignf((magnitude), (sign))
#define fw_copysign_f64(magnitude, sign) __builtin_copysign((magnitude), (sign))

#define fw_opaque_i8(x) (x)
#define fw_opaque_i16(x) (x)
#define fw_opaque_i32(x) (x)
#define fw_opaque_i64(x) (x)

FW_FN uint32_t fw_bits_f32(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

FW_FN float fw_from_bits_f32(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

FW_FN uint64_t fw_bits_f64(double x) {
    uint64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

FW_FN double fw_from_bits_f64(uint64_t bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* Neighbouring points that the sections of a long pointwise kernel handle at once. */
#define FW_POINTS 256

/* Where an operand lives: slots[column] + byte_offset, or the slot's own bits for a scalar. */
typedef struct {
    int64_t column;
    int64_t byte_offset;
} fw_operand;
