/* Attention with the score of GAT, e_ij = LeakyReLU(q_i + k_j): one pass over the edges forward and one backward.
 *
 * What belongs to edges lives in blocks on the stack. Kept for the backward pass, per node:
 *   shift, scale  γ_ij = exp(e_ij − shift_i) · scale_i
 *   positive_out  Σ_j γ_ij v_j over the j with q_i + k_j > 0
 *   positive_sum  Σ_j γ_ij over the same j
 * The last two may be omitted and computed again, which saves a tensor as large as the output but costs a pass over the edges.
 *
 * With D_i = g_i · out_i the gradient of the score is γ_ij (g_i · v_j − D_i), and LeakyReLU' = slope + (1 − slope) [q_i + k_j > 0].
 * Summed over j the first part vanishes (γ_i sums to one), which leaves
 *   grad q_i = (1 − slope) (g_i · positive_out_i − D_i positive_sum_i).
 * Summed over i the product with v_j comes out of the sum: Σ_i γ_ij g_i, which is the gradient of v_j, and its positive part
 * give the gradient of k_j, without a product per edge.
 *
 * Heads are 1, 2, 4 or a multiple of 8 up to 64; channels are a multiple of 8. The caller pads.
 */
#include <stdlib.h>

#include "block.h"

INLINE void gat_forward_row(int64_t heads, int64_t channels, int train, struct edges edges, const real *q, const real *k,
                            int64_t k_stride, const real *v, real slope, real *out, real *shift, real *scale, real *positive_out,
                            real *positive_sum)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real t[BLOCK + LANES], p[BLOCK + LANES], positive[BLOCK + LANES];
    real q_lanes[MAX_HEADS], lanes[MAX_HEADS], sum_lanes[MAX_HEADS], positive_lanes[MAX_HEADS], old[MAX_HEADS], sum[MAX_HEADS];
    struct block block;

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
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec q_part = load(q_lanes + part);
            vec top = splat(LOWEST);
            for (int64_t n = part; n < items; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                if (part == 0)
                    for (int64_t b = 0; b < edges_per_vector(heads); b++) prefetch_row(v + index[b] * width);
                vec x = gather(heads, part, index, k, k_stride) + q_part;
                store(t + n, x);
                top = larger(top, leaky(x, slope));
            }
            store(lanes + part, top);
        }
        int grown = 0;
        for (int64_t h = 0; h < heads; h++) old[h] = shift[h];
        fold_max(heads, lanes, shift);
        for (int64_t h = 0; h < heads; h++) grown |= old[h] != shift[h] && old[h] != LOWEST;
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
                store(p + n, y);
                if (train) {
                    y = keep(x > 0, y);
                    positive_total += y;
                    store(positive + n, y);
                }
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

/* Rows of q and k lie q_stride and k_stride numbers apart. positive_out and positive_sum are NULL when no gradient is needed; shift and scale always have room. */
int EXPORT(gat_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, int64_t heads,
                         int64_t channels, const real *q, int64_t q_stride, const real *k, int64_t k_stride, const real *v,
                         double slope, real *out, real *shift, real *scale, real *positive_out, real *positive_sum, int threads)
{
    const int64_t width = heads * channels;
#define ROW(heads, channels, train)                                                                                           \
    gat_forward_row(heads, channels, train, edges, q + i * q_stride, k, k_stride, v, (real)slope, out + i * width, shift + i * heads,      \
                    scale + i * heads, train ? positive_out + i * width : 0, train ? positive_sum + i * heads : 0)
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        struct edges edges = {col + rowptr[i], col + rowptr[i + 1], i < self_loops ? (int32_t)i : -1};
        if (!positive_out)
            ROW(heads, channels, 0);
        else if (heads == 4)
            ROW(4, channels, 1);
        else
            ROW(heads, channels, 1);
    }
#undef ROW
    return 0;
}

