/* A block of edges of one node: numbers per edge and head, as vectors over (edge, head).
 *
 * Heads are 1, 2, 4 (a vector holds several edges) or a multiple of LANES (an edge fills several vectors).
 */
#ifndef LCAT_BLOCK_H
#define LCAT_BLOCK_H

#include <float.h>

#include "rows.h"

#define BLOCK 512 /* edges × heads */
#define MAX_HEADS 64
#define ROWS_PER_TASK 32

#ifdef REAL_IS_DOUBLE
#define LOWEST (-DBL_MAX)
#define TINY DBL_MIN
#else
#define LOWEST (-FLT_MAX)
#define TINY FLT_MIN
#endif

/* Lanes after which the heads repeat. */
INLINE int64_t period(int64_t heads) { return heads < LANES ? LANES : heads; }
INLINE int64_t edges_per_vector(int64_t heads) { return heads < LANES ? LANES / heads : 1; }

INLINE void spread(int64_t heads, const real *values, real *lanes)
{
    for (int64_t l = 0; l < period(heads); l++) lanes[l] = values[heads < LANES ? l & (heads - 1) : l];
}

INLINE void fold_sum(int64_t heads, const real *lanes, real *values)
{
    for (int64_t h = 0; h < heads; h++) {
        real total = 0;
        for (int64_t l = h; l < period(heads); l += heads) total += lanes[l];
        values[h] += total;
    }
}

INLINE void fold_max(int64_t heads, const real *lanes, real *values)
{
    for (int64_t h = 0; h < heads; h++) {
        real top = values[h];
        for (int64_t l = h; l < period(heads); l += heads) top = lanes[l] > top ? lanes[l] : top; /* no branch: it is unpredictable */
        values[h] = top;
    }
}

/* One vector: the heads (from `part` on) of rows[index[0]], rows[index[1]], … */
INLINE vec gather(int64_t heads, int64_t part, const int32_t *index, const real *rows, int64_t stride)
{
    if (heads == 1)
        return (vec){rows[index[0] * stride], rows[index[1] * stride], rows[index[2] * stride], rows[index[3] * stride],
                     rows[index[4] * stride], rows[index[5] * stride], rows[index[6] * stride], rows[index[7] * stride]};
    if (heads == 2) {
        const real *a = rows + index[0] * stride, *b = rows + index[1] * stride, *c = rows + index[2] * stride,
                   *d = rows + index[3] * stride;
        return (vec){a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]};
    }
    if (heads == 4) return join(load_half(rows + index[0] * stride), load_half(rows + index[1] * stride));
    return load(rows + index[0] * stride + part);
}

/* The edges of a node that have not been visited yet: slots start … end − 1, then, if self ≥ 0, the self-loop. */
struct edges {
    const int32_t *slot, *end;
    int32_t self;
};

/* A block of them: `count` edges, of which the last is the self-loop if `own`. The last, incomplete vector reads its indices from
 * `tail`, where the last edge is repeated. */
struct block {
    const int32_t *slot;
    int64_t count, whole, own;
    int32_t tail[LANES];
};

/* The next block, of at most `capacity` edges. */
INLINE int next_small_block(struct edges *edges, int64_t heads, int64_t capacity, struct block *block)
{
    const int64_t group = edges_per_vector(heads), left = edges->end - edges->slot;
    const int64_t stored = left < capacity ? left : capacity;
    block->slot = edges->slot;
    block->own = edges->self >= 0 && stored < capacity;
    block->count = stored + block->own;
    block->whole = stored - stored % group;
    for (int64_t b = 0; b < group; b++)
        block->tail[b] = block->whole + b < stored ? block->slot[block->whole + b]
                         : block->own              ? edges->self
                         : stored                  ? block->slot[stored - 1]
                                                   : 0;
    edges->slot += stored;
    if (block->own) edges->self = -1;
    return block->count > 0;
}

INLINE int next_block(struct edges *edges, int64_t heads, struct block *block)
{
    return next_small_block(edges, heads, BLOCK / heads, block);
}

/* The node at the other end of the block's edge b. Lanes after the last edge repeat its node. */
INLINE int32_t edge_at(const struct block *block, int64_t b)
{
    return b < block->whole ? block->slot[b] : block->tail[b - block->whole];
}

/* Indices of the edges whose numbers are in the vector at `item`. */
INLINE const int32_t *indices_at(const struct block *block, int64_t heads, int64_t item)
{
    const int64_t b = item / heads;
    return b < block->whole ? block->slot + b : block->tail;
}

/* A sum over the rows of a block's edges, with one of the functions of rows.h. */
INLINE void add_block(void (*add)(const struct row_sum *, int64_t, const int32_t *), struct row_sum sum, const struct block *block)
{
    const int64_t stored = block->count - block->own;
    add(&sum, stored, block->slot);
    if (block->own) {
        sum.weight += stored * sum.heads;
        if (sum.other_weight) sum.other_weight += stored * sum.heads;
        add(&sum, 1, block->tail + stored - block->whole);
    }
}

/* Sets the lanes of a vector after the last edge to zero. */
INLINE vec only_edges(const struct block *block, int64_t heads, int64_t item, vec v)
{
    const int64_t items = block->count * heads;
    return heads < LANES && item + LANES > items ? keep(first_lanes(items - item), v) : v;
}

#endif
