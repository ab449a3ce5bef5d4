/* The numbers per node that the score of GAT is made of: λ1 times the products of each head's features with its attention vectors.
 *
 * The products are [nodes, 2, heads]: those with the vectors of destinations, then those with the vectors of sources. There are
 * `lambdas` values of λ1: one for all heads, or one per head. Channels are a multiple of 8. The caller pads.
 */
#include "rows.h"

/* Sums over all nodes are added up in blocks, so that the result does not depend on the number of threads. */
#define NODES_PER_BLOCK 256

/* scaled = λ1 att, [2, heads, channels] */
static void scale_vectors(int64_t heads, int64_t channels, const real *att_dst, const real *att_src, const real *lambda,
                          int64_t lambdas, real *scaled)
{
    const int64_t width = heads * channels;
    for (int64_t c = 0; c < width; c++) {
        const real l = lambda[lambdas == 1 ? 0 : c / channels];
        scaled[c] = l * att_dst[c];
        scaled[width + c] = l * att_src[c];
    }
}

/* Four products at once. */
INLINE void four_products(int64_t channels, const stored *const x[4], const real *vectors, real *out)
{
    vec sums[4];
    UNROLL for (int u = 0; u < 4; u++) {
        sums[u] = load_row(x[u]) * load(vectors + u * channels);
        for (int64_t c = LANES; c < channels; c += LANES) sums[u] += load_row(x[u] + c) * load(vectors + u * channels + c);
    }
    lane_sums(sums, out);
}

INLINE void products_of(int64_t heads, int64_t channels, const stored *x, const real *scaled, real *products)
{
    int64_t n = 0;
    for (; n + 4 <= 2 * heads; n += 4) {
        const stored *rows[4];
        UNROLL for (int u = 0; u < 4; u++) rows[u] = x + (n + u) % heads * channels;
        four_products(channels, rows, scaled + n * channels, products + n);
    }
    for (; n < 2 * heads; n++) {
        vec sum = splat(0);
        for (int64_t c = 0; c < channels; c += LANES)
            sum += load_row(x + n % heads * channels + c) * load(scaled + n * channels + c);
        products[n] = lane_sum(sum);
    }
}

/* Returns 0, or 1 if there is no memory. */
int EXPORT(scores_forward)(int64_t nodes, int64_t heads, int64_t channels, const stored *x, const real *att_dst, const real *att_src,
                           const real *lambda, int64_t lambdas, real *products, int threads)
{
    real *scaled = malloc((size_t)(2 * heads * channels) * sizeof *scaled);
    if (!scaled) return 1;
    scale_vectors(heads, channels, att_dst, att_src, lambda, lambdas, scaled);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < nodes; i++)
        if (heads == 4 && channels == 8)
            products_of(4, 8, x + i * 32, scaled, products + i * 8);
        else
            products_of(heads, channels, x + i * heads * channels, scaled, products + i * 2 * heads);
    free(scaled);
    return 0;
}

/* One node: adds to the gradient of x, and to the sums of x times the gradients of the products. */
INLINE void add_node(int64_t heads, int64_t channels, const stored *x, const real *scaled, const real *grad, const real *more,
                     stored *grad_x, real *sums)
{
    const int64_t width = heads * channels;
    for (int64_t h = 0; h < heads; h++) {
        const real dst = grad[h] + (more ? more[h] : 0), src = grad[heads + h] + (more ? more[heads + h] : 0);
        for (int64_t c = h * channels; c < (h + 1) * channels; c += LANES) {
            const vec row = load_row(x + c);
            store_row(grad_x + c, load_row(grad_x + c) + dst * load(scaled + c) + src * load(scaled + width + c));
            store(sums + c, load(sums + c) + dst * row);
            store(sums + width + c, load(sums + width + c) + src * row);
        }
    }
}

/* The gradients of the products are grad + more (more may be NULL). Adds the gradients of x to grad_x, and sets the others.
 * Returns 0, or 1 if there is no memory. */
int EXPORT(scores_backward)(int64_t nodes, int64_t heads, int64_t channels, const stored *x, const real *att_dst,
                            const real *att_src, const real *lambda, int64_t lambdas, const real *grad, const real *more, stored *grad_x,
                            real *grad_att_dst, real *grad_att_src, real *grad_lambda, int threads)
{
    const int64_t width = heads * channels, size = 2 * width, blocks = (nodes + NODES_PER_BLOCK - 1) / NODES_PER_BLOCK;
    real *partial = calloc((size_t)((blocks + 1) * size), sizeof *partial);
    if (!partial) return 1;
    real *scaled = partial + blocks * size;
    scale_vectors(heads, channels, att_dst, att_src, lambda, lambdas, scaled);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t i = block * NODES_PER_BLOCK; i < nodes && i < (block + 1) * NODES_PER_BLOCK; i++) {
            const real *more_i = more ? more + i * 2 * heads : 0;
            if (heads == 4 && channels == 8)
                add_node(4, 8, x + i * 32, scaled, grad + i * 8, more_i, grad_x + i * 32, partial + block * 64);
            else
                add_node(heads, channels, x + i * width, scaled, grad + i * 2 * heads, more_i, grad_x + i * width,
                         partial + block * size);
        }
    for (int64_t h = 0; h < lambdas; h++) grad_lambda[h] = 0;
    for (int64_t h = 0; h < heads; h++) {
        const int64_t l = lambdas == 1 ? 0 : h;
        double by_lambda = 0;
        for (int64_t c = h * channels; c < (h + 1) * channels; c++) {
            double dst = 0, src = 0;
            for (int64_t block = 0; block < blocks; block++) {
                dst += (double)partial[block * size + c];
                src += (double)partial[block * size + width + c];
            }
            by_lambda += dst * (double)att_dst[c] + src * (double)att_src[c];
            grad_att_dst[c] = (real)(dst * (double)lambda[l]);
            grad_att_src[c] = (real)(src * (double)lambda[l]);
        }
        grad_lambda[l] += (real)by_lambda;
    }
    free(partial);
    return 0;
}
