/* Features of implicit self-loops: the mean or the sum of those of a node's in-edges. */
#include "extras.h"

/* rows[E + i] = factor · Σ rows[e] over the in-edges e of i, factor 1 or, for the mean, one by their number; 0 if there are none. */
int EXPORT(fill_loops_forward)(const int64_t *rowptr, int64_t self_loops, int64_t edge_count, const int32_t *edge_by_row,
                               int64_t mean, int64_t width, real *edge_rows, int threads)
{
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < self_loops; i++) {
        real *sum = edge_rows + (edge_count + i) * width;
        const int64_t begin = rowptr[i], end = rowptr[i + 1];
        for (int64_t c = 0; c < width; c++) sum[c] = 0;
        for (int64_t slot = begin; slot < end; slot++) {
            if (slot + 16 < end) __builtin_prefetch(edge_rows + edge_by_row[slot + 16] * width);
            const real *row = edge_rows + edge_by_row[slot] * width;
            for (int64_t c = 0; c < width; c++) sum[c] += row[c];
        }
        if (mean && end > begin)
            for (int64_t c = 0; c < width; c++) sum[c] /= (real)(end - begin);
    }
    return 0;
}

/* Adds to the gradients of the in-edges those of the self-loops. */
int EXPORT(fill_loops_backward)(const int64_t *rowptr, int64_t self_loops, int64_t edge_count, const int32_t *edge_by_row,
                                int64_t mean, int64_t width, real *grad_rows, int threads)
{
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < self_loops; i++) {
        const real *grad = grad_rows + (edge_count + i) * width;
        const int64_t begin = rowptr[i], end = rowptr[i + 1];
        const real factor = mean ? 1 / (real)(end - begin) : 1;
        for (int64_t slot = begin; slot < end; slot++) {
            if (slot + 16 < end) __builtin_prefetch(grad_rows + edge_by_row[slot + 16] * width, 1);
            real *row = grad_rows + edge_by_row[slot] * width;
            for (int64_t c = 0; c < width; c++) row[c] += factor * grad[c];
        }
    }
    return 0;
}
