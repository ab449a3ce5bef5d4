/* What attention may have beyond the plain case: a term per edge in the score, dropout of coefficients. */
#ifndef LCAT_EXTRAS_H
#define LCAT_EXTRAS_H

#include "dropout.h"

/* The arguments that every kernel with extras takes: the number of edges in the input, the numbers of the edges in the slots of
 * the layout, seed and probability of dropout. */
#define EXTRA_ARGUMENTS int64_t edge_count, const int32_t *edge_by_row, const int32_t *edge_by_col, int64_t seed, double probability

struct extras {
    const real *term; /* of GAT's score: [E + self-loops, heads], or NULL */
    struct dropout dropout;
};

INLINE struct numbers numbers_of(const int32_t *edge_by, const int64_t *ptr, int64_t n, int64_t edge_count)
{
    return (struct numbers){edge_by ? edge_by + ptr[n] : 0, (int32_t)(edge_count + n)};
}

INLINE struct edges edges_of(const int32_t *neighbors, const int64_t *ptr, int64_t n, int64_t self_loops)
{
    return (struct edges){neighbors + ptr[n], neighbors + ptr[n + 1], n < self_loops ? (int32_t)n : -1};
}

#endif
