/* What GATv2 computes per edge and head from the rows of both ends: scores and products.
 *
 * Heads are 1, 2, 4 or a multiple of 8 up to 64; depth (of q, k) and channels (of v) are multiples of 8. The caller pads.
 */
#ifndef LCAT_PAIR_NUMBERS_H
#define LCAT_PAIR_NUMBERS_H

#include "block.h"

/* Rows as they are stored, or rows of REAL. */
struct pair_rows {
    int are_reals;
    const stored *rows;
    const real *reals;
};

/* The terms of one number per edge and head, the row at `start`: att · LeakyReLU(fixed + row), or without att fixed · row. */
INLINE vec pair_terms(int64_t vectors, const real *fixed, struct pair_rows rows, int64_t start, const real *att, real slope)
{
    vec sum = splat(0);
    UNROLL for (int64_t c = 0; c < vectors * LANES; c += LANES) {
        const vec x = load(fixed + c), y = rows.are_reals ? load(rows.reals + start + c) : load_row(rows.rows + start + c);
        sum += att ? load(att + c) * leaky(x + y, slope) : x * y;
    }
    return sum;
}

/* out[b, h] = sum of the terms of edge b and head h. Four numbers at a time, whose sums over lanes are taken together. */
INLINE void pair_numbers(int64_t vectors, int64_t heads, const struct block *block, const real *fixed, struct pair_rows rows,
                         const real *att, real slope, real *out)
{
    const int64_t channels = vectors * LANES, width = heads * channels;
    vec terms[4];
    if (heads >= 4) {
        for (int64_t b = 0; b < block->count; b++) {
            const int64_t row = edge_at(block, b) * width;
            for (int64_t h = 0; h < heads; h += 4) {
                UNROLL for (int64_t u = 0, c = h * channels; u < 4; u++, c += channels)
                    terms[u] = pair_terms(vectors, fixed + c, rows, row + c, att ? att + c : 0, slope);
                lane_sums(terms, out + b * heads + h);
            }
        }
    } else {
        for (int64_t b = 0; b < block->count; b += 4 / heads) {
            UNROLL for (int64_t u = 0; u < 4; u++) {
                const int64_t c = heads == 2 ? (u & 1) * channels : 0;
                const int64_t row = edge_at(block, b + (heads == 2 ? u >> 1 : u)) * width;
                terms[u] = pair_terms(vectors, fixed + c, rows, row + c, att ? att + c : 0, slope);
            }
            lane_sums(terms, out + b * heads);
        }
    }
}

#define BY_VECTORS(vectors, ...)                                                                                              \
    switch (vectors) {                                                                                                        \
    case 1: pair_numbers(1, __VA_ARGS__); break;                                                                              \
    case 2: pair_numbers(2, __VA_ARGS__); break;                                                                              \
    case 4: pair_numbers(4, __VA_ARGS__); break;                                                                              \
    default: pair_numbers(vectors, __VA_ARGS__);                                                                              \
    }

NOINLINE void pair_scores(int64_t heads, const struct block *block, int64_t depth, const real *fixed, const stored *rows,
                          const real *att, real slope, real *out)
{
    const struct pair_rows pairs = {.rows = rows};
    BY_VECTORS(depth / LANES, heads, block, fixed, pairs, att, slope, out)
}

#if STORED_IS_HALF
NOINLINE void pair_scores_of_reals(int64_t heads, const struct block *block, int64_t depth, const real *fixed, const real *rows,
                                   const real *att, real slope, real *out)
{
    const struct pair_rows pairs = {.are_reals = 1, .reals = rows};
    BY_VECTORS(depth / LANES, heads, block, fixed, pairs, att, slope, out)
}
#else
#define pair_scores_of_reals pair_scores
#endif

NOINLINE void pair_products(int64_t heads, const struct block *block, int64_t channels, const real *fixed, const stored *rows,
                            real *out)
{
    const struct pair_rows pairs = {.rows = rows};
    BY_VECTORS(channels / LANES, heads, block, fixed, pairs, 0, 0, out)
}

#define BY_HEADS(call)                                                                                                        \
    if (heads == 4)                                                                                                           \
        call(4);                                                                                                              \
    else                                                                                                                      \
        call(heads);

INLINE void prefetch_block(const struct block *block, const stored *rows, int64_t width)
{
    for (int64_t b = 0; b < block->count; b++) prefetch_row(rows + edge_at(block, b) * width);
}

#endif
