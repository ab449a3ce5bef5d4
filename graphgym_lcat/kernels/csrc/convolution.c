/* Sums of neighbours: the mean (GCN) and the convolution of the score's input (equation 7). */
#include "rows.h"

/* Rows per task: few enough to balance the threads. Sums over all nodes are added up in blocks of this size. */
#define ROWS_PER_BLOCK 64
#define EDGES_PER_BLOCK 256

INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* total[c] += Σ_e x[col[e], c] (times weight[col[e]]) for `vectors` vectors of columns, beginning where x points. */
INLINE void sum_tile(int vectors, const real *weight, int64_t edges, const int32_t *col, const stored *x, int64_t width, real *total)
{
    vec sum[8];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = splat(0);
    for (int64_t e = 0; e < edges; e++) {
        const stored *row = x + col[e] * width;
        UNROLL for (int v = 0; v < vectors; v++) {
            const vec y = load_row(row + v * LANES);
            sum[v] += weight ? weight[col[e]] * y : y;
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) store(total + v * LANES, load(total + v * LANES) + sum[v]);
}

/* The same for a few columns. */
INLINE void sum_columns(int columns, const real *weight, int64_t edges, const int32_t *col, const stored *x, int64_t width,
                        real *total)
{
    real sum[LANES] = {0};
    for (int64_t e = 0; e < edges; e++) {
        const stored *row = x + col[e] * width;
        const real w = weight ? weight[col[e]] : 1;
        UNROLL for (int c = 0; c < columns; c++) sum[c] += w * as_real(row[c]);
    }
    UNROLL for (int c = 0; c < columns; c++) total[c] += sum[c];
}

INLINE void add_edges(const real *weight, int64_t edges, const int32_t *col, const stored *x, int64_t width, real *total)
{
    int64_t c = 0;
    for (; c + 8 * LANES <= width; c += 8 * LANES) sum_tile(8, weight, edges, col, x + c, width, total + c);
#define REST(size, sum, n)                                                                                                    \
    if ((width - c) & (size)) {                                                                                               \
        sum(n, weight, edges, col, x + c, width, total + c);                                                                  \
        c += (size);                                                                                                          \
    }
    REST(4 * LANES, sum_tile, 4)
    REST(2 * LANES, sum_tile, 2)
    REST(LANES, sum_tile, 1)
    REST(4, sum_columns, 4)
    REST(2, sum_columns, 2)
    REST(1, sum_columns, 1)
#undef REST
}

/* total = Σ_e weight[col[e]] x[col[e]]: sums over blocks are added up, so that long rows lose little precision to rounding. */
INLINE void sum_row_(const real *weight, int64_t edges, const int32_t *col, const stored *x, int64_t width, real *total)
{
    for (int64_t c = 0; c < width; c++) total[c] = 0;
    for (int64_t e = 0; e < edges; e += EDGES_PER_BLOCK)
        add_edges(weight, smaller(edges - e, EDGES_PER_BLOCK), col + e, x, width, total);
}

NOINLINE void sum_row(int64_t edges, const int32_t *col, const stored *x, int64_t width, real *total)
{
    sum_row_(0, edges, col, x, width, total);
}

NOINLINE void weighted_sum_row(const real *weight, int64_t edges, const int32_t *col, const stored *x, int64_t width, real *total)
{
    sum_row_(weight, edges, col, x, width, total);
}

/* The same without the edges whose other end is `self`. */
NOINLINE void sum_others(int32_t self, int64_t edges, const int32_t *col, const stored *x, int64_t width, real *total)
{
    for (int64_t c = 0; c < width; c++) total[c] = 0;
    for (int64_t first = 0, last; first < edges; first = last + 1) {
        for (last = first; last < edges && last < first + EDGES_PER_BLOCK && col[last] != self;) last++;
        add_edges(0, last - first, col + first, x, width, total);
        if (last < edges && col[last] != self) last--;
    }
}

/* out_i = mean of x_j over the in-edges of i and, for i < self_loops, i itself; 0 if there are none. Returns 0, or 1 if there is no
 * memory. */
int EXPORT(mean_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, const stored *x,
                         int64_t width, stored *out, int threads)
{
    struct rooms rooms = make_rooms(threads, 0, 2 * width);
    if (!rooms.memory) return 1;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *const room = take_room(&rooms);
#pragma omp for schedule(dynamic, ROWS_PER_BLOCK)
        for (int64_t i = 0; i < rows; i++) {
            const int64_t edges = rowptr[i + 1] - rowptr[i];
            const int loop = i < self_loops;
            real *total = sums_of(out + i * width, room);
            sum_row(edges, col + rowptr[i], x, width, total);
            const real scale = edges + loop ? 1 / (real)(edges + loop) : 0;
            if (loop) {
                const real *own = as_reals(width, x + i * width, room + width);
                for (int64_t c = 0; c < width; c++) total[c] = (total[c] + own[c]) * scale;
            } else {
                for (int64_t c = 0; c < width; c++) total[c] *= scale;
            }
            write_row(width, total, out + i * width);
        }
    }
    free(rooms.memory);
    return 0;
}

