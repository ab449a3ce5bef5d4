/* The softmax of the scores of a node's edges, block by block. */
#ifndef LCAT_SOFTMAX_H
#define LCAT_SOFTMAX_H

#include "extras.h"

/* Takes a block's scores into shift (the largest so far) and sum (of exp(score − shift)). */
INLINE void add_scores(int64_t heads, const struct block *block, const real *scores, real *shift, real *sum)
{
    const int64_t items = block->count * heads, repeat = period(heads);
    real lanes[MAX_HEADS], old[MAX_HEADS];
    for (int64_t part = 0; part < repeat; part += LANES) {
        vec top = splat(LOWEST);
        for (int64_t n = part; n < items; n += repeat) {
            const vec e = load(scores + n);
            top = larger(top, heads < LANES && n + LANES > items ? choose(first_lanes(items - n), e, splat(LOWEST)) : e);
        }
        store(lanes + part, top);
    }
    for (int64_t h = 0; h < heads; h++) old[h] = shift[h];
    fold_max(heads, lanes, shift);
    for (int64_t h = 0; h < heads; h++)
        if (old[h] != shift[h] && old[h] != LOWEST) sum[h] *= exponential(splat(old[h] - shift[h]))[0];
    spread(heads, shift, lanes);
    for (int64_t part = 0; part < repeat; part += LANES) {
        const vec shift_part = load(lanes + part);
        vec total = splat(0);
        for (int64_t n = part; n < items; n += repeat)
            total += only_edges(block, heads, n, exponential(load(scores + n) - shift_part));
        store(lanes + part, total);
    }
    fold_sum(heads, lanes, sum);
}

/* Turns the scores of a block's edges into coefficients and writes them to `gamma`. */
INLINE void write_coefficients(int64_t heads, const struct block *block, const struct block_numbers *edge,
                               const struct dropout *dropout, const real *shift, const real *scale, real *scores, real *gamma)
{
    const int64_t repeat = period(heads);
    real factors[BLOCK + LANES], shift_lanes[MAX_HEADS], scale_lanes[MAX_HEADS];
    spread(heads, shift, shift_lanes);
    spread(heads, scale, scale_lanes);
    if (dropout->on) dropout_factors(heads, dropout, block, edge, factors);
    for (int64_t part = 0; part < repeat; part += LANES)
        for (int64_t n = part; n < block->count * heads; n += repeat) {
            const vec value = exponential(load(scores + n) - load(shift_lanes + part)) * load(scale_lanes + part);
            store(scores + n, dropout->on ? value * load(factors + n) : value);
        }
    scatter_edges(heads, block, edge, scores, gamma);
}

/* The same for a node of several blocks, whose scores are in `gamma`. */
INLINE void normalize_scores(int64_t heads, struct edges edges, struct numbers numbers, const struct dropout *dropout,
                             const real *shift, const real *scale, real *gamma)
{
    real scores[BLOCK + LANES];
    struct block block;
    struct block_numbers edge;
    while (next_block(&edges, heads, &block)) {
        next_numbers(&numbers, heads, &block, &edge);
        copy_edges(heads, &block, &edge, gamma, scores);
        write_coefficients(heads, &block, &edge, dropout, shift, scale, scores, gamma);
    }
}

/* D_i = Σ_j gamma_ij grad_ij over the edges of a node. */
INLINE void mean_gradient(int64_t heads, struct edges edges, struct numbers numbers, const real *gamma, const real *grad, real *mean)
{
    real lanes[MAX_HEADS];
    struct block block;
    struct block_numbers edge;
    for (int64_t h = 0; h < heads; h++) mean[h] = 0;
    while (next_block(&edges, heads, &block)) {
        next_numbers(&numbers, heads, &block, &edge);
        prefetch_edges(&block, &edge, gamma, heads);
        prefetch_edges(&block, &edge, grad, heads);
        for (int64_t part = 0; part < period(heads); part += LANES) {
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += period(heads))
                total += only_edges(&block, heads, n, gather_edges(heads, part, n, &block, &edge, gamma) *
                                                          gather_edges(heads, part, n, &block, &edge, grad));
            store(lanes + part, total);
        }
        fold_sum(heads, lanes, mean);
    }
}

#endif
