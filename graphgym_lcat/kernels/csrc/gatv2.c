/* Attention with the score of GATv2, e_ij = att · LeakyReLU(q_i + k_j): one pass over the edges forward, two backward.
 *
 * Kept for the backward pass, per node: γ_ij = exp(e_ij − shift_i) · scale_i. The gradient of the score is
 * d_ij = γ_ij (g_i · v_j − D_i), D_i = g_i · out_i, computed again in both passes (over rows for q, over columns for k and v).
 * LeakyReLU' = slope + (1 − slope) [q_i + k_j > 0], so that both need only sums of d_ij and of d_ij where a channel is positive.
 * Because LeakyReLU(t) = t LeakyReLU'(t) and t = q_i + k_j,
 *   grad att = Σ_i q_i ∘ (grad q_i / att) + Σ_j k_j ∘ (grad k_j / att)
 * follows from the sums per node that the passes have computed.
 *
 * If all edges of the graph go both ways and q = k, one pass serves for both.
 *
 * Heads are 1, 2, 4 or a multiple of 8 up to 64; depth (of q, k) and channels (of v) are multiples of 8. The caller pads.
 */
#include <stdlib.h>

#include "pair_numbers.h"

#define ROWS_PER_BLOCK 64

INLINE void gatv2_forward_row(int64_t heads, int64_t depth, int64_t channels, struct edges edges, const real *q, const real *k,
                              const real *v, const real *att, real slope, real *out, real *shift, real *scale)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real t[BLOCK + LANES], lanes[MAX_HEADS], sum_lanes[MAX_HEADS], old[MAX_HEADS], sum[MAX_HEADS];
    struct block block;

    for (int64_t h = 0; h < heads; h++) {
        shift[h] = LOWEST;
        sum[h] = 0;
    }
    for (int64_t c = 0; c < width; c++) out[c] = 0;
    while (next_block(&edges, heads, &block)) {
        const int64_t items = block.count * heads;
        prefetch_block(&block, k, heads * depth);
        if (k != v) prefetch_block(&block, v, width);
        pair_scores(heads, &block, depth, q, k, att, slope, t);
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
                store(t + n, y);
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

int EXPORT(gatv2_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, int64_t heads,
                           int64_t depth, int64_t channels, const real *q, const real *k, const real *v, const real *att,
                           double slope, real *out, real *shift, real *scale, int threads)
{
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        const struct edges edges = {col + rowptr[i], col + rowptr[i + 1], i < self_loops ? (int32_t)i : -1};
#define CALL(heads)                                                                                                           \
    gatv2_forward_row(heads, depth, channels, edges, q + i * heads * depth, k, v, att, (real)slope, out + i * heads * channels, \
                      shift + i * heads, scale + i * heads)
        BY_HEADS(CALL)
#undef CALL
    }
    return 0;
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
                               const real *k, const real *v, const real *att, const real *grad, real slope, real *grad_q,
                               real *grad_att)
{
    const int64_t width = heads * depth, repeat = period(heads);
    real t[BLOCK + LANES], d[BLOCK + LANES], lanes[3 * MAX_HEADS], sum_lanes[MAX_HEADS], sum[MAX_HEADS];
    struct block block;

    for (int64_t n = 0; n < 3; n++) spread(heads, node + n * heads, lanes + n * MAX_HEADS);
    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    for (int64_t c = 0; c < width; c++) grad_q[c] = 0;
    while (next_block(&edges, heads, &block)) {
        prefetch_block(&block, k, width);
        if (k != v) prefetch_block(&block, v, heads * channels);
        pair_scores(heads, &block, depth, q, k, att, slope, t);
        pair_products(heads, &block, channels, grad, v, d);
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec shift = load(lanes + part), scale = load(lanes + MAX_HEADS + part), mean = load(lanes + 2 * MAX_HEADS + part);
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += repeat) {
                const vec y = exponential(load(t + n) - shift) * scale * (load(d + n) - mean);
                store(d + n, y);
                total += only_edges(&block, heads, n, y);
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, sum);
        const struct row_sum rows = {.heads = heads, .channels = depth, .rows = k, .weight = d, .fixed = q, .sum = grad_q};
        add_block(add_positive_rows, rows, &block);
    }
    add_slopes(heads, depth, slope, sum, q, att, grad_q, grad_att);
}

