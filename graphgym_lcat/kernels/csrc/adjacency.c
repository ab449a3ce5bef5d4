/* The attention adjacency (see adjacency.h) with the score of GAT, LeakyReLU(q_i + k_j).
 *
 * The gradient of q_i + k_j is that of the score times the slope of LeakyReLU: summed over a row for q, over a column for k.
 */
#include "adjacency.h"

INLINE void weights_row(const int64_t heads, struct edges edges, const real *q, const real *k, int64_t k_stride, real slope,
                        real *weight)
{
    const int64_t n = edges.end - edges.slot, repeat = period(heads);
    real q_lanes[MAX_HEADS], lanes[MAX_HEADS], top[MAX_HEADS];
    real *to = weight;
    struct block block;

    spread(heads, q, q_lanes);
    for (int64_t h = 0; h < heads; h++) top[h] = LOWEST;
    while (next_block(&edges, heads, &block)) {
        const int64_t size = block.count * heads;
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec q_part = load(q_lanes + part);
            vec most = splat(LOWEST);
            for (int64_t m = part; m < size; m += repeat) {
                const vec score = leaky(gather(heads, part, indices_at(&block, heads, m), k, k_stride) + q_part, slope);
                most = larger(most, score);
                store_some(to + m, size - m, score);
            }
            store(lanes + part, most);
        }
        fold_max(heads, lanes, top);
        to += size;
    }
    scores_to_weights(heads, n, top, weight);
}

int EXPORT(adjacency_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t heads, const real *q, int64_t q_stride,
                              const real *k, int64_t k_stride, double slope, real *weight, int threads)
{
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        const struct edges edges = {col + rowptr[i], col + rowptr[i + 1], -1};
        if (heads == 4)
            weights_row(4, edges, q + i * q_stride, k, k_stride, (real)slope, weight + rowptr[i] * 4);
        else
            weights_row(heads, edges, q + i * q_stride, k, k_stride, (real)slope, weight + rowptr[i] * heads);
    }
    return 0;
}

/* `to` becomes the gradient of q_i + k_j. */
INLINE void weights_row_backward(const int64_t heads, struct edges edges, const real *q, const real *k, int64_t k_stride, real slope,
                                 const real *weight, const real *grad, real *to, real *grad_q)
{
    const int64_t n = edges.end - edges.slot, repeat = period(heads);
    real q_lanes[MAX_HEADS], lanes[MAX_HEADS], mean[MAX_HEADS];
    struct block block;

    for (int64_t h = 0; h < heads; h++) grad_q[h] = 0;
    mean_gradient(heads, n, weight, grad, mean);
    spread(heads, mean, lanes);
    spread(heads, q, q_lanes);
    while (next_block(&edges, heads, &block)) {
        const int64_t size = block.count * heads;
        real sums[MAX_HEADS];
        for (int64_t part = 0; part < repeat; part += LANES) {
            const vec q_part = load(q_lanes + part), mean_part = load(lanes + part);
            vec total = splat(0);
            for (int64_t m = part; m < size; m += repeat) {
                const vec x = gather(heads, part, indices_at(&block, heads, m), k, k_stride) + q_part;
                vec g = load_some(weight + m, size - m) * (load_some(grad + m, size - m) - mean_part);
                g = choose(x > 0, g, g * slope);
                total += g; /* behind the last edge the weight is 0 */
                store_some(to + m, size - m, g);
            }
            store(sums + part, total);
        }
        fold_sum(heads, sums, grad_q);
        weight += size;
        grad += size;
        to += size;
    }
}

INLINE void weights_column_backward(const int64_t heads, struct edges slots, const real *of_pair, real *grad_k)
{
    const int64_t repeat = period(heads);
    real sums[MAX_HEADS];
    struct block block;
    for (int64_t h = 0; h < heads; h++) grad_k[h] = 0;
    while (next_block(&slots, heads, &block)) {
        for (int64_t part = 0; part < repeat; part += LANES) {
            vec total = splat(0);
            for (int64_t m = part; m < block.count * heads; m += repeat)
                total += only_edges(&block, heads, m, gather(heads, part, indices_at(&block, heads, m), of_pair, heads));
            store(sums + part, total);
        }
        fold_sum(heads, sums, grad_k);
    }
}

/* slot tells where the edges of the columns stand in the rows; `of_pair` has room for one number per edge and head. */
int EXPORT(adjacency_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                               const int32_t *slot, int64_t heads, const real *q, int64_t q_stride, const real *k, int64_t k_stride,
                               double slope, const real *weight, const real *grad, real *of_pair, real *grad_q, real *grad_k,
                               int threads)
{
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#define ROW(heads)                                                                                                            \
    weights_row_backward(heads, edges, q + i * q_stride, k, k_stride, (real)slope, weight + n, grad + n, of_pair + n, grad_q + i * heads)
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++) {
            const struct edges edges = {col + rowptr[i], col + rowptr[i + 1], -1};
            const int64_t n = rowptr[i] * heads;
            if (heads == 4)
                ROW(4);
            else
                ROW(heads);
        }
#undef ROW
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t j = 0; j < cols; j++) {
            const struct edges slots = {slot + colptr[j], slot + colptr[j + 1], -1};
            if (heads == 4)
                weights_column_backward(4, slots, of_pair, grad_k + j * 4);
            else
                weights_column_backward(heads, slots, of_pair, grad_k + j * heads);
        }
    }
    return 0;
}
