/* Which attention coefficients dropout keeps: a hash of seed, edge and head, computed again wherever it is needed.
 *
 * The coefficient of edge e and head h is kept if finish(mix(e ^ a) ^ mix(b + h · STEP)) ≥ round(p · 2³²), where a and b are the keys
 * of the seed (hash.h). Only 32-bit arithmetic, so that kernels/dropout.py computes the same on every device.
 */
#ifndef LCAT_DROPOUT_H
#define LCAT_DROPOUT_H

#include "edge_numbers.h"
#include "hash.h"

typedef uint32_t words __attribute__((vector_size(LANES * 4)));
typedef int32_t word_mask __attribute__((vector_size(LANES * 4)));
typedef uint32_t loose_words __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

struct dropout {
    int on;
    uint32_t edge_key, head_key[MAX_HEADS], threshold;
    real factor; /* what kept coefficients are multiplied with */
};

INLINE words mix(words x) { MIX(x) }
INLINE words finish(words x) { FINISH(x) }

NOINLINE struct dropout make_dropout(int64_t seed, double probability)
{
    const struct keys keys = scramble(seed);
    const double bound = probability * 4294967296.0 + 0.5;
    struct dropout dropout = {.on = probability > 0,
                              .edge_key = keys.first,
                              .threshold = bound >= 4294967295.0 ? 4294967295u : (uint32_t)bound,
                              .factor = probability < 1 ? (real)(1 / (1 - probability)) : 0};
    for (uint32_t h = 0; h < MAX_HEADS; h++) dropout.head_key[h] = mix_word(keys.second + h * STEP);
    return dropout;
}

#if defined(__clang__)
#define SHUFFLE_WORDS(a, ...) __builtin_shufflevector(a, a, __VA_ARGS__)
#else
#define SHUFFLE_WORDS(a, ...) __builtin_shuffle(a, (word_mask){__VA_ARGS__})
#endif

/* Each edge's word, repeated for the heads that stand in one vector. */
INLINE words repeat_words(int64_t heads, const uint32_t *w)
{
    if (heads >= LANES) return (words){0} + w[0];
    const words next = *(const loose_words *)w;
    if (heads == 4) return SHUFFLE_WORDS(next, 0, 0, 0, 0, 1, 1, 1, 1);
    if (heads == 2) return SHUFFLE_WORDS(next, 0, 0, 1, 1, 2, 2, 3, 3);
    return next;
}

INLINE void fill_factors(int64_t heads, const struct dropout *dropout, int64_t count, const struct block *block,
                         const struct block_numbers *numbers, real *factors)
{
    uint32_t word[BLOCK + 2 * LANES];
    for (int64_t b = 0; b < count; b += LANES) {
        words x;
        if (b + LANES <= block->whole)
            x = *(const loose_words *)(numbers->number + b);
        else
            for (int64_t l = 0; l < LANES; l++) x[l] = (uint32_t)number_at(block, numbers, b + l < count ? b + l : count - 1);
        *(loose_words *)(word + b) = mix(x ^ dropout->edge_key);
    }
    for (int64_t part = 0; part < period(heads); part += LANES) {
        words head;
        for (int64_t l = 0; l < LANES; l++) head[l] = dropout->head_key[heads < LANES ? l & (heads - 1) : part + l];
        for (int64_t n = part; n < count * heads; n += period(heads)) {
            const words x = finish(repeat_words(heads, word + n / heads) ^ head);
            const word_mask kept = x >= dropout->threshold;
            store(factors + n, keep(__builtin_convertvector(kept, mask), splat(dropout->factor)));
        }
    }
}

/* factors[b, h] = 1 / (1 − p) where the coefficient is kept, else 0. */
NOINLINE void dropout_factors(int64_t heads, const struct dropout *dropout, const struct block *block,
                              const struct block_numbers *numbers, real *factors)
{
    switch (heads) {
    case 1: fill_factors(1, dropout, block->count, block, numbers, factors); break;
    case 2: fill_factors(2, dropout, block->count, block, numbers, factors); break;
    case 4: fill_factors(4, dropout, block->count, block, numbers, factors); break;
    default: fill_factors(heads, dropout, block->count, block, numbers, factors);
    }
}

#endif