/* The transpose: grad_x_j = Σ_i grad_i / |N*_i|. `scale` has room for one number per destination. Returns 0, or 1 if there is no
 * memory. */
int EXPORT(mean_backward)(int64_t rows, const int64_t *rowptr, int64_t cols, const int64_t *colptr, const int32_t *row,
                          int64_t self_loops, const stored *grad, int64_t width, real *scale, stored *grad_x, int threads)
{
    struct rooms rooms = make_rooms(threads, 0, 2 * width);
    if (!rooms.memory) return 1;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t count = rowptr[i + 1] - rowptr[i] + (i < self_loops);
        scale[i] = count ? 1 / (real)count : 0;
    }
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *const room = take_room(&rooms);
#pragma omp for schedule(dynamic, ROWS_PER_BLOCK)
        for (int64_t j = 0; j < cols; j++) {
            real *total = sums_of(grad_x + j * width, room);
            weighted_sum_row(scale, colptr[j + 1] - colptr[j], row + colptr[j], grad, width, total);
            if (j < self_loops) {
                const real *own = as_reals(width, grad + j * width, room + width);
                for (int64_t c = 0; c < width; c++) total[c] += scale[j] * own[c];
            }
            write_row(width, total, grad_x + j * width);
        }
    }
    free(rooms.memory);
    return 0;
}

/* out_i = (target_i + λ s_i) / (1 + λ n_i) with s = A source and n_i = |N_i|; A is without the `loops[i]` self-loops among the
 * edges of i (none if loops is NULL). There are `heads` values of λ, each for width / heads columns.
 * Its derivative by λ is slope_i / (1 + λ n_i) with slope_i = (s_i − n_i target_i) / (1 + λ n_i), kept unless slope is NULL.
 * Returns 0, or 1 if there is no memory. */
int EXPORT(convolve_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, const int32_t *loops, const stored *target,
                             const stored *source, int64_t width, const real *lambda, int64_t heads, stored *out, stored *slope,
                             int threads)
{
    const int64_t channels = width / heads;
    struct rooms rooms = make_rooms(threads, 0, 3 * width);
    if (!rooms.memory) return 1;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *const room = take_room(&rooms);
#pragma omp for schedule(dynamic, ROWS_PER_BLOCK)
        for (int64_t i = 0; i < rows; i++) {
            const int64_t edges = rowptr[i + 1] - rowptr[i], own = loops ? loops[i] : 0;
            const real n = (real)(edges - own);
            const real *mine = as_reals(width, target + i * width, room);
            real *total = sums_of(out + i * width, room + width);
            real *my_slope = slope ? sums_of(slope + i * width, room + 2 * width) : 0;
            if (own)
                sum_others((int32_t)i, edges, col + rowptr[i], source, width, total);
            else
                sum_row(edges, col + rowptr[i], source, width, total);
            for (int64_t h = 0; h < heads; h++) {
                const real l = lambda[h], scale = 1 / (1 + l * n);
                if (slope)
                    for (int64_t c = h * channels; c < (h + 1) * channels; c++) my_slope[c] = (total[c] - n * mine[c]) * scale;
                for (int64_t c = h * channels; c < (h + 1) * channels; c++) total[c] = (mine[c] + l * total[c]) * scale;
            }
            write_row(width, total, out + i * width);
            if (slope) write_row(width, my_slope, slope + i * width);
        }
    }
    free(rooms.memory);
    return 0;
}

