/* Edge features in the score of GATv2, e_ij = att · LeakyReLU(q_i + k_j + W a_ij): projected block by block, in the cache.
 *
 * The rows k_j + W a_ij (or q_i + W a_ij) of a block's edges stand in a buffer, where the functions that score pairs read them like
 * rows of k. The gradients of a block's W a_ij, s = d_ij LeakyReLU' without the factor att, take their place.
 */
#ifndef LCAT_EDGE_PROJECTION_H
#define LCAT_EDGE_PROJECTION_H

#include "extras.h"
#include "pair_numbers.h"
#include "small_products.h"

#define PROJECTED 4096 /* numbers in the buffer, unless eight edges need more */

/* What GATv2's attention may have beyond the plain case. */
struct pair_extras {
    int numbered; /* whether the numbers of edges are needed */
    struct dropout dropout;
    const real *grad_gamma;   /* gradients of the coefficients themselves, [E + self-loops, heads]; NULL: of their sums */
    const stored *features;      /* [E, edge_dim], or NULL */
    const stored *loop_features; /* [self-loops, edge_dim] */
    int64_t edge_count;
    int64_t edge_dim, padded; /* padded: to whole vectors */
    int64_t capacity;         /* edges per block */
    const int32_t *identity;  /* 0, 1, 2, … */
    const real *weight;       /* [edge_dim, heads · depth] */
    const real *back_weight;  /* [heads · depth, padded], times att; NULL if the features need no gradient */
    stored *grad_features, *grad_loop_features;
    real *projected, *inputs; /* this thread's: [capacity, heads · depth], [capacity, padded] */
    real *room;               /* this thread's, for rows that are not stored as REAL */
};

INLINE int next_pairs(struct edges *edges, int64_t heads, const struct pair_extras *extras, struct block *block)
{
    return next_small_block(edges, heads, extras->capacity, block);
}

INLINE int64_t is_loop(const struct pair_extras *extras, int32_t number) { return number >= extras->edge_count; }

INLINE const stored *features_of(const struct pair_extras *extras, int32_t number)
{
    return is_loop(extras, number) ? extras->loop_features + (number - extras->edge_count) * extras->edge_dim
                                   : extras->features + number * extras->edge_dim;
}

INLINE stored *grad_features_of(const struct pair_extras *extras, int32_t number)
{
    return is_loop(extras, number) ? extras->grad_loop_features + (number - extras->edge_count) * extras->edge_dim
                                   : extras->grad_features + number * extras->edge_dim;
}

/* The features of the block's edge b, as REAL. */
INLINE const real *reals_of(const struct pair_extras *extras, int32_t number, int64_t b)
{
    return as_reals(extras->edge_dim, features_of(extras, number), extras->inputs + b * extras->padded);
}

#define TILE 2 /* vectors: 4 × 2 sums stay in registers */

/* Columns n … n + vectors · LANES − 1 of the rows + W a of some edges. */
INLINE void project_tile(int edges, int vectors, const stored *const *row, const real *const *features, const struct pair_extras *extras,
                         int64_t width, int64_t n, real *to)
{
    vec sum[4][TILE];
    UNROLL for (int e = 0; e < edges; e++)
        UNROLL for (int v = 0; v < vectors; v++) sum[e][v] = load_row(row[e] + n + v * LANES);
    for (int64_t d = 0; d < extras->edge_dim; d++) {
        vec line[TILE];
        UNROLL for (int v = 0; v < vectors; v++) line[v] = load(extras->weight + d * width + n + v * LANES);
        UNROLL for (int e = 0; e < edges; e++) {
            const real factor = features[e][d];
            UNROLL for (int v = 0; v < vectors; v++) sum[e][v] += factor * line[v];
        }
    }
    UNROLL for (int e = 0; e < edges; e++)
        UNROLL for (int v = 0; v < vectors; v++) store(to + e * width + n + v * LANES, sum[e][v]);
}

