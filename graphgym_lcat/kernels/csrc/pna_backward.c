/* Statistics of messages, the backward pass: see pna.h. */
#include <stdlib.h>

#include "pna.h"

#define COLUMNS_PER_LINE (64 / (int64_t)sizeof(real)) /* of the cache: threads do not write to the same */

/* What the backward pass knows. `node` has, side by side for each destination, what its sources need: a + b u, b; with weights a, b u, b. */
struct gradients {
    int64_t count;
    const int64_t *place;
    const real *state, *grad;
    const int32_t *places;
    real *node;
    real *grad_u, *grad_v, *grad_weight;
};

/* The gradient of one statistic, 0 if nobody asked for it. */
INLINE vec gradient_of(const struct gradients *g, enum statistic kind, int64_t width, int64_t i, int64_t column)
{
    return g->place[kind] < 0 ? splat(0) : load(g->grad + (i * g->count + g->place[kind]) * width + column);
}

/* Where the maximum or minimum of row i stands, in a vector of columns. */
INLINE const int32_t *places_of(const struct gradients *g, enum statistic kind, int64_t width, int64_t i, int64_t column)
{
    return g->places + (2 * i + (kind == MIN)) * width + column;
}

INLINE int any_marked(const int32_t *places)
{
    int32_t any = 0;
    for (int l = 0; l < LANES; l++) any |= places[l];
    return any < 0;
}

/* The value of an extreme, and the gradient that each message equal to it receives: for vectors with marked positions. */
struct extreme {
    vec value, grad;
};

NOINLINE struct extreme find_ties(const struct messages *p, const struct gradients *g, enum statistic kind, int64_t i, int64_t column,
                                  int64_t head)
{
    const int64_t first = p->rowptr[i], last = p->rowptr[i + 1];
    struct extreme x = {message(p, i, first, column, head), gradient_of(g, kind, p->width, i, column)};
    mask ties = splat_bits(0);
    for (int64_t slot = first + 1; slot < last; slot++) {
        const vec m = message(p, i, slot, column, head);
        x.value = kind == MAX ? maximum(m, x.value) : minimum(m, x.value);
    }
    for (int64_t slot = first; slot < last; slot++) ties -= message(p, i, slot, column, head) == x.value;
    ties -= x.value == 0;
    for (int l = 0; l < LANES; l++) x.grad[l] /= (real)(ties[l] ? ties[l] : 1);
    return x;
}

/* The share of an extreme's gradient that goes to u; that of the weights is added to theirs. */
NOINLINE vec ties_to_row(const struct messages *p, const struct gradients *g, enum statistic kind, int64_t i, int64_t column,
                         int64_t head)
{
    const struct extreme x = find_ties(p, g, kind, i, column, head);
    const vec u = load(p->u + i * p->width + column);
    vec sum = splat(0);
    for (int64_t slot = p->rowptr[i]; slot < p->rowptr[i + 1]; slot++) {
        const vec received = keep(message(p, i, slot, column, head) == x.value, x.grad);
        if (p->weight) {
            const int64_t n = slot * p->heads + head;
            g->grad_weight[n] += lane_sum(received * (u + load(p->v + p->col[slot] * p->width + column)));
            sum += received * p->weight[n];
        } else {
            sum += received;
        }
    }
    return sum;
}

INLINE vec extreme_to_row(const int weighted, const struct messages *p, const struct gradients *g, enum statistic kind, int64_t i,
                          int64_t column, int64_t head)
{
    const int64_t first = p->rowptr[i], heads = p->heads, width = p->width;
    const int32_t *places = places_of(g, kind, width, i, column), *col = p->col + first;
    if (any_marked(places)) return ties_to_row(p, g, kind, i, column, head);
    if (!weighted) return gradient_of(g, kind, width, i, column);
    const real *grad = g->grad + (i * g->count + g->place[kind]) * width + column, *u = p->u + i * width + column, *v = p->v + column;
    const real *weight = p->weight + first * heads + head;
    real *grad_weight = g->grad_weight + first * heads + head;
    real sum[LANES];
    for (int l = 0; l < LANES; l++) {
        const int64_t e = places[l];
        grad_weight[e * heads] += grad[l] * (u[l] + v[col[e] * width + l]);
        sum[l] = grad[l] * weight[e * heads];
    }
    return load(sum);
}

/* The share that goes to v. */
NOINLINE void ties_to_columns(const struct messages *p, const struct gradients *g, enum statistic kind, int64_t i, int64_t column,
                              int64_t head)
{
    const struct extreme x = find_ties(p, g, kind, i, column, head);
    for (int64_t slot = p->rowptr[i]; slot < p->rowptr[i + 1]; slot++) {
        vec received = keep(message(p, i, slot, column, head) == x.value, x.grad);
        if (p->weight) received *= p->weight[slot * p->heads + head];
        real *to = g->grad_v + p->col[slot] * p->width + column;
        store(to, load(to) + received);
    }
}

