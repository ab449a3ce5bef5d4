/* What a call of GATv2's kernels is given, and the memory that its threads share. */
#ifndef LCAT_GATV2_CALL_H
#define LCAT_GATV2_CALL_H

#include <stdlib.h>

#include "edge_projection.h"

struct graph {
    int64_t rows, cols, self_loops, edge_count;
    const int64_t *rowptr, *colptr;
    const int32_t *col, *row, *edge_by_row, *edge_by_col;
};

/* `v` is NULL where only coefficients are computed. */
struct pairs {
    int64_t heads, depth, channels, edge_dim;
    const real *q, *k, *v, *att, *features, *loop_features, *weight;
    real slope;
};

/* `out` is γ itself where the gradients are those of the coefficients. */
struct results {
    const real *out, *shift, *scale, *grad;
    real *grad_q, *grad_k, *grad_v, *grad_att, *grad_features, *grad_loop_features, *grad_weight;
};

static int64_t workspace_per_thread(const struct pairs *p, const struct pair_extras *extras)
{
    return p->features ? extras->capacity * (p->heads * p->depth + extras->padded) : 0;
}

/* Memory that all threads share: what the projection needs of the weights, then their workspaces. NULL if there is none. */
static real *prepare(const struct pairs *p, int threads, int32_t *identity, struct pair_extras *extras)
{
    const int64_t width = p->heads * p->depth, most = BLOCK / p->heads, fit = PROJECTED / (width + 1) / LANES * LANES;
    for (int32_t b = 0; b < BLOCK; b++) identity[b] = b;
    extras->identity = identity;
    extras->numbered = p->features || extras->dropout.on || !p->v;
    extras->features = p->features;
    extras->loop_features = p->loop_features;
    extras->edge_dim = p->edge_dim;
    extras->padded = (p->edge_dim + LANES - 1) / LANES * LANES;
    extras->capacity = !p->features || fit > most ? most : fit < LANES ? LANES : fit;
    const int64_t weights = p->features ? width * (p->edge_dim + extras->padded) : 0;
    real *memory = malloc((size_t)(weights + threads * workspace_per_thread(p, extras) + 1) * sizeof *memory);
    if (!memory || !p->features) return memory;
    real *weight = memory, *back = memory + width * p->edge_dim;
    for (int64_t c = 0; c < width; c++)
        for (int64_t d = 0; d < extras->padded; d++) {
            const real w = d < p->edge_dim ? p->weight[c * p->edge_dim + d] : 0;
            if (d < p->edge_dim) weight[d * width + c] = w;
            back[c * extras->padded + d] = w * p->att[c];
        }
    extras->weight = weight;
    extras->back_weight = extras->grad_features ? back : 0;
    extras->projected = memory + weights; /* the first thread's */
    return memory;
}

/* The extras of one thread. */
static struct pair_extras take_workspace(const struct pairs *p, struct pair_extras *shared)
{
    struct pair_extras mine;
#pragma omp critical
    {
        mine = *shared;
        if (p->features) shared->projected += workspace_per_thread(p, shared);
    }
    if (p->features) mine.inputs = mine.projected + mine.capacity * p->heads * p->depth;
    return mine;
}

#endif
