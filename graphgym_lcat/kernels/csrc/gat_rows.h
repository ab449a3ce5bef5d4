/* Attention with the score of GAT, row by row and column by column. `train` is a constant where these are called.
 *
 * Dropout multiplies the weights of the sums by 0 or 1 / (1 − p), not the sums of the coefficients themselves: the gradient of the
 * score is γ_ij (f_ij g_i · v_j − D_i).
 */
#ifndef LCAT_GAT_ROWS_H
#define LCAT_GAT_ROWS_H

#include "extras.h"

INLINE void gat_forward_row(int64_t heads, int64_t channels, int train, struct edges edges, const real *q, const real *k,
                            int64_t k_stride, const stored *v, real slope, const struct extras *extras,
                            struct numbers numbers, real *out, real *shift, real *scale, real *positive_out, real *positive_sum)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real t[BLOCK + LANES], p[BLOCK + LANES], positive[BLOCK + LANES], factors[BLOCK + LANES];
    real q_lanes[MAX_HEADS], lanes[MAX_HEADS], sum_lanes[MAX_HEADS], positive_lanes[MAX_HEADS], old[MAX_HEADS], sum[MAX_HEADS];
    struct block block;
    struct block_numbers edge;
    const real *term = extras->term;
    const int dropped = extras->dropout.on;

    spread(heads, q, q_lanes);
    for (int64_t h = 0; h < heads; h++) {
        shift[h] = LOWEST;
        sum[h] = 0;
        if (train) positive_sum[h] = 0;
    }
    for (int64_t c = 0; c < width; c++) {
        out[c] = 0;
        if (train) positive_out[c] = 0;
    }
    while (next_block(&edges, heads, &block)) {
        const int64_t items = block.count * heads;
        if (term || dropped) next_numbers(&numbers, heads, &block, &edge);
        if (term) prefetch_edges(&block, &edge, term, heads);
        if (dropped) dropout_factors(heads, &extras->dropout, &block, &edge, factors);
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec q_part = load(q_lanes + part);
            vec top = splat(LOWEST);
            for (int64_t n = part; n < items; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                if (part == 0)
                    for (int64_t b = 0; b < edges_per_vector(heads); b++) prefetch_row(v + index[b] * width);
                vec x = gather(heads, part, index, k, k_stride) + q_part;
                if (term) x += gather_edges(heads, part, n, &block, &edge, term);
                store(t + n, x);
                top = larger(top, leaky(x, slope));
            }
            store(lanes + part, top);
        }
        int grown = 0;
        for (int64_t h = 0; h < heads; h++) old[h] = shift[h];
        fold_max(heads, lanes, shift);
        for (int64_t h = 0; h < heads; h++) grown |= (old[h] != shift[h]) & (old[h] != LOWEST);
        if (grown)
            for (int64_t h = 0; h < heads; h++) {
                const real factor = exponential(splat(old[h] - shift[h]))[0];
                sum[h] *= factor;
                if (train) positive_sum[h] *= factor;
                for (int64_t c = h * channels; c < (h + 1) * channels; c++) {
                    out[c] *= factor;
                    if (train) positive_out[c] *= factor;
                }
            }
        spread(heads, shift, lanes);
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec shift_part = load(lanes + part);
            vec total = splat(0), positive_total = splat(0);
            for (int64_t n = part; n < items; n += repeat) {
                vec x = load(t + n);
                vec y = only_edges(&block, heads, n, exponential(leaky(x, slope) - shift_part));
                total += y;
                if (train) positive_total += keep(x > 0, y);
                if (dropped) y *= load(factors + n);
                store(p + n, y);
                if (train) store(positive + n, keep(x > 0, y));
            }
            store(sum_lanes + part, total);
            store(positive_lanes + part, positive_total);
        }
        fold_sum(heads, sum_lanes, sum);
        struct row_sum rows = {.heads = heads, .channels = channels, .rows = v, .weight = p, .sum = out};
        if (train) {
            fold_sum(heads, positive_lanes, positive_sum);
            rows.other_weight = positive;
            rows.other_sum = positive_out;
            add_block(add_twice_weighted_rows, rows, &block);
        } else {
            add_block(add_weighted_rows, rows, &block);
        }
    }
    for (int64_t h = 0; h < heads; h++) {
        const real factor = 1 / (sum[h] < TINY ? TINY : sum[h]);
        scale[h] = factor;
        if (train) positive_sum[h] *= factor;
        for (int64_t c = h * channels; c < (h + 1) * channels; c++) {
            out[c] *= factor;
            if (train) positive_out[c] *= factor;
        }
    }
}

