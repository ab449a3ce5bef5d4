/* A counter-based generator: a word is a function of a seed and two counters, so that nothing is stored and the order of calls, or
 * the number of threads, changes nothing. Only 32-bit arithmetic, so that kernels/hashing.py computes the same on every device.
 */
#ifndef LCAT_HASH_H
#define LCAT_HASH_H

#include <stdint.h>

#define STEP 0x9E3779B9u

/* A bijection in which every bit of the result depends on every bit of x (Wellons' lowbias32); of a word or a vector of words. */
#define MIX(x)                                                                                                                \
    x ^= x >> 16;                                                                                                             \
    x *= 0x7feb352du;                                                                                                         \
    x ^= x >> 15;                                                                                                             \
    x *= 0x846ca68bu;                                                                                                         \
    x ^= x >> 16;                                                                                                             \
    return x;

/* A stronger one (his triple32): with MIX alone, the rates of single heads were further off than chance allows. */
#define FINISH(x)                                                                                                             \
    x ^= x >> 17;                                                                                                             \
    x *= 0xed5ad4bbu;                                                                                                         \
    x ^= x >> 11;                                                                                                             \
    x *= 0xac4c1b51u;                                                                                                         \
    x ^= x >> 15;                                                                                                             \
    x *= 0x31848babu;                                                                                                         \
    x ^= x >> 14;                                                                                                             \
    return x;

static inline uint32_t mix_word(uint32_t x) { MIX(x) }
static inline uint32_t finish_word(uint32_t x) { FINISH(x) }

/* The seed, scrambled by a bijection, so that successive seeds have nothing in common: a key for each of the two counters. */
struct keys {
    uint32_t first, second;
};

static inline struct keys scramble(int64_t seed)
{
    const uint32_t low = (uint32_t)seed, high = (uint32_t)((uint64_t)seed >> 32);
    const uint32_t first = mix_word(low ^ mix_word(high + STEP));
    return (struct keys){first, mix_word(high ^ mix_word(first + STEP))};
}

#endif