INLINE void gatv2_backward_column(int64_t heads, int64_t depth, int64_t channels, struct edges edges, const real *node,
                                  const real *q, const real *k, const real *v, const real *att, const real *grad, real slope,
                                  real *grad_k, real *grad_v, real *grad_att)
{
    const int64_t repeat = period(heads);
    real p[BLOCK + LANES], d[BLOCK + LANES], sum_lanes[MAX_HEADS], sum[MAX_HEADS];
    struct block block;

    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    for (int64_t c = 0; c < heads * depth; c++) grad_k[c] = 0;
    for (int64_t c = 0; c < heads * channels; c++) grad_v[c] = 0;
    while (next_block(&edges, heads, &block)) {
        prefetch_block(&block, q, heads * depth);
        prefetch_block(&block, grad, heads * channels);
        pair_scores(heads, &block, depth, k, q, att, slope, p);
        pair_products(heads, &block, channels, v, grad, d);
        for (int64_t part = 0; part < repeat; part += LANES) {
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                const vec shift = gather(heads, part, index, node, 3 * heads);
                const vec scale = gather(heads, part, index, node + heads, 3 * heads);
                const vec mean = gather(heads, part, index, node + 2 * heads, 3 * heads);
                const vec y = exponential(load(p + n) - shift) * scale;
                const vec z = only_edges(&block, heads, n, y * (load(d + n) - mean));
                store(p + n, y);
                store(d + n, z);
                total += z;
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, sum);
        const struct row_sum values = {.heads = heads, .channels = channels, .rows = grad, .weight = p, .sum = grad_v};
        add_block(add_weighted_rows, values, &block);
        const struct row_sum slopes = {.heads = heads, .channels = depth, .rows = q, .weight = d, .fixed = k, .sum = grad_k};
        add_block(add_positive_rows, slopes, &block);
    }
    add_slopes(heads, depth, slope, sum, k, att, grad_k, grad_att);
}

/* Both passes in one for a node of a symmetric graph whose queries are its keys: then e_ij = e_ji, the destinations of j are its
 * sources, and the gradients of q_i and k_i are added up. `node` holds shift, scale and D of all nodes, `mine` of this one. */
INLINE void gatv2_backward_node(int64_t heads, int64_t depth, int64_t channels, struct edges edges, const real *node,
                                const real *mine, const real *x, const real *my_x, const real *v, const real *my_v, const real *att,
                                const real *grad, const real *my_grad, real slope, real *grad_x, real *grad_v, real *grad_att)
{
    const int64_t width = heads * depth, value_width = heads * channels, repeat = period(heads);
    real t[BLOCK + LANES], as_row[BLOCK + LANES], as_col[BLOCK + LANES];
    real lanes[3 * MAX_HEADS], sum_lanes[MAX_HEADS], sum[MAX_HEADS];
    struct block block;

    for (int64_t n = 0; n < 3; n++) spread(heads, mine + n * heads, lanes + n * MAX_HEADS);
    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    for (int64_t c = 0; c < width; c++) grad_x[c] = 0;
    for (int64_t c = 0; c < value_width; c++) grad_v[c] = 0;
    while (next_block(&edges, heads, &block)) {
        prefetch_block(&block, x, width);
        if (x != v) prefetch_block(&block, v, value_width);
        prefetch_block(&block, grad, value_width);
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
                const vec both = gamma_ij * (load(as_row + n) - mean) + gamma_ji * (load(as_col + n) - mean_j);
                store(as_row + n, both);
                store(as_col + n, gamma_ji);
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

/* The number of blocks of nodes. grad_att is summed within them, then over the blocks in order, so that the result does not depend
 * on the number of threads. */
INLINE int64_t blocks_of(int64_t nodes) { return (nodes + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK; }

static void sum_blocks(int64_t blocks, int64_t width, const real *partial, real *sum)
{
    for (int64_t c = 0; c < width; c++) {
        double total = 0;
        for (int64_t block = 0; block < blocks; block++) total += (double)partial[block * width + c];
        sum[c] = (real)total;
    }
}

/* What a column gathers from destination i: shift, scale and D, side by side. */
INLINE void fill_node(int64_t i, int64_t heads, int64_t channels, const real *out, const real *shift, const real *scale,
                      const real *grad, real *node)
{
    for (int64_t h = 0; h < heads; h++) {
        const int64_t c = (i * heads + h) * channels;
        real *to = node + i * 3 * heads + h;
        to[0] = shift[i * heads + h];
        to[heads] = scale[i * heads + h];
        to[2 * heads] = dot(channels, grad + c, out + c);
    }
}

/* For q = k = x and a graph whose edges all go both ways; grad_x is the gradient through both. Returns 0, or 1 if there is no
 * memory. */
int EXPORT(gatv2_backward_symmetric)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, int64_t heads,
                                     int64_t depth, int64_t channels, const real *x, const real *v, const real *att, double slope,
                                     const real *out, const real *shift, const real *scale, const real *grad, real *grad_x,
                                     real *grad_v, real *grad_att, int threads)
{
    const int64_t width = heads * depth, value_width = heads * channels, blocks = blocks_of(rows);
    real *partial = calloc((size_t)(blocks * width + rows * 3 * heads) + 1, sizeof *partial);
    if (!partial) return 1;
    real *node = partial + blocks * width;

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; i++) fill_node(i, heads, channels, out, shift, scale, grad, node);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t block = 0; block < blocks; block++)
            for (int64_t i = block * ROWS_PER_BLOCK; i < rows && i < (block + 1) * ROWS_PER_BLOCK; i++) {
                const struct edges edges = {col + rowptr[i], col + rowptr[i + 1], i < self_loops ? (int32_t)i : -1};
#define CALL(heads)                                                                                                           \
    gatv2_backward_node(heads, depth, channels, edges, node, node + i * 3 * heads, x, x + i * width, v, v + i * value_width,  \
                        att, grad, grad + i * value_width, (real)slope, grad_x + i * width, grad_v + i * value_width,         \
                        partial + block * width)
                BY_HEADS(CALL)
#undef CALL
            }
    }
    sum_blocks(blocks, width, partial, grad_att);
    free(partial);
    return 0;
}

