/* Attention with the score of GAT, e_ij = LeakyReLU(q_i + k_j + b_ij), with or without a term b per edge and head, and dropout.
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
 * A term has a gradient per edge and head,
 *   grad b_ij = γ_ij (f_ij g_i · v_j − D_i) LeakyReLU'(q_i + k_j + b_ij),
 * written in the pass over columns. Its sums over rows and over columns are then the gradients of q and k.
 *
 * Heads are 1, 2, 4 or a multiple of 8 up to 64; channels are a multiple of 8. The caller pads. Arrays over edges are in the order of
 * the input, implicit self-loops last; the rows of edges that the layout does not hold are neither read nor written.
 */
#include "gat_rows.h"
#include "pair_numbers.h"

/* Rows of q and k lie q_stride and k_stride numbers apart. positive_out and positive_sum are NULL if there is a term, or when no
 * gradient is needed. */
int EXPORT(gat_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, EXTRA_ARGUMENTS,
                        int64_t heads, int64_t channels, const real *q, int64_t q_stride, const real *k, int64_t k_stride,
                        const stored *v, const real *term, double slope, stored *out, real *shift, real *scale,
                        stored *positive_out, real *positive_sum, int threads)
{
    const int64_t width = heads * channels;
    const struct extras extras = {term, make_dropout(seed, probability)};
    struct rooms rooms = make_rooms(threads, 0, 2 * width);
    if (!rooms.memory) return 1;
    (void)edge_by_col;
#define ROW(heads, train)                                                                                                     \
    gat_forward_row(heads, channels, train, edges_of(col, rowptr, i, self_loops), q + i * q_stride, k, k_stride, v, (real)slope, \
                    &extras, numbers_of(edge_by_row, rowptr, i, edge_count), sums, shift + i * heads, scale + i * heads,      \
                    positive_sums, train ? positive_sum + i * heads : 0)
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *const room = take_room(&rooms);
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++) {
            real *sums = sums_of(out + i * width, room);
            real *positive_sums = positive_out ? sums_of(positive_out + i * width, room + width) : 0;
            if (!positive_out && heads == 4)
                ROW(4, 0);
            else if (!positive_out)
                ROW(heads, 0);
            else if (heads == 4)
                ROW(4, 1);
            else
                ROW(heads, 1);
            write_row(width, sums, out + i * width);
            if (positive_out) write_row(width, positive_sums, positive_out + i * width);
        }
    }
#undef ROW
    free(rooms.memory);
    return 0;
}

/* Gradients of k_j, v_j and of the terms of its edges. `node` holds q, shift, scale and D of all destinations, side by side. */
INLINE void gat_term_column(int64_t heads, int64_t channels, struct edges edges, struct numbers numbers, const struct extras *extras,
                            const real *node, const real *k, const real *v, const stored *grad, real slope, real *grad_k,
                            real *grad_v, real *grad_term)
{
    const int64_t width = heads * channels, repeat = period(heads);
    real p[BLOCK + LANES], d[BLOCK + LANES], factors[BLOCK + LANES], k_lanes[MAX_HEADS], sum_lanes[MAX_HEADS];
    struct block block;
    struct block_numbers edge;

    spread(heads, k, k_lanes);
    for (int64_t h = 0; h < heads; h++) grad_k[h] = 0;
    for (int64_t c = 0; c < width; c++) grad_v[c] = 0;
    while (next_block(&edges, heads, &block)) {
        next_numbers(&numbers, heads, &block, &edge);
        prefetch_block(&block, grad, width);
        prefetch_edges(&block, &edge, extras->term, heads);
        prefetch_written_edges(&block, &edge, grad_term, heads);
        if (extras->dropout.on) dropout_factors(heads, &extras->dropout, &block, &edge, factors);
        pair_products(heads, &block, channels, v, grad, d);
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec k_part = load(k_lanes + part);
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += repeat) {
                const int32_t *index = indices_at(&block, heads, n);
                const vec x = gather(heads, part, index, node, 4 * heads) + k_part +
                              gather_edges(heads, part, n, &block, &edge, extras->term);
                const vec shift = gather(heads, part, index, node + heads, 4 * heads);
                const vec scale = gather(heads, part, index, node + 2 * heads, 4 * heads);
                const vec mean = gather(heads, part, index, node + 3 * heads, 4 * heads);
                const vec gamma = exponential(leaky(x, slope) - shift) * scale;
                const vec factor = extras->dropout.on ? load(factors + n) : splat(1);
                const vec y = leaky_slope(x, gamma * (factor * load(d + n) - mean), slope);
                store(p + n, factor * gamma);
                store(d + n, y);
                total += only_edges(&block, heads, n, y);
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, grad_k);
        scatter_edges(heads, &block, &edge, d, grad_term);
        const struct row_sum rows = {.heads = heads, .channels = channels, .rows = grad, .weight = p, .sum = grad_v};
        add_block(add_weighted_rows, rows, &block);
    }
}

