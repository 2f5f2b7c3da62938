/* The CUDA dialect of generated kernels: the types and primitives that math.h builds on. */

/* NVRTC has no system headers; nvcc brings its own integer types. */
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#else
#include <stdint.h>
#endif

#define FW_FN static __device__ __forceinline__

#define FW_INFINITY_F32 __int_as_float(0x7f800000)
#define FW_INFINITY_F64 __longlong_as_double(0x7ff0000000000000LL)
#define FW_NAN_F32 __int_as_float(0x7fc00000)
#define FW_NAN_F64 __longlong_as_double(0x7ff8000000000000LL)

#define fw_fma_f32(a, b, c) __fmaf_rn((a), (b), (c))
#define fw_fma_f64(a, b, c) __fma_rn((a), (b), (c))
#define fw_sqrt_f32(x) __fsqrt_rn(x)
#define fw_sqrt_f64(x) __dsqrt_rn(x)
#define fw_rint_f32(x) rintf(x)
#define fw_rint_f64(x) rint(x)
#define fw_floor_f32(x) floorf(x)
#define fw_floor_f64(x) floor(x)
#define fw_ceil_f32(x) ceilf(x)
#define fw_ceil_f64(x) ceil(x)
#define fw_trunc_f32(x) truncf(x)
#define fw_trunc_f64(x) trunc(x)
#define fw_abs_f32(x) fabsf(x)
#define fw_abs_f64(x) fabs(x)
#define fw_copysign_f32(magnitude, sign) copysignf((magnitude), (sign))
#define fw_copysign_f64(magnitude, sign) copysign((magnitude), (sign))

/* Hides from the compiler where a value comes from. Seeing an integer's absolute value converted to a float, the
 * assembler converts the integer and takes the float's, which makes the least integer positive. */
FW_FN int32_t fw_opaque_i32(int32_t x) {
    asm("" : "+r"(x));
    return x;
}

#define fw_opaque_i8(x) fw_opaque_i32(x)
#define fw_opaque_i16(x) fw_opaque_i32(x)

FW_FN int64_t fw_opaque_i64(int64_t x) {
    asm("" : "+l"(x));
    return x;
}

FW_FN uint32_t fw_bits_f32(float x) {
    return __float_as_uint(x);
}

FW_FN float fw_from_bits_f32(uint32_t bits) {
    return __uint_as_float(bits);
}

FW_FN uint64_t fw_bits_f64(double x) {
    return (uint64_t)__double_as_longlong(x);
}

FW_FN double fw_from_bits_f64(uint64_t bits) {
    return __longlong_as_double((int64_t)bits);
}

/* a / b for 0 <= a <= b and 1 <= b < 2^64, rounded as by `/`. These are the steps that `/` takes too, but `/` first tests
 * whether a scaled division is needed, and this branch costs as much as the division. Here it never is: where a is so
 * small that a step could underflow, b is 1 or 2, and the quotient of the steps is the rounded half or whole of a. */
FW_FN float fw_divide_fraction_f32(float a, float b) {
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(b));
    reciprocal = fw_fma_f32(reciprocal, fw_fma_f32(-b, reciprocal, 1.0f), reciprocal);
    const float quotient = a * reciprocal;
    return fw_fma_f32(reciprocal, fw_fma_f32(-b, quotient, a), quotient);
}

/* A divisor of many numbers. No step of a division of moderate numbers can underflow or overflow. Numbers are divided by
 * such steps if their magnitudes are from `least` to FW_MOST_MODERATE; `least` is infinite if the divisor is not moderate. */
typedef struct {
    float value, reciprocal, least;
} fw_divisor_f32;

#define FW_LEAST_MODERATE 0x1p-60f
#define FW_MOST_MODERATE 0x1p60f

FW_FN fw_divisor_f32 fw_as_divisor_f32(float value) {
    const bool is_moderate = fabsf(value) >= FW_LEAST_MODERATE && fabsf(value) <= FW_MOST_MODERATE;
    const float least = is_moderate ? FW_LEAST_MODERATE : fw_from_bits_f32(0x7f800000u);
    const fw_divisor_f32 divisor = {value, 1.0f / value, least};
    return divisor;
}

static __device__ __noinline__ float fw_divide_any_f32(float a, float b) {
    return a / b;
}

/* a / b, in half the time of `/`: the reciprocal is known, rounded correctly, and so is the quotient (Markstein, IBM
 * Journal of Research and Development 34, 1990). */
FW_FN float fw_divide_by_f32(float a, fw_divisor_f32 b) {
    if (!(fabsf(a) >= b.least && fabsf(a) <= FW_MOST_MODERATE)) return fw_divide_any_f32(a, b.value);
    const float quotient = a * b.reciprocal;
    return fw_fma_f32(b.reciprocal, fw_fma_f32(-b.value, quotient, a), quotient);
}

/* A captured graph starts a kernel while the last blocks of the one ahead still run. Before this call a kernel reads only
 * what no kernel of the graph writes: its parameters and its slots. On devices before compute capability 9.0 a kernel
 * starts once the one ahead has ended. */
FW_FN void fw_wait_for_kernels_before(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the next kernel start, once each block has called this or ended. */
FW_FN void fw_let_next_kernel_start(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* The same for a kernel with enough threads for a whole device. While fewer run, blocks of the next kernel would share the
 * multiprocessors that are free first. */
FW_FN void fw_let_next_kernel_start_if_many(void) {
    if ((int64_t)gridDim.x * gridDim.y * gridDim.z * blockDim.x >= 1 << 18) fw_let_next_kernel_start();
}

/* Where an operand lives: slots[column] + byte_offset, or the slot's own bits for a scalar. */
typedef struct {
    int64_t column;
    int64_t byte_offset;
} fw_operand;

/* The sizes of a launch, and the operands of its first instance, as far as they fit. As parameters of a kernel they are
 * at hand at once, while reading them from memory takes half a microsecond. */
#define FW_MOST_SIZES 48
#define FW_MOST_OPERANDS 12
typedef struct {
    int64_t sizes[FW_MOST_SIZES];
    fw_operand operands[FW_MOST_OPERANDS];
} fw_values;