/* `node` holds what a column needs to know about its destinations, side by side: q, shift, scale, D. */
INLINE void gat_backward_column(int64_t heads, int64_t channels, struct edges edges, const real *node, const real *k,
                                const real *v, const real *grad, real slope, real *grad_k, real *grad_v, real *positive_grad)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real p[BLOCK + LANES], positive[BLOCK + LANES];
    real k_lanes[MAX_HEADS], sum_lanes[MAX_HEADS], positive_lanes[MAX_HEADS], sum[MAX_HEADS], positive_sum[MAX_HEADS];
    struct block block;

    spread(heads, k, k_lanes);
    for (int64_t h = 0; h < heads; h++) sum[h] = positive_sum[h] = 0;
    for (int64_t c = 0; c < width; c++) grad_v[c] = positive_grad[c] = 0;
    while (next_block(&edges, heads, &block)) {
        const int64_t items = block.count * heads;
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
                store(p + n, y);
                total += y * d;
                y = keep(x > 0, y);
                store(positive + n, y);
                positive_total += y * d;
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
                             const real *v, real slope, const real *shift, const real *scale, real *positive_out,
                             real *positive_sum)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real p[BLOCK + LANES], lanes[3 * MAX_HEADS], sum_lanes[MAX_HEADS];
    struct block block;

    spread(heads, q, lanes);
    spread(heads, shift, lanes + MAX_HEADS);
    spread(heads, scale, lanes + 2 * MAX_HEADS);
    for (int64_t h = 0; h < heads; h++) positive_sum[h] = 0;
    for (int64_t c = 0; c < width; c++) positive_out[c] = 0;
    while (next_block(&edges, heads, &block)) {
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec q_part = load(lanes + part), shift_part = load(lanes + MAX_HEADS + part), scale_part = load(lanes + 2 * MAX_HEADS + part);
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                if (part == 0)
                    for (int64_t b = 0; b < edges_per_vector(heads); b++) prefetch_row(v + index[b] * width);
                const vec x = gather(heads, part, index, k, k_stride) + q_part;
                const vec y = only_edges(&block, heads, n, keep(x > 0, exponential(leaky(x, slope) - shift_part) * scale_part));
                store(p + n, y);
                total += y;
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, positive_sum);
        const struct row_sum rows = {.heads = heads, .channels = channels, .rows = v, .weight = p, .sum = positive_out};
        add_block(add_weighted_rows, rows, &block);
    }
}

/* positive_out and positive_sum are NULL if they were not kept. Returns 0, or 1 if there is no memory. */
int EXPORT(gat_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr, const int32_t *row, int64_t self_loops, int64_t heads,
                         int64_t channels, const real *q, int64_t q_stride, const real *k, int64_t k_stride, const real *v,
                         double slope, const real *out, const real *shift, const real *scale, const real *positive_out, const real *positive_sum,
                         const real *grad, real *grad_q, real *grad_k, real *grad_v, int threads)
{
    const int64_t width = heads * channels;
    real *node = malloc(((size_t)rows * 4 * heads + (size_t)threads * width + 1) * sizeof *node);
    if (!node) return 1;
    real *workspace = node + rows * 4 * heads;

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *positive_grad, computed_sum[MAX_HEADS];
#pragma omp critical
        {
            positive_grad = workspace;
            workspace += width;
        }
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++) {
            const real *my_out = positive_out ? positive_out + i * width : positive_grad;
            const real *my_sum = positive_sum ? positive_sum + i * heads : computed_sum;
            if (!positive_out) {
                const struct edges edges = {col + rowptr[i], col + rowptr[i + 1], i < self_loops ? (int32_t)i : -1};
                gat_positive_row(heads, channels, edges, q + i * q_stride, k, k_stride, v, (real)slope, shift + i * heads,
                                 scale + i * heads, positive_grad, computed_sum);
            }
            real *to = node + i * 4 * heads;
            for (int64_t h = 0; h < heads; h++) {
                const int64_t c = i * width + h * channels, n = i * heads + h;
                const real d = dot(channels, grad + c, out + c);
                to[h] = q[i * q_stride + h];
                to[heads + h] = shift[n];
                to[2 * heads + h] = scale[n];
                to[3 * heads + h] = d;
                grad_q[n] = (1 - (real)slope) * (dot(channels, grad + c, my_out + h * channels) - d * my_sum[h]);
            }
        }
#define COLUMN(heads)                                                                                                         \
    gat_backward_column(heads, channels, edges, node, k + j * k_stride, v + j * width, grad, (real)slope, grad_k + j * heads,    \
                        grad_v + j * width, positive_grad)
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t j = 0; j < cols; j++) {
            struct edges edges = {row + colptr[j], row + colptr[j + 1], j < self_loops ? (int32_t)j : -1};
            if (heads == 4)
                COLUMN(4);
            else
                COLUMN(heads);
        }
#undef COLUMN
    }
    free(node);
    return 0;
}
