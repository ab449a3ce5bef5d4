/* Attention with the score of GATv2, row by row and column by column.
 *
 * Dropout multiplies the weights of the sums by f_ij = 0 or 1 / (1 − p): d_ij = γ_ij (f_ij g_i · v_j − D_i).
 */
#ifndef LCAT_GATV2_ROWS_H
#define LCAT_GATV2_ROWS_H

#include "edge_projection.h"

#define ROWS_PER_BLOCK 64 /* at least */
#define MAX_BLOCKS 1024

INLINE void gatv2_forward_row(int64_t heads, int64_t depth, int64_t channels, struct edges edges, const real *q, const stored *k,
                              const stored *v, const real *att, real slope, const struct pair_extras *extras,
                              struct numbers numbers, real *out, real *shift, real *scale)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real t[BLOCK + LANES], factors[BLOCK + LANES], lanes[MAX_HEADS], sum_lanes[MAX_HEADS], old[MAX_HEADS], sum[MAX_HEADS];
    struct block block, projected;
    struct block_numbers edge;
    const int dropped = extras->dropout.on;

    for (int64_t h = 0; h < heads; h++) {
        shift[h] = LOWEST;
        sum[h] = 0;
    }
    for (int64_t c = 0; c < width; c++) out[c] = 0;
    while (next_pairs(&edges, heads, extras, &block)) {
        if (extras->numbered) next_numbers(&numbers, heads, &block, &edge);
        const int64_t items = block.count * heads;
        prefetch_block(&block, k, heads * depth);
        if (k != v) prefetch_block(&block, v, width);
        if (extras->features) {
            project_edges(heads, heads * depth, &block, &edge, k, extras, &projected);
            pair_scores_of_reals(heads, &projected, depth, q, extras->projected, att, slope, t);
        } else {
            pair_scores(heads, &block, depth, q, k, att, slope, t);
        }
        if (dropped) dropout_factors(heads, &extras->dropout, &block, &edge, factors);
        for (int64_t n = items; n < items + LANES; n++) t[n] = t[n - heads];
        for (int64_t part = 0; part < repeat; part += LANES) {
            vec top = splat(LOWEST);
            for (int64_t n = part; n < items; n += repeat) top = larger(top, load(t + n));
            store(lanes + part, top);
        }
        for (int64_t h = 0; h < heads; h++) old[h] = shift[h];
        fold_max(heads, lanes, shift);
        for (int64_t h = 0; h < heads; h++) {
            if (old[h] == shift[h] || old[h] == LOWEST) continue;
            const real factor = exponential(splat(old[h] - shift[h]))[0];
            sum[h] *= factor;
            for (int64_t c = h * channels; c < (h + 1) * channels; c++) out[c] *= factor;
        }
        spread(heads, shift, lanes);
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec shift_part = load(lanes + part);
            vec total = splat(0);
            for (int64_t n = part; n < items; n += repeat) {
                const vec y = only_edges(&block, heads, n, exponential(load(t + n) - shift_part));
                total += y;
                store(t + n, dropped ? y * load(factors + n) : y);
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, sum);
        const struct row_sum rows = {.heads = heads, .channels = channels, .rows = v, .weight = t, .sum = out};
        add_block(add_weighted_rows, rows, &block);
    }
    for (int64_t h = 0; h < heads; h++) {
        scale[h] = 1 / (sum[h] < TINY ? TINY : sum[h]);
        for (int64_t c = h * channels; c < (h + 1) * channels; c++) out[c] *= scale[h];
    }
}

/* Turns the sums of d_ij (per head) and of d_ij where a channel is positive (in grad) into the gradients of features and att. */
INLINE void add_slopes(int64_t heads, int64_t depth, real slope, const real *sum, const real *features, const real *att, real *grad,
                       real *grad_att)
{
    for (int64_t h = 0; h < heads; h++)
        for (int64_t c = h * depth; c < (h + 1) * depth; c++) {
            const real slopes = slope * sum[h] + (1 - slope) * grad[c];
            grad[c] = slopes * att[c];
            grad_att[c] += slopes * features[c];
        }
}