/* With u_i = grad_i / (1 + λ n_i): grad_target = u, grad_source = λ Aᵀ u, and, unless slope is NULL, grad_λ = Σ_i u_i · slope_i.
 * Returns 0, or 1 if there is no memory. */
int EXPORT(convolve_backward)(int64_t rows, const int64_t *rowptr, int64_t cols, const int64_t *colptr, const int32_t *row,
                              const int32_t *loops, const stored *slope, const stored *grad, int64_t width, const real *lambda,
                              int64_t heads, stored *grad_target, stored *grad_source, real *grad_lambda, int threads)
{
    const int64_t channels = width / heads, blocks = (rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
    /* Summed within blocks of nodes, then over the blocks in order, so that the result does not depend on the number of threads. */
    double *partial = calloc((size_t)(blocks * heads) + 1, sizeof *partial);
    struct rooms rooms = make_rooms(threads, 0, 3 * width);
    if (!partial || !rooms.memory) {
        free(partial);
        free(rooms.memory);
        return 1;
    }

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *const room = take_room(&rooms);
#pragma omp for schedule(static)
        for (int64_t block = 0; block < blocks; block++)
            for (int64_t i = block * ROWS_PER_BLOCK; i < smaller(rows, (block + 1) * ROWS_PER_BLOCK); i++) {
                const real n = (real)(rowptr[i + 1] - rowptr[i] - (loops ? loops[i] : 0));
                const real *my_grad = as_reals(width, grad + i * width, room);
                const real *my_slope = slope ? as_reals(width, slope + i * width, room + width) : 0;
                real *u = sums_of(grad_target + i * width, room + 2 * width);
                for (int64_t h = 0; h < heads; h++) {
                    const real scale = 1 / (1 + lambda[h] * n);
                    const int64_t first = h * channels, last = first + channels;
                    for (int64_t c = first; c < last; c++) u[c] = my_grad[c] * scale;
                    if (!slope) continue;
                    real product = 0;
#pragma omp simd reduction(+ : product)
                    for (int64_t c = first; c < last; c++) product += u[c] * my_slope[c];
                    partial[block * heads + h] += (double)product;
                }
                write_row(width, u, grad_target + i * width);
            }
#pragma omp for schedule(dynamic, ROWS_PER_BLOCK)
        for (int64_t j = 0; j < cols; j++) {
            real *total = sums_of(grad_source + j * width, room);
            if (loops && j < rows && loops[j])
                sum_others((int32_t)j, colptr[j + 1] - colptr[j], row + colptr[j], grad_target, width, total);
            else
                sum_row(colptr[j + 1] - colptr[j], row + colptr[j], grad_target, width, total);
            for (int64_t h = 0; h < heads; h++)
                for (int64_t c = h * channels; c < (h + 1) * channels; c++) total[c] *= lambda[h];
            write_row(width, total, grad_source + j * width);
        }
    }
    if (slope)
        for (int64_t h = 0; h < heads; h++) {
            double sum = 0;
            for (int64_t block = 0; block < blocks; block++) sum += partial[block * heads + h];
            grad_lambda[h] = (real)sum;
        }
    free(partial);
    free(rooms.memory);
    return 0;
}