/* Returns 0, or 1 if there is no memory. */
int EXPORT(gatv2_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                           const int32_t *row, int64_t self_loops, int64_t heads, int64_t depth, int64_t channels, const real *q,
                           const real *k, const real *v, const real *att, double slope, const real *out, const real *shift,
                           const real *scale, const real *grad, real *grad_q, real *grad_k, real *grad_v, real *grad_att,
                           int threads)
{
    const int64_t width = heads * depth, value_width = heads * channels;
    const int64_t row_blocks = blocks_of(rows), blocks = row_blocks + blocks_of(cols);
    real *partial = calloc((size_t)(blocks * width + rows * 3 * heads) + 1, sizeof *partial);
    if (!partial) return 1;
    real *node = partial + blocks * width;

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; i++) fill_node(i, heads, channels, out, shift, scale, grad, node);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t block = 0; block < blocks; block++) {
            real *att_part = partial + block * width;
            const int over_rows = block < row_blocks;
            const int64_t first = (over_rows ? block : block - row_blocks) * ROWS_PER_BLOCK, all = over_rows ? rows : cols;
            for (int64_t n = first; n < all && n < first + ROWS_PER_BLOCK; n++) {
                const int64_t *ptr = over_rows ? rowptr : colptr;
                const int32_t *neighbors = over_rows ? col : row;
                const struct edges edges = {neighbors + ptr[n], neighbors + ptr[n + 1], n < self_loops ? (int32_t)n : -1};
                if (over_rows) {
#define CALL(heads)                                                                                                           \
    gatv2_backward_row(heads, depth, channels, edges, node + n * 3 * heads, q + n * width, k, v, att, grad + n * value_width,   \
                       (real)slope, grad_q + n * width, att_part)
                    BY_HEADS(CALL)
#undef CALL
                } else {
#define CALL(heads)                                                                                                           \
    gatv2_backward_column(heads, depth, channels, edges, node, q, k + n * width, v + n * value_width, att, grad, (real)slope,   \
                          grad_k + n * width, grad_v + n * value_width, att_part)
                    BY_HEADS(CALL)
#undef CALL
                }
            }
        }
    }
    sum_blocks(blocks, width, partial, grad_att);
    free(partial);
    return 0;
}
