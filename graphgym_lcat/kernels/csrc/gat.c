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

#include "gat_rows.h"

static const struct numbers none = {0};

/* Rows of q and k lie q_stride and k_stride numbers apart. positive_out and positive_sum are NULL when no gradient is needed; shift and scale always have room. */
int EXPORT(gat_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, int64_t heads,
                         int64_t channels, const real *q, int64_t q_stride, const real *k, int64_t k_stride, const real *v,
                         double slope, real *out, real *shift, real *scale, real *positive_out, real *positive_sum, int threads)
{
    const int64_t width = heads * channels;
#define ROW(heads, channels, train)                                                                                           \
    gat_forward_row(heads, channels, train, edges, q + i * q_stride, k, k_stride, v, (real)slope, 0, 0, none, out + i * width,   \
                    shift + i * heads, scale + i * heads, train ? positive_out + i * width : 0, train ? positive_sum + i * heads : 0)
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
                gat_positive_row(heads, channels, edges, q + i * q_stride, k, k_stride, v, (real)slope, 0, 0, none,
                                 shift + i * heads, scale + i * heads, positive_grad, computed_sum);
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
    gat_backward_column(heads, channels, edges, node, k + j * k_stride, v + j * width, grad, (real)slope, 0, 0, none,              \
                        grad_k + j * heads, grad_v + j * width, positive_grad)
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