/* `node` holds shift, scale and D of every destination, side by side. */
INLINE void gatv2_backward_row(int64_t heads, int64_t depth, int64_t channels, struct edges edges, const real *node, const real *q,
                               const stored *k, const stored *v, const real *att, const real *grad, real slope, const struct pair_extras *extras, struct numbers numbers, real *grad_q, real *grad_att,
                               real *grad_weight)
{
    const int64_t width = heads * depth, repeat = period(heads);
    real t[BLOCK + LANES], d[BLOCK + LANES], factors[BLOCK + LANES], lanes[3 * MAX_HEADS], sum_lanes[MAX_HEADS], sum[MAX_HEADS];
    struct block block, projected;
    struct block_numbers edge;
    const int dropped = extras->dropout.on, with_features = extras->features != 0;

    for (int64_t n = 0; n < 3; n++) spread(heads, node + n * heads, lanes + n * MAX_HEADS);
    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    for (int64_t c = 0; c < width; c++) grad_q[c] = 0;
    while (next_pairs(&edges, heads, extras, &block)) {
        if (extras->numbered) next_numbers(&numbers, heads, &block, &edge);
        prefetch_block(&block, k, width);
        if (k != v) prefetch_block(&block, v, heads * channels);
        if (with_features) {
            project_edges(heads, width, &block, &edge, k, extras, &projected);
            pair_scores_of_reals(heads, &projected, depth, q, extras->projected, att, slope, t);
        } else {
            pair_scores(heads, &block, depth, q, k, att, slope, t);
        }
        if (extras->grad_gamma)
            copy_edges(heads, &block, &edge, extras->grad_gamma, d);
        else
            pair_products(heads, &block, channels, grad, v, d);
        if (dropped) dropout_factors(heads, &extras->dropout, &block, &edge, factors);
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec shift = load(lanes + part), scale = load(lanes + MAX_HEADS + part), mean = load(lanes + 2 * MAX_HEADS + part);
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += repeat) {
                vec product = load(d + n);
                if (dropped) product *= load(factors + n);
                const vec y = exponential(load(t + n) - shift) * scale * (product - mean);
                store(d + n, y);
                total += only_edges(&block, heads, n, y);
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, sum);
        struct row_sum rows = {.heads = heads, .channels = depth, .rows = k, .weight = d, .fixed = q, .sum = grad_q};
        if (with_features) {
            rows.reals = extras->projected;
            add_block(add_positive_reals, rows, &projected);
            add_edge_gradients(heads, depth, &block, &edge, q, d, slope, extras, grad_weight);
        } else {
            add_block(add_positive_rows, rows, &block);
        }
    }
    add_slopes(heads, depth, slope, sum, q, att, grad_q, grad_att);
}

INLINE void gatv2_backward_column(int64_t heads, int64_t depth, int64_t channels, struct edges edges, const real *node,
                                  const stored *q, const real *k, const real *v, const real *att, const stored *grad, real slope,
                                  const struct pair_extras *extras, struct numbers numbers, real *grad_k,
                                  real *grad_v, real *grad_att)
{
    const int64_t repeat = period(heads);
    real p[BLOCK + LANES], d[BLOCK + LANES], factors[BLOCK + LANES], sum_lanes[MAX_HEADS], sum[MAX_HEADS];
    struct block block, projected;
    struct block_numbers edge;
    const int dropped = extras->dropout.on, with_features = extras->features != 0;

    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    for (int64_t c = 0; c < heads * depth; c++) grad_k[c] = 0;
    for (int64_t c = 0; c < heads * channels; c++) grad_v[c] = 0;
    while (next_pairs(&edges, heads, extras, &block)) {
        if (extras->numbered) next_numbers(&numbers, heads, &block, &edge);
        prefetch_block(&block, q, heads * depth);
        prefetch_block(&block, grad, heads * channels);
        if (with_features) {
            project_edges(heads, heads * depth, &block, &edge, q, extras, &projected);
            pair_scores_of_reals(heads, &projected, depth, k, extras->projected, att, slope, p);
        } else {
            pair_scores(heads, &block, depth, k, q, att, slope, p);
        }
        if (extras->grad_gamma)
            copy_edges(heads, &block, &edge, extras->grad_gamma, d);
        else
            pair_products(heads, &block, channels, v, grad, d);
        if (dropped) dropout_factors(heads, &extras->dropout, &block, &edge, factors);
        for (int64_t part = 0; part < repeat; part += LANES) {
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                const vec shift = gather(heads, part, index, node, 3 * heads);
                const vec scale = gather(heads, part, index, node + heads, 3 * heads);
                const vec mean = gather(heads, part, index, node + 2 * heads, 3 * heads);
                const vec y = exponential(load(p + n) - shift) * scale;
                vec product = load(d + n);
                if (dropped) product *= load(factors + n);
                const vec z = only_edges(&block, heads, n, y * (product - mean));
                store(p + n, dropped ? y * load(factors + n) : y);
                store(d + n, z);
                total += z;
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, sum);
        const struct row_sum values = {.heads = heads, .channels = channels, .rows = grad, .weight = p, .sum = grad_v};
        if (!extras->grad_gamma) add_block(add_weighted_rows, values, &block);
        const struct row_sum slopes = {.heads = heads,
                                       .channels = depth,
                                       .rows = q,
                                       .reals = extras->projected,
                                       .weight = d,
                                       .fixed = k,
                                       .sum = grad_k};
        if (with_features)
            add_block(add_positive_reals, slopes, &projected);
        else
            add_block(add_positive_rows, slopes, &block);
    }
    add_slopes(heads, depth, slope, sum, k, att, grad_k, grad_att);
}

/* Both passes in one for a node of a symmetric graph whose queries are its keys: then e_ij = e_ji, the destinations of j are its
 * sources, and the gradients of q_i and k_i are added up. `node` holds shift, scale and D of all nodes, `mine` of this one. */
