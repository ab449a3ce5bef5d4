/* The number of each edge of a block in the input: where per-edge arrays hold what belongs to it.
 *
 * The implicit self-loop of node i has the number E + i, where E counts the edges of the input.
 */
#ifndef LCAT_EDGE_NUMBERS_H
#define LCAT_EDGE_NUMBERS_H

#include "block.h"

/* Numbers of the edges of a node that are still to be visited; goes along with struct edges. */
struct numbers {
    const int32_t *next;
    int32_t self;
};

/* Those of one block; like its indices, the last, incomplete vector reads them from `tail`. */
struct block_numbers {
    const int32_t *number;
    int32_t tail[LANES];
};

INLINE void next_numbers(struct numbers *numbers, int64_t heads, const struct block *block, struct block_numbers *out)
{
    const int64_t stored = block->count - block->own;
    out->number = numbers->next;
    for (int64_t b = 0; b < edges_per_vector(heads); b++)
        out->tail[b] = block->whole + b < stored ? numbers->next[block->whole + b]
                       : block->own              ? numbers->self
                       : stored                  ? numbers->next[stored - 1]
                                                 : 0;
    numbers->next += stored;
}

INLINE int32_t number_at(const struct block *block, const struct block_numbers *numbers, int64_t b)
{
    return b < block->whole ? numbers->number[b] : numbers->tail[b - block->whole];
}

INLINE const int32_t *numbers_at(const struct block *block, const struct block_numbers *numbers, int64_t heads, int64_t item)
{
    const int64_t b = item / heads;
    return b < block->whole ? numbers->number + b : numbers->tail;
}

/* One vector of the numbers per edge and head in `rows`. */
INLINE vec gather_edges(int64_t heads, int64_t part, int64_t item, const struct block *block, const struct block_numbers *numbers,
                        const real *rows)
{
    return gather(heads, part, numbers_at(block, numbers, heads, item), rows, heads);
}

INLINE void prefetch_edges(const struct block *block, const struct block_numbers *numbers, const real *rows, int64_t width)
{
    for (int64_t b = 0; b < block->count; b++) __builtin_prefetch(rows + number_at(block, numbers, b) * width);
}

/* Reads the numbers per edge and head of a block. */
INLINE void copy_edges(int64_t heads, const struct block *block, const struct block_numbers *edge, const real *rows, real *to)
{
    for (int64_t part = 0; part < period(heads); part += LANES)
        for (int64_t n = part; n < block->count * heads; n += period(heads))
            store(to + n, gather_edges(heads, part, n, block, edge, rows));
}

/* The same for rows that will be written. */
INLINE void prefetch_written_edges(const struct block *block, const struct block_numbers *numbers, const real *rows, int64_t width)
{
    for (int64_t b = 0; b < block->count; b++) __builtin_prefetch(rows + number_at(block, numbers, b) * width, 1);
}

/* Writes values[b, h] to the rows of their edges. */
INLINE void scatter_edges(int64_t heads, const struct block *block, const struct block_numbers *numbers, const real *values,
                          real *rows)
{
    for (int64_t b = 0; b < block->count; b++) {
        real *to = rows + number_at(block, numbers, b) * heads;
        for (int64_t h = 0; h < heads; h++) to[h] = values[b * heads + h];
    }
}

/* sum = Σ rows[e] over the edges of a node. */
INLINE void sum_edges(int64_t heads, struct edges edges, struct numbers numbers, const real *rows, real *sum)
{
    real lanes[MAX_HEADS];
    struct block block;
    struct block_numbers edge;
    for (int64_t h = 0; h < heads; h++) sum[h] = 0;
    while (next_block(&edges, heads, &block)) {
        next_numbers(&numbers, heads, &block, &edge);
        prefetch_edges(&block, &edge, rows, heads);
        for (int64_t part = 0; part < period(heads); part += LANES) {
            vec total = splat(0);
            for (int64_t n = part; n < block.count * heads; n += period(heads))
                total += only_edges(&block, heads, n, gather_edges(heads, part, n, &block, &edge, rows));
            store(lanes + part, total);
        }
        fold_sum(heads, lanes, sum);
    }
}

#endif
