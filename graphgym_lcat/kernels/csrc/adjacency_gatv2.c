/* The attention adjacency (see adjacency.h) with the score of GATv2, a · LeakyReLU(q_i + k_j).
 *
 * With s_ij the gradient of the score and s'_ij = s_ij times the slope of LeakyReLU, in each column of q_i + k_j:
 *   grad q_i = a Σ_j s'_ij,  grad k_j = a Σ_i s'_ij,  grad a = Σ_ij s'_ij (q_i + k_j).
 *
 * The columns of a head are a multiple of 8. The caller pads.
 */
#include <stdlib.h>

#include "adjacency.h"

#define ROWS_PER_BLOCK 64 /* fixed blocks of sums over all nodes, whatever the number of threads */
#define EDGES_PER_BLOCK 256

INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE void weights_row(const int64_t heads, const int64_t depth, int64_t n, const int32_t *col, const real *q, const real *k,
                        const real *att, real slope, real *weight)
{
    const int64_t width = heads * depth;
    real top[MAX_HEADS];
    for (int64_t h = 0; h < heads; h++) top[h] = LOWEST;
    for (int64_t e = 0; e < n; e++) {
        const real *key = k + col[e] * width;
        real *to = weight + e * heads;
        if (heads % 4 == 0 && depth == LANES) {
            for (int64_t h = 0; h < heads; h += 4) {
                vec product[4];
                UNROLL for (int v = 0; v < 4; v++) {
                    const int64_t c = (h + v) * LANES;
                    product[v] = load(att + c) * leaky(load(q + c) + load(key + c), slope);
                }
                lane_sums(product, to + h);
            }
        } else {
            for (int64_t h = 0; h < heads; h++) {
                vec product = splat(0);
                for (int64_t c = h * depth; c < (h + 1) * depth; c += LANES)
                    product += load(att + c) * leaky(load(q + c) + load(key + c), slope);
                to[h] = lane_sum(product);
            }
        }
        for (int64_t h = 0; h < heads; h++) top[h] = to[h] > top[h] ? to[h] : top[h];
    }
    scores_to_weights(heads, n, top, weight);
}

int EXPORT(adjacency_gatv2_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t heads, int64_t depth,
                                    const real *q, const real *k, const real *att, double slope, real *weight, int threads)
{
    const int64_t width = heads * depth;
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        const int64_t first = rowptr[i], n = rowptr[i + 1] - first;
        if (heads == 4 && depth == LANES)
            weights_row(4, LANES, n, col + first, q + i * width, k, att, (real)slope, weight + first * 4);
        else
            weights_row(heads, depth, n, col + first, q + i * width, k, att, (real)slope, weight + first * heads);
    }
    return 0;
}

/* sum[c] = Σ_e s'_e of the pairs (own, rows[index[e]]), where s of edge e stands at score[slot[e]], or at score[e] without slots;
 * unless product is NULL, product[c] = Σ_e s'_e (own + row). */
INLINE void sum_slopes(const int64_t heads, const int64_t depth, int64_t n, const int32_t *index, const int32_t *slot,
                       const real *own, const real *rows, const real *score, real slope, real *sum, real *product)
{
    const int64_t width = heads * depth;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t c = h * depth; c < (h + 1) * depth; c += LANES) {
            const vec mine = load(own + c);
            vec total = splat(0), product_total = splat(0);
            for (int64_t begin = 0; begin < n; begin += EDGES_PER_BLOCK) {
                vec block = splat(0), product_block = splat(0);
                for (int64_t e = begin; e < smaller(n, begin + EDGES_PER_BLOCK); e++) {
                    const real s = score[(slot ? slot[e] : e) * heads + h];
                    const vec x = mine + load(rows + index[e] * width + c), d = choose(x > 0, splat(s), splat(s * slope));
                    block += d;
                    if (product) product_block += d * x;
                }
                total += block;
                product_total += product_block;
            }
            store(sum + c, total);
            if (product) store(product + c, product_total);
        }
}

/* slot tells where the edges of the columns stand in the rows; `of_score` has room for one number per edge and head.
 * Returns 0, or 1 if there is no memory. */
int EXPORT(adjacency_gatv2_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                                     const int32_t *row, const int32_t *slot, int64_t heads, int64_t depth, const real *q,
                                     const real *k, const real *att, double slope, const real *weight, const real *grad,
                                     real *of_score, real *grad_q, real *grad_k, real *grad_att, int threads)
{
    const int64_t width = heads * depth, blocks = (rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
    double *partial = calloc((size_t)(blocks * width) + 1, sizeof *partial);
    real *products = malloc(((size_t)threads * (size_t)width + 1) * sizeof *products), *unused = products;
    if (!partial || !products) {
        free(partial);
        free(products);
        return 1;
    }
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *product, mean[MAX_HEADS];
#pragma omp critical
        {
            product = unused;
            unused += width;
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t block = 0; block < blocks; block++)
            for (int64_t i = block * ROWS_PER_BLOCK; i < smaller(rows, (block + 1) * ROWS_PER_BLOCK); i++) {
                const int64_t first = rowptr[i], n = rowptr[i + 1] - first;
                mean_gradient(heads, n, weight + first * heads, grad + first * heads, mean);
                for (int64_t e = first; e < first + n; e++)
                    for (int64_t h = 0; h < heads; h++)
                        of_score[e * heads + h] = weight[e * heads + h] * (grad[e * heads + h] - mean[h]);
                sum_slopes(heads, depth, n, col + first, 0, q + i * width, k, of_score + first * heads, (real)slope,
                           grad_q + i * width, product);
                for (int64_t c = 0; c < width; c++) {
                    grad_q[i * width + c] *= att[c];
                    partial[block * width + c] += (double)product[c];
                }
            }
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t j = 0; j < cols; j++) {
            const int64_t first = colptr[j], n = colptr[j + 1] - first;
            sum_slopes(heads, depth, n, row + first, slot + first, k + j * width, q, of_score, (real)slope, grad_k + j * width, 0);
            for (int64_t c = 0; c < width; c++) grad_k[j * width + c] *= att[c];
        }
    }
    for (int64_t c = 0; c < width; c++) {
        double sum = 0;
        for (int64_t block = 0; block < blocks; block++) sum += partial[block * width + c];
        grad_att[c] = (real)sum;
    }
    free(partial);
    free(products);
    return 0;
}