INLINE void gatv2_backward_node(int64_t heads, int64_t depth, int64_t channels, struct edges edges, const real *node,
                                const real *mine, const stored *x, const real *my_x, const stored *v, const real *my_v,
                                const real *att, const stored *grad, const real *my_grad, real slope, const struct dropout *dropout, struct numbers as_row_numbers, struct numbers as_col_numbers,
                                real *grad_x, real *grad_v, real *grad_att)
{
    const int64_t width = heads * depth, value_width = heads * channels, repeat = period(heads);
    real t[BLOCK + LANES], as_row[BLOCK + LANES], as_col[BLOCK + LANES];
    real row_factors[BLOCK + LANES], col_factors[BLOCK + LANES], lanes[3 * MAX_HEADS], sum_lanes[MAX_HEADS], sum[MAX_HEADS];
    struct block block;
    struct block_numbers edge;
    const int dropped = dropout->on;

    for (int64_t n = 0; n < 3; n++) spread(heads, mine + n * heads, lanes + n * MAX_HEADS);
    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    for (int64_t c = 0; c < width; c++) grad_x[c] = 0;
    for (int64_t c = 0; c < value_width; c++) grad_v[c] = 0;
    while (next_block(&edges, heads, &block)) {
        prefetch_block(&block, x, width);
        if (x != v) prefetch_block(&block, v, value_width);
        prefetch_block(&block, grad, value_width);
        if (dropped) {
            next_numbers(&as_row_numbers, heads, &block, &edge);
            dropout_factors(heads, dropout, &block, &edge, row_factors);
            next_numbers(&as_col_numbers, heads, &block, &edge);
            dropout_factors(heads, dropout, &block, &edge, col_factors);
        }
        pair_scores(heads, &block, depth, my_x, x, att, slope, t);
        pair_products(heads, &block, channels, my_grad, v, as_row);
        pair_products(heads, &block, channels, my_v, grad, as_col);
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec shift = load(lanes + part), scale = load(lanes + MAX_HEADS + part), mean = load(lanes + 2 * MAX_HEADS + part);
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                const vec shift_j = gather(heads, part, index, node, 3 * heads);
                const vec scale_j = gather(heads, part, index, node + heads, 3 * heads);
                const vec mean_j = gather(heads, part, index, node + 2 * heads, 3 * heads);
                const vec e = load(t + n);
                const vec gamma_ij = exponential(e - shift) * scale, gamma_ji = exponential(e - shift_j) * scale_j;
                vec product = load(as_row + n), product_j = load(as_col + n);
                if (dropped) {
                    product *= load(row_factors + n);
                    product_j *= load(col_factors + n);
                }
                const vec both = gamma_ij * (product - mean) + gamma_ji * (product_j - mean_j);
                store(as_row + n, both);
                store(as_col + n, dropped ? gamma_ji * load(col_factors + n) : gamma_ji);
                total += only_edges(&block, heads, n, both);
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, sum);
        const struct row_sum values = {.heads = heads, .channels = channels, .rows = grad, .weight = as_col, .sum = grad_v};
        add_block(add_weighted_rows, values, &block);
        const struct row_sum slopes = {.heads = heads, .channels = depth, .rows = x, .weight = as_row, .fixed = my_x, .sum = grad_x};
        add_block(add_positive_rows, slopes, &block);
    }
    add_slopes(heads, depth, slope, sum, my_x, att, grad_x, grad_att);
}

/* How many nodes a block has: enough that the sums of the blocks take little memory. grad_att is summed within blocks, then over the
 * blocks in order, so that the result does not depend on the number of threads. */
static int64_t nodes_per_block(int64_t nodes)
{
    const int64_t least = (nodes + MAX_BLOCKS - 1) / MAX_BLOCKS;
    return least < ROWS_PER_BLOCK ? ROWS_PER_BLOCK : least;
}

static void sum_blocks(int64_t blocks, int64_t width, const real *partial, real *sum)
{
    for (int64_t c = 0; c < width; c++) {
        double total = 0;
        for (int64_t block = 0; block < blocks; block++) total += (double)partial[block * width + c];
        sum[c] = (real)total;
    }
}

/* What a column gathers from destination i: shift, scale and D, side by side. `room` is for the rows of out and grad. */
INLINE void fill_node(int64_t i, int64_t heads, int64_t channels, const stored *out, const real *shift, const real *scale,
                      const stored *grad, real *node, real *room)
{
    const int64_t width = heads * channels;
    const real *my_out = as_reals(width, out + i * width, room), *my_grad = as_reals(width, grad + i * width, room + width);
    for (int64_t h = 0; h < heads; h++) {
        real *to = node + i * 3 * heads + h;
        to[0] = shift[i * heads + h];
        to[heads] = scale[i * heads + h];
        to[2 * heads] = dot(channels, my_grad + h * channels, my_out + h * channels);
    }
}

#endif
