/* Statistics of messages (PNA): for each destination i and channel c, of m_j = w_ij (u_i + v_j) over its in-edges, n in number:
 *   sum, mean, min, max, var = mean of squares − square of the mean, std = sqrt(var), 0 where var ≤ 1e-5
 * as PyG's aggregators define them. The weights w are numbers per edge and head, or absent (all 1, one head). Rows without edges give 0.
 *
 * With g the gradients of the statistics, b = (2 g_var + g_std / std) / n and a = g_sum + g_mean / n − b mean, the gradient of m_j is
 *   d_j = a + b m_j + [m_j is the maximum] g_max / (number of maxima) + the same for the minimum.
 * Kept per node and channel for it: mean, 1 / std (0 where std is) and the positions of the extremes. Then
 *   grad u_i = Σ_j w_ij d_j,  grad w_ij = Σ_c d_j (u_i + v_j)       by rows,
 *   grad v_j = Σ_i w_ij (a_i + w_ij b_i u_i) + v_j Σ_i w_ij² b_i    by columns, without the extremes, which are added after.
 *
 * Ties as in torch's scatter_reduce, which PyG calls: equal extremes share the gradient evenly, and an extreme of 0 shares it with
 * the 0 that the result was initialised with. Both are marked in the position, and counted again when they occur.
 *
 * pna.c is the forward pass, pna_backward.c the backward pass.
 *
 * Channels (of a head) are a multiple of 8, the caller pads. There are less than 2^31 edges.
 */
#ifndef LCAT_PNA_H
#define LCAT_PNA_H

#include "rows.h"

#define ROWS_PER_TASK 32
#define EDGES_PER_BLOCK 256 /* sums of blocks, then of their sums: long rows lose little to rounding */
#define MARK ((bits)(ubits)0x80000000u) /* of a position: the extreme has ties, or is 0 */

enum statistic { SUM, MEAN, MIN, MAX, VAR, STD, STATISTICS };

struct messages {
    const int64_t *rowptr;
    const int32_t *col;
    int64_t heads, channels, width;
    const real *u, *v, *weight; /* weight is NULL if there are none */
};

INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE mask splat_bits(bits x) { return (mask){x, x, x, x, x, x, x, x}; }

/* As larger(), but one instruction where there is one; `b` where one is NaN. */
INLINE vec maximum(vec a, vec b)
{
#if defined(__AVX__) && !defined(REAL_IS_DOUBLE)
    return __builtin_ia32_maxps256(a, b);
#else
    return choose(a > b, a, b);
#endif
}

INLINE vec minimum(vec a, vec b)
{
#if defined(__AVX__) && !defined(REAL_IS_DOUBLE)
    return __builtin_ia32_minps256(a, b);
#else
    return choose(a < b, a, b);
#endif
}

/* A vector of one message. */
INLINE vec message(const struct messages *p, int64_t i, int64_t slot, int64_t column, int64_t head)
{
    const vec x = load(p->u + i * p->width + column) + load(p->v + p->col[slot] * p->width + column);
    return p->weight ? x * p->weight[slot * p->heads + head] : x;
}

/* Calls TILE(vectors, per head, column, head) for all columns, `most` vectors at once. */
#define EACH_TILE(most, p)                                                                                                    \
    if ((p)->channels == LANES) {                                                                                             \
        int64_t h = 0;                                                                                                        \
        for (; h + (most) <= (p)->heads; h += (most)) TILE(most, 1, h * LANES, h);                                            \
        for (; h < (p)->heads; h++) TILE(1, 1, h * LANES, h);                                                                 \
    } else {                                                                                                                  \
        for (int64_t h = 0; h < (p)->heads; h++) {                                                                            \
            int64_t c = h * (p)->channels;                                                                                    \
            const int64_t end = c + (p)->channels;                                                                            \
            for (; c + (most) * LANES <= end; c += (most) * LANES) TILE(most, most, c, h);                                    \
            for (; c < end; c += LANES) TILE(1, 1, c, h);                                                                     \
        }                                                                                                                     \
    }

#endif