INLINE void extreme_to_columns(const int weighted, const struct messages *p, const struct gradients *g, enum statistic kind,
                               int64_t i, int64_t column, int64_t head)
{
    const int64_t first = p->rowptr[i], heads = p->heads, width = p->width;
    const int32_t *places = places_of(g, kind, width, i, column), *col = p->col + first;
    if (any_marked(places)) {
        ties_to_columns(p, g, kind, i, column, head);
        return;
    }
    const real *grad = g->grad + (i * g->count + g->place[kind]) * width + column;
    const real *weight = weighted ? p->weight + first * heads + head : 0;
    real *to = g->grad_v + column;
    for (int l = 0; l < LANES; l++) {
        const int64_t e = places[l];
        to[col[e] * width + l] += weighted ? grad[l] * weight[e * heads] : grad[l];
    }
}

/* All extremes of the columns begin … end − 1: the nodes in their order, however the columns are divided among threads. */
INLINE void extremes_to_columns(const int weighted, const struct messages *p, const struct gradients *g, int extremes, int64_t rows,
                                int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < rows; i++) {
        if (p->rowptr[i] == p->rowptr[i + 1]) continue;
        int64_t head = begin / p->channels;
        for (int64_t c = begin; c < end; c += LANES) {
            if (c >= (head + 1) * p->channels) head++;
            if (extremes & 1) extreme_to_columns(weighted, p, g, MAX, i, c, head);
            if (extremes & 2) extreme_to_columns(weighted, p, g, MIN, i, c, head);
        }
    }
}

/* Gradients of the weights, and a block-wise sum for u: `vectors` and `per_head` as above. `continued`: other columns of the head went before. */
INLINE void row_tile(const int vectors, const int per_head, const struct messages *p, const struct gradients *g, int64_t i,
                     int64_t column, int64_t head)
{
    const int64_t first = p->rowptr[i], edges = p->rowptr[i + 1] - first, width = p->width, heads = p->heads;
    const int continued = column != head * p->channels;
    const int32_t *col = p->col + first;
    const real *rows = p->v + column, *weight = p->weight + first * heads + head, *node = g->node + 3 * i * width + column;
    real *to_weight = g->grad_weight + first * heads + head;
    vec own[4], a[4], b[4], total[4];
    UNROLL for (int v = 0; v < vectors; v++) {
        own[v] = load(p->u + i * width + column + v * LANES);
        a[v] = load(node + v * LANES);
        b[v] = load(node + 2 * width + v * LANES);
        total[v] = splat(0);
    }
    for (int64_t begin = 0; begin < edges; begin += EDGES_PER_BLOCK) {
        const int64_t end = smaller(edges, begin + EDGES_PER_BLOCK);
        vec sum[4];
        UNROLL for (int v = 0; v < vectors; v++) sum[v] = splat(0);
        for (int64_t e = begin; e < end; e++) {
            const real *row = rows + col[e] * width;
            vec product[4];
            UNROLL for (int v = 0; v < vectors; v++) {
                const real w = weight[e * heads + v / per_head];
                const vec x = own[v] + load(row + v * LANES), d = a[v] + b[v] * (w * x);
                sum[v] += w * d;
                product[v] = d * x;
            }
            if (vectors == 4 && per_head == 1) {
                lane_sums(product, to_weight + e * heads);
            } else {
                vec all = product[0];
                UNROLL for (int v = 1; v < vectors; v++) all += product[v];
                to_weight[e * heads] = (continued ? to_weight[e * heads] : 0) + lane_sum(all);
            }
        }
        UNROLL for (int v = 0; v < vectors; v++) total[v] += sum[v];
    }
    UNROLL for (int v = 0; v < vectors; v++) store(g->grad_u + i * width + column + v * LANES, total[v]);
}

NOINLINE void weighted_row(const struct messages *p, const struct gradients *g, int64_t i)
{
#define TILE(vectors, per_head, column, head) row_tile(vectors, per_head, p, g, i, column, head)
    EACH_TILE(4, p)
#undef TILE
}

/* What belongs to the destination i. */
INLINE void backward_row(const int weighted, const struct messages *p, const struct gradients *g, int extremes, int64_t i)
{
    const int64_t width = p->width;
    const real n = (real)(p->rowptr[i + 1] - p->rowptr[i]);
    real *node = g->node + (weighted ? 3 : 2) * i * width, *to = g->grad_u + i * width;
    for (int64_t c = 0; c < width; c += LANES) {
        const vec u = load(p->u + i * width + c), mean = load(g->state + 2 * i * width + c);
        const vec of_sum = gradient_of(g, SUM, width, i, c), of_mean = gradient_of(g, MEAN, width, i, c);
        const vec of_var = gradient_of(g, VAR, width, i, c);
        const vec of_std = gradient_of(g, STD, width, i, c) * load(g->state + (2 * i + 1) * width + c);
        const vec b = (2 * of_var + of_std) / n, a = of_sum + of_mean / n - b * mean;
        if (weighted) {
            store(node + c, a);
            store(node + width + c, b * u);
            store(node + 2 * width + c, b);
        } else {
            store(node + c, a + b * u);
            store(node + width + c, b);
            store(to + c, of_mean + n * of_sum); /* the variance does not depend on u */
        }
    }
    if (weighted) weighted_row(p, g, i);
    int64_t head = 0;
    for (int64_t c = 0; c < width; c += LANES) {
        if (c >= (head + 1) * p->channels) head++;
        vec sum = load(to + c);
        if (extremes & 1) sum += extreme_to_row(weighted, p, g, MAX, i, c, head);
        if (extremes & 2) sum += extreme_to_row(weighted, p, g, MIN, i, c, head);
        store(to + c, sum);
    }
}

