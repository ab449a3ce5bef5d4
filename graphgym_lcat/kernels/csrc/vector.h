/* Short vectors of REAL by the compiler's vector extension (gcc, clang; every processor), and exp on them.
 *
 * REAL (float or double) and SUFFIX are given on the command line: each source file is compiled once for every number type and
 * instruction set, and its functions carry the suffix in their names.
 */
#ifndef LCAT_VECTOR_H
#define LCAT_VECTOR_H

#include <stdint.h>
#include <string.h>

#define CONCAT_(a, b) a##_##b
#define CONCAT(a, b) CONCAT_(a, b)
#define EXPORT(name) CONCAT(name, SUFFIX)

#define INLINE static inline __attribute__((always_inline))

#define LANES 8

/* For loops over a few vectors that should stay in registers. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* Integers as wide as REAL. */
#ifdef REAL_IS_DOUBLE
typedef double real;
typedef int64_t bits;
typedef uint64_t ubits;
#else
typedef float real;
typedef int32_t bits;
typedef uint32_t ubits;
#endif

typedef real vec __attribute__((vector_size(LANES * sizeof(real))));
typedef bits mask __attribute__((vector_size(LANES * sizeof(real))));
typedef ubits umask __attribute__((vector_size(LANES * sizeof(real))));
typedef real loose_vec __attribute__((vector_size(LANES * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef real half_vec __attribute__((vector_size(LANES / 2 * sizeof(real))));
typedef real loose_half_vec __attribute__((vector_size(LANES / 2 * sizeof(real)), aligned(sizeof(real)), may_alias));

INLINE vec load(const real *p) { return *(const loose_vec *)p; }
INLINE void store(real *p, vec v) { *(loose_vec *)p = v; }
INLINE half_vec load_half(const real *p) { return *(const loose_half_vec *)p; }
INLINE vec splat(real x) { return (vec){x, x, x, x, x, x, x, x}; }
INLINE vec choose(mask m, vec yes, vec no) { return (vec)((m & (mask)yes) | (~m & (mask)no)); }
INLINE vec keep(mask m, vec v) { return (vec)(m & (mask)v); }
/* The larger one; `a` where `b` is NaN. */
INLINE vec larger(vec a, vec b) { return choose(b > a, b, a); }
INLINE vec leaky(vec t, real slope) { return choose(t > 0, t, t * slope); }
/* grad · LeakyReLU'(t) */
INLINE vec leaky_slope(vec t, vec grad, real slope) { return choose(t > 0, grad, grad * slope); }

#if defined(__clang__) || __GNUC__ >= 12
INLINE vec join(half_vec a, half_vec b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7); }
#else
INLINE vec join(half_vec a, half_vec b) { return (vec){a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]}; }
#endif

/* Lanes below n. */
INLINE mask first_lanes(int64_t n) { return (mask){0, 1, 2, 3, 4, 5, 6, 7} < (bits)n; }

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#endif

/* Sums of neighbouring lanes of a and b, within halves: the order of the instruction that processors have for it. */
INLINE vec pair_sums(vec a, vec b)
{
    return SHUFFLE(a, b, 0, 2, 8, 10, 4, 6, 12, 14) + SHUFFLE(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
}

/* out[u] = sum of the lanes of v[u]. */
INLINE void lane_sums(const vec v[4], real *out)
{
    vec sums = pair_sums(pair_sums(v[0], v[1]), pair_sums(v[2], v[3]));
    half_vec low, high;
    memcpy(&low, &sums, sizeof low);
    memcpy(&high, (const char *)&sums + sizeof low, sizeof high);
    low += high;
    memcpy(out, &low, sizeof low);
}

/* The same for one vector, in the same order, so that two such sums cancel exactly. */
INLINE real lane_sum(vec v)
{
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

/* exp(x) for x ≤ 88 (709); 0 where the result would be subnormal; NaN stays NaN.
 *
 * x = n ln 2 + r with |r| ≤ ln 2 / 2; adding `magic` rounds n to an integer in the low bits of the sum.
 */
INLINE vec exponential(vec x)
{
#ifdef REAL_IS_DOUBLE
    const real magic = 0x1.8p52, log2_e = 1.4426950408889634, ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    const real smallest = -708.39;
    const int mantissa = 52;
#else
    const real magic = 0x1.8p23f, log2_e = 1.44269504f, ln2_high = 0x1.63p-1f, ln2_low = -0x1.bd0106p-13f, smallest = -87.33f;
    const int mantissa = 23;
#endif
    vec shifted = x * log2_e + magic;
    vec n = shifted - magic;
    vec r = x - n * ln2_high - n * ln2_low;
#ifdef REAL_IS_DOUBLE
    vec y = splat(1.0 / 6227020800);
    y = y * r + 1.0 / 479001600;
    y = y * r + 1.0 / 39916800;
    y = y * r + 1.0 / 3628800;
    y = y * r + 1.0 / 362880;
    y = y * r + 1.0 / 40320;
    y = y * r + 1.0 / 5040;
    y = y * r + 1.0 / 720;
    y = y * r + 1.0 / 120;
    y = y * r + 1.0 / 24;
    y = y * r + 1.0 / 6;
    y = y * r + 0.5;
#else
    vec y = splat(1.9875691500e-4f);
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
#endif
    y = y * (r * r) + r + 1;
    /* Adding n to the exponent; where x is too small, the bits are garbage and are replaced by zero. */
    vec scaled = (vec)((umask)y + ((umask)shifted << mantissa));
    vec result = choose(x != x, x, scaled);
    return keep(~(x < smallest), result);
}

#endif