/* `node` holds what a column needs to know about its destinations, side by side: q, shift, scale, D. */
INLINE void gat_backward_column(int64_t heads, int64_t channels, struct edges edges, const real *node, const real *k,
                                const real *v, const stored *grad, real slope, const struct extras *extras,
                                struct numbers numbers, real *grad_k, real *grad_v, real *positive_grad)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real p[BLOCK + LANES], positive[BLOCK + LANES], factors[BLOCK + LANES];
    real k_lanes[MAX_HEADS], sum_lanes[MAX_HEADS], positive_lanes[MAX_HEADS], sum[MAX_HEADS], positive_sum[MAX_HEADS];
    struct block block;
    struct block_numbers edge;
    const int dropped = extras->dropout.on;

    spread(heads, k, k_lanes);
    for (int64_t h = 0; h < heads; h++) sum[h] = positive_sum[h] = 0;
    for (int64_t c = 0; c < width; c++) grad_v[c] = positive_grad[c] = 0;
    while (next_block(&edges, heads, &block)) {
        const int64_t items = block.count * heads;
        if (dropped) {
            next_numbers(&numbers, heads, &block, &edge);
            dropout_factors(heads, &extras->dropout, &block, &edge, factors);
        }
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec k_part = load(k_lanes + part);
            vec total = splat(0), positive_total = splat(0);
            for (int64_t n = part; n < items; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                if (part == 0)
                    for (int64_t b = 0; b < edges_per_vector(heads); b++) prefetch_row(grad + index[b] * width);
                const vec x = gather(heads, part, index, node, 4 * heads) + k_part;
                const vec shift = gather(heads, part, index, node + heads, 4 * heads);
                const vec scale = gather(heads, part, index, node + 2 * heads, 4 * heads);
                const vec d = gather(heads, part, index, node + 3 * heads, 4 * heads);
                vec y = only_edges(&block, heads, n, exponential(leaky(x, slope) - shift) * scale);
                total += y * d;
                positive_total += keep(x > 0, y) * d;
                if (dropped) y *= load(factors + n);
                store(p + n, y);
                store(positive + n, keep(x > 0, y));
            }
            store(sum_lanes + part, total);
            store(positive_lanes + part, positive_total);
        }
        fold_sum(heads, sum_lanes, sum);
        fold_sum(heads, positive_lanes, positive_sum);
        const struct row_sum rows = {.heads = heads, .channels = channels, .rows = grad, .weight = p, .other_weight = positive,
                                     .sum = grad_v, .other_sum = positive_grad};
        add_block(add_twice_weighted_rows, rows, &block);
    }
    for (int64_t h = 0; h < heads; h++) {
        const real all = dot(channels, v + h * channels, grad_v + h * channels) - sum[h];
        const real over = dot(channels, v + h * channels, positive_grad + h * channels) - positive_sum[h];
        grad_k[h] = slope * all + (1 - slope) * over;
    }
}

/* Computes what the forward pass may have kept. */
INLINE void gat_positive_row(int64_t heads, int64_t channels, struct edges edges, const real *q, const real *k, int64_t k_stride,
                             const stored *v, real slope, const struct extras *extras, struct numbers numbers,
                             const real *shift, const real *scale, real *positive_out, real *positive_sum)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real p[BLOCK + LANES], factors[BLOCK + LANES], lanes[3 * MAX_HEADS], sum_lanes[MAX_HEADS];
    struct block block;
    struct block_numbers edge;
    const int dropped = extras->dropout.on;

    spread(heads, q, lanes);
    spread(heads, shift, lanes + MAX_HEADS);
    spread(heads, scale, lanes + 2 * MAX_HEADS);
    for (int64_t h = 0; h < heads; h++) positive_sum[h] = 0;
    for (int64_t c = 0; c < width; c++) positive_out[c] = 0;
    while (next_block(&edges, heads, &block)) {
        if (dropped) {
            next_numbers(&numbers, heads, &block, &edge);
            dropout_factors(heads, &extras->dropout, &block, &edge, factors);
        }
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec q_part = load(lanes + part), shift_part = load(lanes + MAX_HEADS + part), scale_part = load(lanes + 2 * MAX_HEADS + part);
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                if (part == 0)
                    for (int64_t b = 0; b < edges_per_vector(heads); b++) prefetch_row(v + index[b] * width);
                const vec x = gather(heads, part, index, k, k_stride) + q_part;
                vec y = only_edges(&block, heads, n, keep(x > 0, exponential(leaky(x, slope) - shift_part) * scale_part));
                total += y;
                if (dropped) y *= load(factors + n);
                store(p + n, y);
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, positive_sum);
        const struct row_sum rows = {.heads = heads, .channels = channels, .rows = v, .weight = p, .sum = positive_out};
        add_block(add_weighted_rows, rows, &block);
    }
}

#endif
