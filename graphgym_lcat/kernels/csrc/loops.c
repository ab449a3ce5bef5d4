/* Features of implicit self-loops: the mean or the sum of the features of a node's in-edges. */
#include "extras.h"

#define AHEAD 24 /* slots, whose rows are on their way into the cache */

/* loop_rows[i] = factor · Σ edge_rows[e] over the in-edges e of i. The factor is 1 or, for the mean, one by the number of in-edges. */
int EXPORT(fill_loops_forward)(const int64_t *rowptr, int64_t self_loops, const int32_t *edge_by_row, int64_t mean, int64_t width,
                               const real *edge_rows, real *loop_rows, int threads)
{
    const int64_t last = rowptr[self_loops];
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < self_loops; i++) {
        real *sum = loop_rows + i * width;
        const int64_t begin = rowptr[i], end = rowptr[i + 1];
        for (int64_t c = 0; c < width; c++) sum[c] = 0;
        for (int64_t slot = begin; slot < end; slot++) {
            if (slot + AHEAD < last) __builtin_prefetch(edge_rows + edge_by_row[slot + AHEAD] * width);
            const real *row = edge_rows + edge_by_row[slot] * width;
            for (int64_t c = 0; c < width; c++) sum[c] += row[c];
        }
        if (mean && end > begin)
            for (int64_t c = 0; c < width; c++) sum[c] /= (real)(end - begin);
    }
    return 0;
}

/* Adds the gradients of the self-loops to those of the in-edges. */
int EXPORT(fill_loops_backward)(const int64_t *rowptr, int64_t self_loops, const int32_t *edge_by_row, int64_t mean, int64_t width,
                                const real *grad_loop_rows, real *grad_edge_rows, int threads)
{
    const int64_t last = rowptr[self_loops];
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < self_loops; i++) {
        const real *grad = grad_loop_rows + i * width;
        const int64_t begin = rowptr[i], end = rowptr[i + 1];
        const real factor = mean && end > begin ? 1 / (real)(end - begin) : 1;
        for (int64_t slot = begin; slot < end; slot++) {
            if (slot + AHEAD < last) __builtin_prefetch(grad_edge_rows + edge_by_row[slot + AHEAD] * width, 1);
            real *row = grad_edge_rows + edge_by_row[slot] * width;
            for (int64_t c = 0; c < width; c++) row[c] += factor * grad[c];
        }
    }
    return 0;
}
