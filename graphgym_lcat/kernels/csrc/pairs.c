/* Attention over all pairs of a dense graph whose score needs one number per node: the synthetic experiments, 10⁸ pairs per graph.
 *
 * The score of receiver i and sender j is scale · [clip(s_i − s_j) − clip(s_i + s_j)] + column_j, clipped at ±bound, over the
 * j with adjacency[i, j] ≠ 0 and i itself. Arrays over nodes have room for a multiple of LANES numbers.
 */
#include <stdlib.h>

#include "vector.h"

#define ABSENT ((real)-1e30)
#define MAX_VALUES 8

typedef uint8_t bytes __attribute__((vector_size(LANES)));

INLINE vec clip(vec x, real bound) { return choose(x > bound, splat(bound), choose(x < -bound, splat(-bound), x)); }

INLINE vec pair_score(real receiver, vec sender, vec column, real bound, real scale)
{
    return scale * (clip(receiver - sender, bound) - clip(receiver + sender, bound)) + column;
}

/* Which of the pairs j … j + LANES − 1 of a row of n are edges. */
INLINE mask edges_at(const uint8_t *row, int64_t j, int64_t n)
{
    bytes present = {0};
    memcpy(&present, row + j, n - j < LANES ? (size_t)(n - j) : LANES);
    return __builtin_convertvector(present, mask) != 0;
}

INLINE void attend_row(int64_t n, int64_t i, const uint8_t *adjacency, const real *input, const real *column, real bound, real scale,
                       int64_t count, int64_t stride, const real *values, real *scores, real *out)
{
    vec top = splat(ABSENT), total = splat(0), sums[MAX_VALUES];
    const int64_t whole = n - n % LANES;
    for (int64_t j = 0; j < n; j += LANES) {
        const mask edges = j < whole ? edges_at(adjacency, j, whole) : edges_at(adjacency, j, n);
        const vec score = choose(edges, pair_score(input[i], load(input + j), load(column + j), bound, scale), splat(ABSENT));
        store(scores + j, score);
        top = larger(top, score);
    }
    const real own = pair_score(input[i], splat(input[i]), splat(column[i]), bound, scale)[0];
    real shift = scores[i] = own;
    for (int l = 0; l < LANES; l++)
        if (top[l] > shift) shift = top[l];
    UNROLL for (int64_t v = 0; v < count; v++) sums[v] = splat(0);
    for (int64_t j = 0; j < n; j += LANES) {
        const vec weight = exponential(load(scores + j) - shift);
        total += weight;
        UNROLL for (int64_t v = 0; v < count; v++) sums[v] += weight * load(values + v * stride + j);
    }
    const real factor = 1 / lane_sum(total);
    for (int64_t v = 0; v < count; v++) out[v] = lane_sum(sums[v]) * factor;
}

/* out[i, v] = Σ_j γ_ij values[v, j] for up to MAX_VALUES rows of values, which lie `stride` numbers apart. Returns 0, or 1 if there is
 * no memory. */
int EXPORT(attend_pairs)(int64_t n, const uint8_t *adjacency, const real *input, const real *column, double bound, double scale,
                         int64_t count, int64_t stride, const real *values, real *out, int threads)
{
    real *const workspace = malloc((size_t)threads * stride * sizeof *workspace);
    if (!workspace) return 1;
    real *unused = workspace;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *scores;
#pragma omp critical
        {
            scores = unused;
            unused += stride;
        }
#define ROW(count) \
    attend_row(n, i, adjacency + i * n, input, column, (real)bound, (real)scale, count, stride, values, scores, out + i * count)
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
            if (count == 4)
                ROW(4);
            else
                ROW(count);
#undef ROW
    }
    free(workspace);
    return 0;
}
