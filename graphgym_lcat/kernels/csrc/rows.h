/* Sums of gathered rows with weights per edge and head: the innermost loop of attention. */
#ifndef LCAT_ROWS_H
#define LCAT_ROWS_H

#include "stored.h"

#define NOINLINE static __attribute__((noinline, unused))

/* Starts loading a row into the cache. The first lines are enough: the processor predicts the following ones. */
INLINE void prefetch_row(const void *row)
{
    __builtin_prefetch(row);
    __builtin_prefetch((const char *)row + 64);
}

enum sum_kind {
    WEIGHTED,       /* sum[c] += Σ_b weight[b, head of c] row_b[c] */
    TWICE_WEIGHTED, /* and the same with other weights into other_sum */
    POSITIVE,       /* sum[c] += Σ_b weight[b, head of c] [fixed[c] + row_b[c] > 0] */
    OF_REALS,       /* the same, with the rows of `reals` */
};

struct row_sum {
    int64_t heads, channels;
    const stored *rows;
    const real *reals, *weight, *other_weight, *fixed;
    real *sum, *other_sum;
};

/* `vectors` vectors of columns from `column` on, of which `per_head` belong to one head, the first to `head`. */
INLINE void add_tile(enum sum_kind kind, int vectors, int per_head, const struct row_sum *s, int64_t edges, const int32_t *index,
                     int64_t column, int64_t head)
{
    const int64_t width = s->heads * s->channels, heads = s->heads;
    const real *weight = s->weight + head, *other_weight = kind == TWICE_WEIGHTED ? s->other_weight + head : 0;
    const int positive = kind == POSITIVE || kind == OF_REALS;
    vec sum[4], other[4], fixed[4];
    UNROLL for (int v = 0; v < vectors; v++) {
        sum[v] = splat(0);
        if (kind == TWICE_WEIGHTED) other[v] = splat(0);
        if (positive) fixed[v] = load(s->fixed + column + v * LANES);
    }
    for (int64_t b = 0; b < edges; b++) {
        const int64_t row = index[b] * width + column;
        UNROLL for (int v = 0; v < vectors; v++) {
            const vec x = kind == OF_REALS ? load(s->reals + row + v * LANES) : load_row(s->rows + row + v * LANES);
            const real w = weight[b * heads + v / per_head];
            if (positive)
                sum[v] += keep(fixed[v] + x > 0, splat(w));
            else
                sum[v] += w * x;
            if (kind == TWICE_WEIGHTED) other[v] += other_weight[b * heads + v / per_head] * x;
        }
    }
    /* Sums over blocks are added up, so that long rows lose little precision to rounding. */
    UNROLL for (int v = 0; v < vectors; v++) {
        real *to = s->sum + column + v * LANES;
        store(to, load(to) + sum[v]);
        if (kind == TWICE_WEIGHTED) {
            to = s->other_sum + column + v * LANES;
            store(to, load(to) + other[v]);
        }
    }
}

INLINE void add_rows(enum sum_kind kind, const struct row_sum *s, int64_t edges, const int32_t *index)
{
    const int64_t heads = s->heads, channels = s->channels;
    int64_t h = 0;
    if (channels == LANES) {
        for (; h + 4 <= heads; h += 4) add_tile(kind, 4, 1, s, edges, index, h * channels, h);
        if (heads & 2) add_tile(kind, 2, 1, s, edges, index, h * channels, h);
        if (heads & 1) add_tile(kind, 1, 1, s, edges, index, h * channels, h);
    } else if (channels == 2 * LANES && heads > 1) {
        for (; h < heads; h += 2) add_tile(kind, 4, 2, s, edges, index, h * channels, h);
    } else {
        for (; h < heads; h++) {
            int64_t c = h * channels;
            const int64_t end = c + channels;
            for (; c + 4 * LANES <= end; c += 4 * LANES) add_tile(kind, 4, 4, s, edges, index, c, h);
            for (; c < end; c += LANES) add_tile(kind, 1, 1, s, edges, index, c, h);
        }
    }
}

NOINLINE void add_weighted_rows(const struct row_sum *s, int64_t edges, const int32_t *index)
{
    add_rows(WEIGHTED, s, edges, index);
}

NOINLINE void add_twice_weighted_rows(const struct row_sum *s, int64_t edges, const int32_t *index)
{
    add_rows(TWICE_WEIGHTED, s, edges, index);
}

NOINLINE void add_positive_rows(const struct row_sum *s, int64_t edges, const int32_t *index)
{
    add_rows(POSITIVE, s, edges, index);
}

NOINLINE void add_positive_reals(const struct row_sum *s, int64_t edges, const int32_t *index)
{
    add_rows(OF_REALS, s, edges, index);
}

INLINE real dot(int64_t n, const real *a, const real *b)
{
    vec total = splat(0);
    for (int64_t c = 0; c < n; c += LANES) total += load(a + c) * load(b + c);
    return lane_sum(total);
}

#endif