/* With a term, positive_out and positive_sum are not used and grad_term is written; without one, they are NULL if they were not kept.
 * Returns 0, or 1 if there is no memory. */
int EXPORT(gat_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                         const int32_t *row, int64_t self_loops, EXTRA_ARGUMENTS, int64_t heads, int64_t channels, const real *q,
                         int64_t q_stride, const real *k, int64_t k_stride, const stored *v, const real *term, double slope,
                         const stored *out, const real *shift, const real *scale, const stored *positive_out,
                         const real *positive_sum, const stored *grad, real *grad_q, real *grad_k, stored *grad_v, real *grad_term,
                         int threads)
{
    const int64_t width = heads * channels;
    const struct extras extras = {term, make_dropout(seed, probability)};
    struct rooms rooms = make_rooms(threads, width, 2 * width);
    real *node = malloc(((size_t)rows * 4 * heads + 1) * sizeof *node);
    if (!rooms.memory || !node) {
        free(rooms.memory);
        free(node);
        return 1;
    }

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *const positive_grad = take_room(&rooms), *const room = positive_grad + width, computed_sum[MAX_HEADS];
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++) {
            const real *my_grad = as_reals(width, grad + i * width, room), *my_out = as_reals(width, out + i * width, room + width);
            real *to = node + i * 4 * heads;
            for (int64_t h = 0; h < heads; h++) {
                to[h] = q[i * q_stride + h];
                to[heads + h] = shift[i * heads + h];
                to[2 * heads + h] = scale[i * heads + h];
                to[3 * heads + h] = dot(channels, my_grad + h * channels, my_out + h * channels);
            }
            if (term) continue;
            const real *my_positive = positive_grad, *my_sum = computed_sum;
            if (positive_out) {
                my_positive = as_reals(width, positive_out + i * width, positive_grad);
                my_sum = positive_sum + i * heads;
            } else {
                gat_positive_row(heads, channels, edges_of(col, rowptr, i, self_loops), q + i * q_stride, k, k_stride, v,
                                 (real)slope, &extras, numbers_of(edge_by_row, rowptr, i, edge_count), shift + i * heads,
                                 scale + i * heads, positive_grad, computed_sum);
            }
            for (int64_t h = 0; h < heads; h++)
                grad_q[i * heads + h] = (1 - (real)slope) * (dot(channels, my_grad + h * channels, my_positive + h * channels) -
                                                             to[3 * heads + h] * my_sum[h]);
        }
#define COLUMN(heads)                                                                                                         \
    if (term)                                                                                                                 \
        gat_term_column(heads, channels, edges, numbers, &extras, node, k + j * k_stride, my_v, grad, (real)slope,            \
                        grad_k + j * heads, sums, grad_term);                                                                 \
    else                                                                                                                      \
        gat_backward_column(heads, channels, edges, node, k + j * k_stride, my_v, grad, (real)slope, &extras, numbers,        \
                            grad_k + j * heads, sums, positive_grad);
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t j = 0; j < cols; j++) {
            const struct edges edges = edges_of(row, colptr, j, self_loops);
            const struct numbers numbers = numbers_of(edge_by_col, colptr, j, edge_count);
            const real *my_v = as_reals(width, v + j * width, room);
            real *sums = sums_of(grad_v + j * width, room + width);
            if (heads == 4) {
                COLUMN(4)
            } else {
                COLUMN(heads)
            }
            write_row(width, sums, grad_v + j * width);
        }
#undef COLUMN
        if (term) {
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
            for (int64_t i = 0; i < rows; i++)
                sum_edges(heads, edges_of(col, rowptr, i, self_loops), numbers_of(edge_by_row, rowptr, i, edge_count), grad_term,
                          grad_q + i * heads);
        }
    }
    free(rooms.memory);
    free(node);
    return 0;
}
