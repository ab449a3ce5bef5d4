/* What a call of GATv2's kernels is given, and the memory that its threads share. */
#ifndef LCAT_GATV2_CALL_H
#define LCAT_GATV2_CALL_H

#include "edge_projection.h"

struct graph {
    int64_t rows, cols, self_loops, edge_count;
    const int64_t *rowptr, *colptr;
    const int32_t *col, *row, *edge_by_row, *edge_by_col;
};

/* `v` is NULL where only coefficients are computed. */
struct pairs {
    int64_t heads, depth, channels, edge_dim;
    const stored *q, *k, *v, *features, *loop_features;
    const real *att, *weight;
    real slope;
};

/* gamma and grad_gamma are given where the gradients are those of the coefficients, out and grad where they are those of the sums. */
struct results {
    const stored *out, *grad;
    const real *gamma, *grad_gamma, *shift, *scale;
    stored *grad_q, *grad_k, *grad_v, *grad_features, *grad_loop_features;
    real *grad_att, *grad_weight;
};

/* Room for the rows that a thread works on at once. */
static int64_t room_for_rows(int64_t width, int64_t value_width) { return 2 * width + 3 * value_width; }

/* Fills `extras`, and makes room for what the projection needs of the weights and for the threads; returns 1 if there is no memory. */
static int prepare(const struct pairs *p, int threads, int32_t *identity, struct pair_extras *extras, struct rooms *rooms)
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
    const int64_t projection = p->features ? extras->capacity * (width + extras->padded) : 0;
    *rooms = make_rooms(threads, projection, room_for_rows(width, p->heads * p->channels));
    if (!rooms->memory || !p->features) return !rooms->memory;
    real *weight = malloc((size_t)(width * (p->edge_dim + extras->padded)) * sizeof *weight), *back = weight + width * p->edge_dim;
    if (!weight) {
        free(rooms->memory);
        return 1;
    }
    for (int64_t c = 0; c < width; c++)
        for (int64_t d = 0; d < extras->padded; d++) {
            const real w = d < p->edge_dim ? p->weight[c * p->edge_dim + d] : 0;
            if (d < p->edge_dim) weight[d * width + c] = w;
            back[c * extras->padded + d] = w * p->att[c];
        }
    extras->weight = weight;
    extras->back_weight = extras->grad_features ? back : 0;
    return 0;
}

/* The extras of one thread. */
static struct pair_extras take_extras(const struct pairs *p, const struct pair_extras *shared, struct rooms *rooms)
{
    struct pair_extras mine = *shared;
    mine.projected = take_room(rooms);
    mine.inputs = mine.projected + mine.capacity * p->heads * p->depth;
    mine.room = p->features ? mine.inputs + mine.capacity * mine.padded : mine.projected;
    return mine;
}

static void release(const struct pair_extras *extras, const struct rooms *rooms)
{
    free((void *)extras->weight);
    free(rooms->memory);
}

#endif
