/* The attention adjacency, w_ij = n_i γ_ij, γ the softmax of scores over the n_i in-edges of i.
 *
 * The weights stand edge by edge in the order of the rows, [edges, heads]. With grad the gradient of w, that of a score is
 *   w_ij (grad_ij − Σ_j w_ij grad_ij / n_i).
 *
 * Heads are 1, 2, 4 or a multiple of 8 up to 64. The caller pads.
 */
#ifndef LCAT_ADJACENCY_H
#define LCAT_ADJACENCY_H

#include "block.h"

#define VECTORS_PER_SUM 64 /* sums of blocks, then of their sums: long rows lose little to rounding */

/* Vectors over (edge, head) that may end within one. */
INLINE vec load_some(const real *p, int64_t lanes)
{
    real some[LANES] = {0};
    if (lanes >= LANES) return load(p);
    memcpy(some, p, (size_t)lanes * sizeof *p);
    return load(some);
}

INLINE void store_some(real *p, int64_t lanes, vec v)
{
    if (lanes >= LANES)
        store(p, v);
    else
        memcpy(p, &v, (size_t)lanes * sizeof *p);
}

/* The scores [n, heads] of a row, whose largest are `top`, become n times their softmax. */
INLINE void scores_to_weights(const int64_t heads, int64_t n, const real *top, real *weight)
{
    const int64_t items = n * heads, repeat = period(heads);
    real lanes[MAX_HEADS], sum_lanes[MAX_HEADS], sum[MAX_HEADS];

    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    spread(heads, top, lanes);
    for (int64_t part = 0; part < repeat; part += LANES) {
        const vec shift = load(lanes + part);
        vec total = splat(0);
        for (int64_t m = part; m < items;) {
            vec block_total = splat(0);
            for (const int64_t end = m + VECTORS_PER_SUM * repeat; m < items && m < end; m += repeat) {
                vec y = exponential(load_some(weight + m, items - m) - shift);
                if (m + LANES > items) y = keep(first_lanes(items - m), y);
                block_total += y;
                store_some(weight + m, items - m, y);
            }
            total += block_total;
        }
        store(sum_lanes + part, total);
    }
    fold_sum(heads, sum_lanes, sum);
    for (int64_t h = 0; h < heads; h++) sum[h] = (real)n / (sum[h] < TINY ? TINY : sum[h]);
    spread(heads, sum, lanes);
    for (int64_t part = 0; part < repeat; part += LANES) {
        const vec scale = load(lanes + part);
        for (int64_t m = part; m < items; m += repeat)
            store_some(weight + m, items - m, load_some(weight + m, items - m) * scale);
    }
}

/* mean[h] = Σ_j w_ij grad_ij / n, which the gradient of every score of the row contains. */
INLINE void mean_gradient(const int64_t heads, int64_t n, const real *weight, const real *grad, real *mean)
{
    const int64_t items = n * heads, repeat = period(heads);
    real lanes[MAX_HEADS];

    for (int64_t h = 0; h < heads; h++) mean[h] = 0;
    for (int64_t part = 0; part < repeat; part += LANES) {
        vec total = splat(0);
        for (int64_t m = part; m < items;) {
            vec block_total = splat(0);
            for (const int64_t end = m + VECTORS_PER_SUM * repeat; m < items && m < end; m += repeat)
                block_total += load_some(weight + m, items - m) * load_some(grad + m, items - m);
            total += block_total;
        }
        store(lanes + part, total);
    }
    fold_sum(heads, lanes, mean);
    for (int64_t h = 0; h < heads; h++) mean[h] /= (real)(n ? n : 1);
}

#endif