INLINE void project_rows(int edges, const stored *const *row, const real *const *features, const struct pair_extras *extras,
                         int64_t width, real *to)
{
    int64_t n = 0;
    for (; n + TILE * LANES <= width; n += TILE * LANES) project_tile(edges, TILE, row, features, extras, width, n, to);
    for (; n < width; n += LANES) project_tile(edges, 1, row, features, extras, width, n, to);
}

/* Fills the buffer with the block's rows + W a, and makes `projected` a block of its rows. */
NOINLINE void project_edges(int64_t heads, int64_t width, const struct block *block, const struct block_numbers *edge,
                            const stored *rows, const struct pair_extras *extras, struct block *projected)
{
    const int64_t count = block->count;
    const stored *row[4];
    const real *features[4];
    for (int64_t b = 0; b < count; b++) prefetch_row(features_of(extras, number_at(block, edge, b)));
    int64_t b = 0;
    for (; b + 4 <= count; b += 4) {
        for (int64_t e = 0; e < 4; e++) {
            row[e] = rows + edge_at(block, b + e) * width;
            features[e] = reals_of(extras, number_at(block, edge, b + e), b + e);
        }
        project_rows(4, row, features, extras, width, extras->projected + b * width);
    }
    for (; b < count; b++) {
        row[0] = rows + edge_at(block, b) * width;
        features[0] = reals_of(extras, number_at(block, edge, b), b);
        project_rows(1, row, features, extras, width, extras->projected + b * width);
    }
    const int64_t group = edges_per_vector(heads);
    projected->slot = extras->identity;
    projected->count = count;
    projected->own = 0;
    projected->whole = count - count % group;
    for (int64_t l = 0; l < group; l++)
        projected->tail[l] = (int32_t)(projected->whole + l < count ? projected->whole + l : count - 1);
}

/* With d_ij in `weight`: adds Σ a_ij s_ij to grad_weight [edge_dim, heads · depth] and writes the gradients of the features. */
NOINLINE void add_edge_gradients(int64_t heads, int64_t depth, const struct block *block, const struct block_numbers *edge,
                                 const real *fixed, const real *weight, real slope, const struct pair_extras *extras,
                                 real *grad_weight)
{
    const int64_t count = block->count, width = heads * depth, padded = extras->padded;
    for (int64_t b = 0; b < count; b++)
        for (int64_t h = 0; h < heads; h++) {
            const vec d = splat(weight[b * heads + h]);
            real *row = extras->projected + b * width;
            for (int64_t c = h * depth; c < (h + 1) * depth; c += LANES)
                store(row + c, leaky_slope(load(fixed + c) + load(row + c), d, slope));
        }
    for (int64_t b = 0; b < count; b++) {
        real *to = extras->inputs + b * padded;
        const real *row = reals_of(extras, number_at(block, edge, b), b);
        if (row != to) memcpy(to, row, (size_t)extras->edge_dim * sizeof *to);
        for (int64_t c = extras->edge_dim; c < padded; c++) to[c] = 0;
    }
    const struct product sums = {.x = extras->inputs,
                                 .y = extras->projected,
                                 .to = grad_weight,
                                 .x_row = 1,
                                 .x_column = padded,
                                 .y_row = width,
                                 .to_row = width,
                                 .inner = count};
    add_product(&sums, extras->edge_dim, width);
    if (!extras->back_weight) return;
    for (int64_t n = 0; n < count * padded; n += LANES) store(extras->inputs + n, splat(0));
    const struct product back = {.x = extras->projected,
                                 .y = extras->back_weight,
                                 .to = extras->inputs,
                                 .x_row = width,
                                 .x_column = 1,
                                 .y_row = padded,
                                 .to_row = padded,
                                 .inner = width};
    add_product(&back, count, padded);
    for (int64_t b = 0; b < count; b++)
        write_row(extras->edge_dim, extras->inputs + b * padded, grad_features_of(extras, number_at(block, edge, b)));
}

#endif
