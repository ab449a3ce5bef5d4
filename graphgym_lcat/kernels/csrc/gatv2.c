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

#include "gatv2_rows.h"

static const struct numbers none = {0};

int EXPORT(gatv2_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, int64_t heads,
                           int64_t depth, int64_t channels, const real *q, const real *k, const real *v, const real *att,
                           double slope, real *out, real *shift, real *scale, int threads)
{
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        const struct edges edges = {col + rowptr[i], col + rowptr[i + 1], i < self_loops ? (int32_t)i : -1};
#define CALL(heads)                                                                                                           \
    gatv2_forward_row(heads, depth, channels, edges, q + i * heads * depth, k, v, att, (real)slope, 0, 0, none,                   \
                      out + i * heads * channels, shift + i * heads, scale + i * heads)
        BY_HEADS(CALL)
#undef CALL
    }
    return 0;
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
                        att, grad, grad + i * value_width, (real)slope, 0, 0, none, none, grad_x + i * width,                \
                        grad_v + i * value_width, partial + block * width)
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
                       (real)slope, 0, 0, none, grad_q + n * width, att_part, 0)
                    BY_HEADS(CALL)
#undef CALL
                } else {
#define CALL(heads)                                                                                                           \
    gatv2_backward_column(heads, depth, channels, edges, node, q, k + n * width, v + n * value_width, att, grad, (real)slope,   \
                          0, 0, none, grad_k + n * width, grad_v + n * value_width, att_part)
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
