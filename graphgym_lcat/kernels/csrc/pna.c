/* Statistics of messages, the forward pass: see pna.h. */
#include "pna.h"

/* Vectors that are worked on at once: what belongs to them fits into the registers. */
#define TILE_SIZE 2

INLINE vec square_root(vec x)
{
    vec y;
    for (int l = 0; l < LANES; l++) y[l] = sizeof(real) == 4 ? __builtin_sqrtf((float)x[l]) : __builtin_sqrt(x[l]);
    return y;
}

/* What the caller wants to know: statistic s stands at place[s] of `count` in `out` [rows, count, width], or nowhere (−1). */
struct results {
    int64_t count;
    const int64_t *place;
    real *out;
    real *state;    /* [rows, 2, width]: mean, 1 / std; NULL if no gradient is needed */
    int32_t *places; /* [rows, 2, width]: position of the maximum, of the minimum */
};

/* Positions of an extreme: where it was found, marked unless that was exactly one, which was not 0. */
INLINE void store_places(int32_t *to, vec extreme, mask count, mask places)
{
    places |= ((count != 1) | (extreme == 0)) & MARK;
    for (int l = 0; l < LANES; l++) to[l] = (int32_t)places[l];
}

INLINE void store_statistics(const struct results *r, int64_t width, int64_t i, int64_t column, real n, vec origin, vec total,
                             vec squares, vec top, vec bottom)
{
    const real epsilon = (real)1e-5, least = (real)0.0031622776601683794; /* its root, which PyG compares with */
    const vec offset = total / n, mean = origin + offset, var = squares / n - offset * offset;
    vec std = square_root(choose(var < epsilon, splat(epsilon), var));
    std = choose(std <= least, splat(0), std);
    top = choose(total != total, total, top);
    bottom = choose(total != total, total, bottom);
    const vec values[STATISTICS] = {mean * n, mean, bottom, top, var, std};
    UNROLL for (int s = 0; s < STATISTICS; s++)
        if (r->place[s] >= 0) store(r->out + (i * r->count + r->place[s]) * width + column, values[s]);
    if (r->state) {
        store(r->state + 2 * i * width + column, mean);
        store(r->state + (2 * i + 1) * width + column, choose(std == 0, splat(0), 1 / std));
    }
}

/* `vectors` vectors of columns from `column` on, of which `per_head` belong to one head, the first to `head`. */
INLINE void statistics_tile(const int vectors, const int per_head, const int weighted, const struct messages *p,
                            const struct results *r, int64_t i, int64_t column, int64_t head)
{
    const int64_t first = p->rowptr[i], edges = p->rowptr[i + 1] - first, width = p->width, heads = p->heads;
    const int32_t *col = p->col + first;
    const real *rows = p->v + column, *weight = weighted ? p->weight + first * heads + head : 0;
    vec own[4], origin[4], total[4], squares[4], top[4], bottom[4];

    UNROLL for (int v = 0; v < vectors; v++) {
        own[v] = load(p->u + i * width + column + v * LANES);
        vec m = own[v] + load(rows + col[0] * width + v * LANES);
        if (weighted) m *= weight[v / per_head];
        /* Deviations from the first message: no digits are lost where all messages are large and alike. */
        origin[v] = choose(m - m == 0, m, splat(0));
        total[v] = m - origin[v];
        squares[v] = total[v] * total[v];
        top[v] = bottom[v] = m;
    }
    for (int64_t begin = 1; begin < edges; begin += EDGES_PER_BLOCK) {
        const int64_t end = smaller(edges, begin + EDGES_PER_BLOCK);
        vec sum[4], square[4];
        UNROLL for (int v = 0; v < vectors; v++) sum[v] = square[v] = splat(0);
        for (int64_t e = begin; e < end; e++) {
            const real *row = rows + col[e] * width;
            UNROLL for (int v = 0; v < vectors; v++) {
                vec m = own[v] + load(row + v * LANES);
                if (weighted) m *= weight[e * heads + v / per_head];
                const vec d = m - origin[v];
                sum[v] += d;
                square[v] += d * d;
                top[v] = maximum(m, top[v]);
                bottom[v] = minimum(m, bottom[v]);
            }
        }
        UNROLL for (int v = 0; v < vectors; v++) {
            total[v] += sum[v];
            squares[v] += square[v];
        }
    }
    UNROLL for (int v = 0; v < vectors; v++)
        store_statistics(r, width, i, column + v * LANES, (real)edges, origin[v], total[v], squares[v], top[v], bottom[v]);
    if (!r->state) return;

    mask top_at[4], bottom_at[4], top_count[4], bottom_count[4];
    UNROLL for (int v = 0; v < vectors; v++) top_at[v] = bottom_at[v] = top_count[v] = bottom_count[v] = splat_bits(0);
    for (int64_t e = 0; e < edges; e++) {
        const real *row = rows + col[e] * width;
        const mask at = splat_bits((bits)e);
        UNROLL for (int v = 0; v < vectors; v++) {
            vec m = own[v] + load(row + v * LANES);
            if (weighted) m *= weight[e * heads + v / per_head];
            const mask is_top = m == top[v], is_bottom = m == bottom[v];
            top_at[v] |= is_top & at;
            top_count[v] -= is_top;
            bottom_at[v] |= is_bottom & at;
            bottom_count[v] -= is_bottom;
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        int32_t *to = r->places + 2 * i * width + column + v * LANES;
        store_places(to, top[v], top_count[v], top_at[v]);
        store_places(to + width, bottom[v], bottom_count[v], bottom_at[v]);
    }
}

NOINLINE void weighted_statistics_row(const struct messages *p, const struct results *r, int64_t i)
{
#define TILE(vectors, per_head, column, head) statistics_tile(vectors, per_head, 1, p, r, i, column, head)
    EACH_TILE(TILE_SIZE, p)
#undef TILE
}

NOINLINE void plain_statistics_row(const struct messages *p, const struct results *r, int64_t i)
{
#define TILE(vectors, per_head, column, head) statistics_tile(vectors, per_head, 0, p, r, i, column, head)
    EACH_TILE(TILE_SIZE, p)
#undef TILE
}

int EXPORT(pna_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t heads, int64_t channels, const real *u,
                        const real *v, const real *weight, int64_t count, const int64_t *place, real *out, real *state,
                        int32_t *places, int threads)
{
    const int64_t width = heads * channels;
    const struct messages messages = {rowptr, col, heads, channels, width, u, v, weight};
    const struct results results = {count, place, out, state, places};
#pragma omp parallel for schedule(dynamic, ROWS_PER_TASK) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        if (rowptr[i] == rowptr[i + 1]) {
            memset(out + i * count * width, 0, (size_t)(count * width) * sizeof *out);
            if (state) {
                memset(state + 2 * i * width, 0, (size_t)(2 * width) * sizeof *state);
                memset(places + 2 * i * width, 0, (size_t)(2 * width) * sizeof *places);
            }
        } else if (weight)
            weighted_statistics_row(&messages, &results, i);
        else
            plain_statistics_row(&messages, &results, i);
    }
    return 0;
}
