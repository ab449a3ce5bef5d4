/* The attention adjacency with the score of GAT: w_ij = n_i γ_ij, γ the softmax of LeakyReLU(q_i + k_j) over the n_i in-edges of i.
 *
 * The weights stand edge by edge in the order of the rows, [edges, heads]. With grad the gradient of w, that of the score is
 *   w_ij (grad_ij − Σ_j w_ij grad_ij / n_i),
 * times the slope of LeakyReLU: summed over a row for q, over a column for k.
 */
#include <float.h>

#include "rows.h"

#define ROWS_PER_TASK 32
#define MAX_HEADS 64

#ifdef REAL_IS_DOUBLE
#define LOWEST (-DBL_MAX)
#define TINY DBL_MIN
#else
#define LOWEST (-FLT_MAX)
#define TINY FLT_MIN
#endif

INLINE real leaky_one(real t, real slope) { return t > 0 ? t : t * slope; }

/* exp of n numbers in place. */
INLINE void exponentials(int64_t n, real *x)
{
    int64_t e = 0;
    for (; e + LANES <= n; e += LANES) store(x + e, exponential(load(x + e)));
    if (e < n) {
        real rest[LANES] = {0};
        memcpy(rest, x + e, (size_t)(n - e) * sizeof *x);
        store(rest, exponential(load(rest)));
        memcpy(x + e, rest, (size_t)(n - e) * sizeof *x);
    }
}

INLINE void weights_row(const int64_t heads, int64_t edges, const int32_t *col, const real *q, const real *k, int64_t k_stride,
                        real slope, real *weight)
{
    real top[MAX_HEADS];
    double sum[MAX_HEADS];
    for (int64_t h = 0; h < heads; h++) {
        top[h] = LOWEST;
        sum[h] = 0;
    }
    for (int64_t e = 0; e < edges; e++)
        for (int64_t h = 0; h < heads; h++) {
            const real t = q[h] + k[col[e] * k_stride + h], score = leaky_one(t, slope);
            weight[e * heads + h] = score;
            top[h] = score > top[h] ? score : top[h];
        }
    for (int64_t e = 0; e < edges; e++)
        for (int64_t h = 0; h < heads; h++) weight[e * heads + h] -= top[h];
    exponentials(edges * heads, weight);
    for (int64_t e = 0; e < edges; e++)
        for (int64_t h = 0; h < heads; h++) sum[h] += weight[e * heads + h];
    for (int64_t h = 0; h < heads; h++) top[h] = (real)((double)edges / (sum[h] < TINY ? TINY : sum[h]));
    for (int64_t e = 0; e < edges; e++)
        for (int64_t h = 0; h < heads; h++) weight[e * heads + h] *= top[h];
}

int EXPORT(adjacency_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t heads, const real *q, int64_t q_stride,
                              const real *k, int64_t k_stride, double slope, real *weight, int threads)
{
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        const int64_t first = rowptr[i], edges = rowptr[i + 1] - first;
        if (heads == 4)
            weights_row(4, edges, col + first, q + i * q_stride, k, k_stride, (real)slope, weight + first * 4);
        else
            weights_row(heads, edges, col + first, q + i * q_stride, k, k_stride, (real)slope, weight + first * heads);
    }
    return 0;
}

/* `to` becomes the gradient of q_i + k_j; it may be `grad` itself. */
INLINE void weights_row_backward(const int64_t heads, int64_t edges, const int32_t *col, const real *q, const real *k, int64_t k_stride,
                                 real slope, const real *weight, const real *grad, real *to, real *grad_q)
{
    real mean[MAX_HEADS];
    double sum[MAX_HEADS];
    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    for (int64_t e = 0; e < edges; e++)
        for (int64_t h = 0; h < heads; h++) sum[h] += weight[e * heads + h] * grad[e * heads + h];
    for (int64_t h = 0; h < heads; h++) {
        mean[h] = edges ? (real)(sum[h] / (double)edges) : 0;
        sum[h] = 0;
    }
    for (int64_t e = 0; e < edges; e++)
        for (int64_t h = 0; h < heads; h++) {
            const int64_t n = e * heads + h;
            const real g = weight[n] * (grad[n] - mean[h]);
            to[n] = q[h] + k[col[e] * k_stride + h] > 0 ? g : g * slope;
            sum[h] += to[n];
        }
    for (int64_t h = 0; h < heads; h++) grad_q[h] = (real)sum[h];
}

INLINE void weights_column_backward(const int64_t heads, int64_t edges, const int32_t *slot, const real *of_pair, real *grad_k)
{
    double sum[MAX_HEADS];
    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    for (int64_t e = 0; e < edges; e++)
        for (int64_t h = 0; h < heads; h++) sum[h] += of_pair[slot[e] * heads + h];
    for (int64_t h = 0; h < heads; h++) grad_k[h] = (real)sum[h];
}

/* `of_pair` has room for one number per edge and head. */
int EXPORT(adjacency_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                               const int32_t *slot, int64_t heads, const real *q, int64_t q_stride, const real *k, int64_t k_stride,
                               double slope, const real *weight, const real *grad, real *of_pair, real *grad_q, real *grad_k,
                               int threads)
{
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++) {
            const int64_t first = rowptr[i], edges = rowptr[i + 1] - first, n = first * heads;
            if (heads == 4)
                weights_row_backward(4, edges, col + first, q + i * q_stride, k, k_stride, (real)slope, weight + n, grad + n,
                                     of_pair + n, grad_q + i * 4);
            else
                weights_row_backward(heads, edges, col + first, q + i * q_stride, k, k_stride, (real)slope, weight + n, grad + n,
                                     of_pair + n, grad_q + i * heads);
        }
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t j = 0; j < cols; j++) {
            const int64_t edges = colptr[j + 1] - colptr[j];
            if (heads == 4)
                weights_column_backward(4, edges, slot + colptr[j], of_pair, grad_k + j * 4);
            else
                weights_column_backward(heads, edges, slot + colptr[j], of_pair, grad_k + j * heads);
        }
    }
    return 0;
}