/* What belongs to the source j, without the extremes. `slot` tells where the edges of the columns stand in the rows. */
INLINE void column_tile(const int vectors, const int per_head, const int weighted, const struct messages *p, const struct gradients *g,
                        int64_t edges, const int32_t *row, const int32_t *slot, int64_t j, int64_t column, int64_t head)
{
    const int64_t width = p->width, heads = p->heads, stride = (weighted ? 3 : 2) * width;
    const real *node = g->node + column, *weight = weighted ? p->weight + head : 0;
    vec total[4], slope[4];
    UNROLL for (int v = 0; v < vectors; v++) total[v] = slope[v] = splat(0);
    for (int64_t begin = 0; begin < edges; begin += EDGES_PER_BLOCK) {
        const int64_t end = smaller(edges, begin + EDGES_PER_BLOCK);
        vec sum[4], slope_sum[4];
        UNROLL for (int v = 0; v < vectors; v++) sum[v] = slope_sum[v] = splat(0);
        for (int64_t e = begin; e < end; e++) {
            const real *from = node + row[e] * stride;
            const real *w = weighted ? weight + slot[e] * heads : 0;
            UNROLL for (int v = 0; v < vectors; v++) {
                if (weighted) {
                    const real x = w[v / per_head];
                    sum[v] += x * (load(from + v * LANES) + x * load(from + width + v * LANES));
                    slope_sum[v] += x * x * load(from + 2 * width + v * LANES);
                } else {
                    sum[v] += load(from + v * LANES);
                    slope_sum[v] += load(from + width + v * LANES);
                }
            }
        }
        UNROLL for (int v = 0; v < vectors; v++) {
            total[v] += sum[v];
            slope[v] += slope_sum[v];
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        const int64_t c = j * width + column + v * LANES;
        store(g->grad_v + c, total[v] + load(p->v + c) * slope[v]);
    }
}

NOINLINE void weighted_column(const struct messages *p, const struct gradients *g, int64_t edges, const int32_t *row,
                              const int32_t *slot, int64_t j)
{
#define TILE(vectors, per_head, column, head) column_tile(vectors, per_head, 1, p, g, edges, row, slot, j, column, head)
    EACH_TILE(4, p)
#undef TILE
}

NOINLINE void plain_column(const struct messages *p, const struct gradients *g, int64_t edges, const int32_t *row, int64_t j)
{
#define TILE(vectors, per_head, column, head) column_tile(vectors, per_head, 0, p, g, edges, row, 0, j, column, head)
    EACH_TILE(4, p)
#undef TILE
}

/* weight, slot and grad_weight are NULL without weights. Returns 0, or 1 if there is no memory. */
int EXPORT(pna_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                         const int32_t *row, const int32_t *slot, int64_t heads, int64_t channels, const real *u, const real *v,
                         const real *weight, int64_t count, const int64_t *place, const real *state, const int32_t *places,
                         const real *grad, real *grad_u, real *grad_v, real *grad_weight, int threads)
{
    const int64_t width = heads * channels;
    const struct messages messages = {rowptr, col, heads, channels, width, u, v, weight};
    real *node = malloc(((size_t)rows * (weight ? 3 : 2) * (size_t)width + 1) * sizeof *node);
    if (!node) return 1;
    const struct gradients gradients = {count, place, state, grad, places, node, grad_u, grad_v, grad_weight};
    const int64_t columns = (width + threads * COLUMNS_PER_LINE - 1) / (threads * COLUMNS_PER_LINE) * COLUMNS_PER_LINE;
    const int extremes = (place[MAX] >= 0) | (place[MIN] >= 0) << 1;

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++) {
            if (rowptr[i] == rowptr[i + 1])
                memset(grad_u + i * width, 0, (size_t)width * sizeof *grad_u);
            else if (weight)
                backward_row(1, &messages, &gradients, extremes, i);
            else
                backward_row(0, &messages, &gradients, extremes, i);
        }
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t j = 0; j < cols; j++) {
            const int64_t edges = colptr[j + 1] - colptr[j];
            if (weight)
                weighted_column(&messages, &gradients, edges, row + colptr[j], slot + colptr[j], j);
            else
                plain_column(&messages, &gradients, edges, row + colptr[j], j);
        }
        if (extremes)
#pragma omp for schedule(dynamic, 1)
            for (int64_t begin = 0; begin < width; begin += columns) {
                if (weight)
                    extremes_to_columns(1, &messages, &gradients, extremes, rows, begin, smaller(width, begin + columns));
                else
                    extremes_to_columns(0, &messages, &gradients, extremes, rows, begin, smaller(width, begin + columns));
            }
    }
    free(node);
    return 0;
}
