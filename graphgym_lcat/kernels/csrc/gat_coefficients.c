/* Attention coefficients with the score of GAT, e_ij = LeakyReLU(q_i + k_j + b_ij), one per edge and head, and their gradients.
 *
 * Arrays over edges are in the order of the input, implicit self-loops last; the rows of edges that the layout does not hold are
 * neither read nor written. `term` may be NULL. With dropout, gamma holds f_ij γ_ij.
 */
#include "softmax.h"

/* x = q_i + k_j + b_ij, one vector. */
INLINE vec score_input(int64_t heads, int64_t part, int64_t n, const struct block *block, const struct block_numbers *edge, vec q,
                       const real *k, int64_t k_stride, const real *term)
{
    const vec x = gather(heads, part, indices_at(block, heads, n), k, k_stride) + q;
    return term ? x + gather_edges(heads, part, n, block, edge, term) : x;
}

INLINE void coefficients_row(int64_t heads, struct edges edges, struct numbers numbers, const struct extras *extras, const real *q,
                             const real *k, int64_t k_stride, real slope, real *gamma, real *shift, real *scale)
{
    const struct edges all_edges = edges;
    const struct numbers all_numbers = numbers;
    real scores[BLOCK + LANES], q_lanes[MAX_HEADS], sum[MAX_HEADS];
    struct block block, next;
    struct block_numbers edge;
    int blocks = 0;

    spread(heads, q, q_lanes);
    for (int64_t h = 0; h < heads; h++) {
        shift[h] = LOWEST;
        sum[h] = 0;
    }
    while (next_block(&edges, heads, &next)) {
        block = next;
        next_numbers(&numbers, heads, &block, &edge);
        if (extras->term) prefetch_edges(&block, &edge, extras->term, heads);
        prefetch_written_edges(&block, &edge, gamma, heads);
        for (int64_t part = 0; part < period(heads); part += LANES)
            for (int64_t n = part; n < block.count * heads; n += period(heads)) {
                const vec x = score_input(heads, part, n, &block, &edge, load(q_lanes + part), k, k_stride, extras->term);
                store(scores + n, leaky(x, slope));
            }
        add_scores(heads, &block, scores, shift, sum);
        blocks++;
        if (blocks > 1 || edges.slot < edges.end || edges.self >= 0) scatter_edges(heads, &block, &edge, scores, gamma);
    }
    for (int64_t h = 0; h < heads; h++) scale[h] = 1 / (sum[h] < TINY ? TINY : sum[h]);
    if (blocks == 1) {
        write_coefficients(heads, &block, &edge, &extras->dropout, shift, scale, scores, gamma);
        return;
    }
    normalize_scores(heads, all_edges, all_numbers, &extras->dropout, shift, scale, gamma);
}

int EXPORT(gat_coefficients_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, EXTRA_ARGUMENTS,
                                     int64_t heads, const real *q, int64_t q_stride, const real *k, int64_t k_stride,
                                     const real *term, double slope, real *gamma, real *shift, real *scale, int threads)
{
    const struct extras extras = {term, make_dropout(seed, probability)};
    (void)edge_by_col;
#define ROW(heads)                                                                                                            \
    coefficients_row(heads, edges_of(col, rowptr, i, self_loops), numbers_of(edge_by_row, rowptr, i, edge_count), &extras,    \
                     q + i * q_stride, k, k_stride, (real)slope, gamma, shift + i * heads, scale + i * heads)
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        if (heads == 4)
            ROW(4);
        else
            ROW(heads);
    }
#undef ROW
    return 0;
}

/* grad_score[e] = gradient of q_i + k_j + b_ij, and its sum over the row. */
INLINE void gradient_row(int64_t heads, struct edges edges, struct numbers numbers, const struct extras *extras, const real *q,
                         const real *k, int64_t k_stride, real slope, const real *gamma, const real *shift, const real *scale,
                         const real *grad, real *grad_q, real *grad_score)
{
    real y[BLOCK + LANES], factors[BLOCK + LANES], lanes[4 * MAX_HEADS], sum_lanes[MAX_HEADS], mean[MAX_HEADS];
    struct block block;
    struct block_numbers edge;

    mean_gradient(heads, edges, numbers, gamma, grad, mean);
    spread(heads, q, lanes);
    spread(heads, shift, lanes + MAX_HEADS);
    spread(heads, scale, lanes + 2 * MAX_HEADS);
    spread(heads, mean, lanes + 3 * MAX_HEADS);
    for (int64_t h = 0; h < heads; h++) grad_q[h] = 0;
    while (next_block(&edges, heads, &block)) {
        next_numbers(&numbers, heads, &block, &edge);
        prefetch_edges(&block, &edge, grad_score, heads);
        if (extras->dropout.on) dropout_factors(heads, &extras->dropout, &block, &edge, factors);
        for (int64_t part = 0; part < period(heads); part += LANES) {
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += period(heads)) {
                const vec x = score_input(heads, part, n, &block, &edge, load(lanes + part), k, k_stride, extras->term);
                const vec coefficient = exponential(leaky(x, slope) - load(lanes + MAX_HEADS + part)) * load(lanes + 2 * MAX_HEADS + part);
                vec g = gather_edges(heads, part, n, &block, &edge, grad);
                if (extras->dropout.on) g *= load(factors + n);
                g = leaky_slope(x, coefficient * (g - load(lanes + 3 * MAX_HEADS + part)), slope);
                store(y + n, g);
                total += only_edges(&block, heads, n, g);
            }
            store(sum_lanes + part, total);
        }
        fold_sum(heads, sum_lanes, grad_q);
        scatter_edges(heads, &block, &edge, y, grad_score);
    }
}

/* `grad` is the gradient of gamma; grad_score, that of the term, is written even if there is none. */
int EXPORT(gat_coefficients_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                                      const int32_t *row, int64_t self_loops, EXTRA_ARGUMENTS, int64_t heads, const real *q,
                                      int64_t q_stride, const real *k, int64_t k_stride, const real *term, double slope,
                                      const real *gamma, const real *shift, const real *scale, const real *grad, real *grad_q,
                                      real *grad_k, real *grad_score, int threads)
{
    const struct extras extras = {term, make_dropout(seed, probability)};
#define ROW(heads)                                                                                                            \
    gradient_row(heads, edges_of(col, rowptr, i, self_loops), numbers_of(edge_by_row, rowptr, i, edge_count), &extras,        \
                 q + i * q_stride, k, k_stride, (real)slope, gamma, shift + i * heads, scale + i * heads, grad,               \
                 grad_q + i * heads, grad_score)
#define COLUMN(heads)                                                                                                         \
    sum_edges(heads, edges_of(row, colptr, j, self_loops), numbers_of(edge_by_col, colptr, j, edge_count), grad_score,        \
              grad_k + j * heads)
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++) {
            if (heads == 4)
                ROW(4);
            else
                ROW(heads);
        }
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t j = 0; j < cols; j++) {
            if (heads == 4)
                COLUMN(4);
            else
                COLUMN(heads);
        }
    }
#undef ROW
#undef COLUMN
    return 0;
}
