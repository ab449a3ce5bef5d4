/* Attention with the score of GATv2, e_ij = att · LeakyReLU(q_i + k_j + W a_ij), with or without features a of edges, and dropout; and
 * its coefficients. One pass over the edges forward, two backward.
 *
 * Kept for the backward pass, per node: γ_ij = exp(e_ij − shift_i) · scale_i. The gradient of the score is
 * d_ij = γ_ij (g_i · v_j − D_i), D_i = g_i · out_i, computed again in both passes (over rows for q, over columns for k and v).
 * LeakyReLU' = slope + (1 − slope) [t > 0] with t = q_i + k_j + W a_ij, so that both need only sums of d_ij and of d_ij where a
 * channel is positive. Because LeakyReLU(t) = t LeakyReLU'(t),
 *   grad att = Σ_i q_i ∘ (grad q_i / att) + Σ_j k_j ∘ (grad k_j / att) + Σ_d W_d ∘ (Σ s_ij a_ijᵀ)_d,  s_ij = d_ij LeakyReLU'(t),
 * follows from the sums per node that the passes have computed, and the gradient of W is att ∘ Σ s_ij a_ijᵀ.
 *
 * If all edges of the graph go both ways, q = k, and edges have no features, one pass backward serves for both.
 *
 * Heads are 1, 2, 4 or a multiple of 8 up to 64; depth (of q, k) and channels (of v) are multiples of 8. The caller pads. W is
 * [heads · depth, edge_dim]. Arrays over edges are in the order of the input, implicit self-loops last (features of self-loops are an
 * array of their own); the rows of edges that the layout does not hold are neither read nor written.
 */
#include "gatv2_call.h"
#include "gatv2_rows.h"
#include "softmax.h"

int EXPORT(gatv2_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, EXTRA_ARGUMENTS, int64_t heads,
                          int64_t depth, int64_t channels, const stored *q, const stored *k, const stored *v, const real *att,
                          const stored *features, const stored *loop_features, int64_t edge_dim, const real *weight, double slope,
                          stored *out, real *shift, real *scale, int threads)
{
    const int64_t width = heads * depth, value_width = heads * channels;
    const struct pairs p = {heads, depth, channels, edge_dim, q, k, v, features, loop_features, att, weight, (real)slope};
    struct pair_extras shared = {.dropout = make_dropout(seed, probability), .edge_count = edge_count};
    struct rooms rooms;
    int32_t identity[BLOCK];
    if (prepare(&p, threads, identity, &shared, &rooms)) return 1;
    (void)edge_by_col;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const struct pair_extras extras = take_extras(&p, &shared, &rooms);
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++) {
            const real *my_q = as_reals(width, q + i * width, extras.room);
            real *sums = sums_of(out + i * value_width, extras.room + width);
#define CALL(heads)                                                                                                           \
    gatv2_forward_row(heads, depth, channels, edges_of(col, rowptr, i, self_loops), my_q, k, v, att, p.slope, &extras,        \
                      numbers_of(edge_by_row, rowptr, i, edge_count), sums, shift + i * heads, scale + i * heads)
            BY_HEADS(CALL)
#undef CALL
            write_row(value_width, sums, out + i * value_width);
        }
    }
    release(&shared, &rooms);
    return 0;
}

INLINE void coefficients_row(const struct pairs *p, struct edges edges, struct numbers numbers, const struct pair_extras *extras,
                             const real *q, real *gamma, real *shift, real *scale)
{
    const int64_t heads = p->heads, width = heads * p->depth;
    const struct edges all_edges = edges;
    const struct numbers all_numbers = numbers;
    real scores[BLOCK + LANES], sum[MAX_HEADS];
    struct block block, next, projected;
    struct block_numbers edge;
    int blocks = 0;

    for (int64_t h = 0; h < heads; h++) {
        shift[h] = LOWEST;
        sum[h] = 0;
    }
    while (next_pairs(&edges, heads, extras, &next)) {
        block = next;
        next_numbers(&numbers, heads, &block, &edge);
        prefetch_block(&block, p->k, width);
        prefetch_written_edges(&block, &edge, gamma, heads);
        if (p->features) {
            project_edges(heads, width, &block, &edge, p->k, extras, &projected);
            pair_scores_of_reals(heads, &projected, p->depth, q, extras->projected, p->att, p->slope, scores);
        } else {
            pair_scores(heads, &block, p->depth, q, p->k, p->att, p->slope, scores);
        }
        add_scores(heads, &block, scores, shift, sum);
        blocks++;
        if (blocks > 1 || edges.slot < edges.end || edges.self >= 0) scatter_edges(heads, &block, &edge, scores, gamma);
    }
    for (int64_t h = 0; h < heads; h++) scale[h] = 1 / (sum[h] < TINY ? TINY : sum[h]);
    if (blocks == 1) {
        write_coefficients(heads, &block, &edge, &extras->dropout, shift, scale, scores, gamma);
        return;
    }
    normalize_scores(heads, all_edges, all_numbers, &extras->dropout, shift, scale, gamma);
}

int EXPORT(gatv2_coefficients_forward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, EXTRA_ARGUMENTS,
                                       int64_t heads, int64_t depth, const stored *q, const stored *k, const real *att,
                                       const stored *features, const stored *loop_features, int64_t edge_dim, const real *weight,
                                       double slope, real *gamma, real *shift, real *scale, int threads)
{
    const struct pairs p = {heads, depth, 0, edge_dim, q, k, 0, features, loop_features, att, weight, (real)slope};
    struct pair_extras shared = {.dropout = make_dropout(seed, probability), .edge_count = edge_count};
    struct rooms rooms;
    int32_t identity[BLOCK];
    if (prepare(&p, threads, identity, &shared, &rooms)) return 1;
    (void)edge_by_col;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const struct pair_extras extras = take_extras(&p, &shared, &rooms);
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < rows; i++)
            coefficients_row(&p, edges_of(col, rowptr, i, self_loops), numbers_of(edge_by_row, rowptr, i, edge_count), &extras,
                             as_reals(heads * depth, q + i * heads * depth, extras.room), gamma, shift + i * heads, scale + i * heads);
    }
    release(&shared, &rooms);
    return 0;
}

/* grad_att has the parts of rows and columns; adds that of the edges, and writes grad_weight. */
static void finish_weight(const struct pairs *p, int64_t blocks, const real *partial, real *grad_att, real *grad_weight)
{
    const int64_t width = p->heads * p->depth;
    for (int64_t c = 0; c < width; c++)
        for (int64_t d = 0; d < p->edge_dim; d++) {
            double total = 0;
            for (int64_t block = 0; block < blocks; block++) total += (double)partial[(block * p->edge_dim + d) * width + c];
            grad_att[c] += (real)(total * (double)p->weight[c * p->edge_dim + d]);
            grad_weight[c * p->edge_dim + d] = (real)(total * (double)p->att[c]);
        }
}

static int backward(const struct graph *g, const struct pairs *p, const struct results *r, int64_t seed, double probability,
                    int threads)
{
    const int64_t heads = p->heads, depth = p->depth, channels = p->channels, width = heads * depth, value_width = heads * channels;
    const int64_t row_size = nodes_per_block(g->rows), col_size = nodes_per_block(g->cols);
    const int64_t row_blocks = (g->rows + row_size - 1) / row_size, blocks = row_blocks + (g->cols + col_size - 1) / col_size;
    const int64_t weight_size = p->features ? p->edge_dim * width : 0;
    struct pair_extras shared = {.dropout = make_dropout(seed, probability),
                                 .grad_gamma = r->grad_gamma,
                                 .edge_count = g->edge_count,
                                 .grad_features = r->grad_features,
                                 .grad_loop_features = r->grad_loop_features};
    struct rooms rooms;
    int32_t identity[BLOCK];
    if (prepare(p, threads, identity, &shared, &rooms)) return 1;
    real *partial = calloc((size_t)(blocks * width + row_blocks * weight_size + g->rows * 3 * heads) + 1, sizeof *partial);
    if (!partial) {
        release(&shared, &rooms);
        return 1;
    }
    real *weight_partial = partial + blocks * width, *node = weight_partial + row_blocks * weight_size;

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const struct pair_extras extras = take_extras(p, &shared, &rooms);
        real *const room = extras.room;
#pragma omp for schedule(dynamic, ROWS_PER_TASK)
        for (int64_t i = 0; i < g->rows; i++) {
            fill_node(i, heads, channels, r->out, r->shift, r->scale, r->grad, node, room);
            if (r->gamma)
                mean_gradient(heads, edges_of(g->col, g->rowptr, i, g->self_loops),
                              numbers_of(g->edge_by_row, g->rowptr, i, g->edge_count), r->gamma, r->grad_gamma,
                              node + i * 3 * heads + 2 * heads);
        }
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t block = 0; block < blocks; block++) {
            real *att_part = partial + block * width;
            if (block < row_blocks) {
                for (int64_t n = block * row_size; n < g->rows && n < (block + 1) * row_size; n++) {
                    const real *q = as_reals(width, p->q + n * width, room);
                    const real *grad = as_reals(value_width, r->grad + n * value_width, room + width);
                    real *grad_q = sums_of(r->grad_q + n * width, room + width + value_width);
#define CALL(heads)                                                                                                           \
    gatv2_backward_row(heads, depth, channels, edges_of(g->col, g->rowptr, n, g->self_loops), node + n * 3 * heads, q, p->k,  \
                       p->v, p->att, grad, p->slope, &extras, numbers_of(g->edge_by_row, g->rowptr, n, g->edge_count), grad_q, \
                       att_part, weight_partial + block * weight_size)
                    BY_HEADS(CALL)
#undef CALL
                    write_row(width, grad_q, r->grad_q + n * width);
                }
            } else {
                const int64_t first = (block - row_blocks) * col_size;
                for (int64_t n = first; n < g->cols && n < first + col_size; n++) {
                    const real *k = as_reals(width, p->k + n * width, room);
                    const real *v = as_reals(value_width, p->v + n * value_width, room + width);
                    real *grad_k = sums_of(r->grad_k + n * width, room + width + value_width);
                    real *grad_v = sums_of(r->grad_v + n * value_width, room + 2 * width + value_width);
#define CALL(heads)                                                                                                           \
    gatv2_backward_column(heads, depth, channels, edges_of(g->row, g->colptr, n, g->self_loops), node, p->q, k, v, p->att,    \
                          r->grad, p->slope, &extras, numbers_of(g->edge_by_col, g->colptr, n, g->edge_count), grad_k, grad_v, \
                          att_part)
                    BY_HEADS(CALL)
#undef CALL
                    write_row(width, grad_k, r->grad_k + n * width);
                    write_row(value_width, grad_v, r->grad_v + n * value_width);
                }
            }
        }
    }
    sum_blocks(blocks, width, partial, r->grad_att);
    if (p->features) finish_weight(p, row_blocks, weight_partial, r->grad_att, r->grad_weight);
    release(&shared, &rooms);
    free(partial);
    return 0;
}

/* grad_features may be NULL, grad_weight too if there are no features. Returns 0, or 1 if there is no memory. */
int EXPORT(gatv2_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                           const int32_t *row, int64_t self_loops, EXTRA_ARGUMENTS, int64_t heads, int64_t depth, int64_t channels,
                           const stored *q, const stored *k, const stored *v, const real *att, const stored *features,
                           const stored *loop_features, int64_t edge_dim, const real *weight, double slope, const stored *out,
                           const real *shift, const real *scale, const stored *grad, stored *grad_q, stored *grad_k, stored *grad_v,
                           real *grad_att, stored *grad_features, stored *grad_loop_features, real *grad_weight, int threads)
{
    const struct graph g = {rows, cols, self_loops, edge_count, rowptr, colptr, col, row, edge_by_row, edge_by_col};
    const struct pairs p = {heads, depth, channels, edge_dim, q, k, v, features, loop_features, att, weight, (real)slope};
    const struct results r = {.out = out,
                              .grad = grad,
                              .shift = shift,
                              .scale = scale,
                              .grad_q = grad_q,
                              .grad_k = grad_k,
                              .grad_v = grad_v,
                              .grad_features = grad_features,
                              .grad_loop_features = grad_loop_features,
                              .grad_att = grad_att,
                              .grad_weight = grad_weight};
    return backward(&g, &p, &r, seed, probability, threads);
}

/* `grad` is the gradient of gamma. */
int EXPORT(gatv2_coefficients_backward)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t cols, const int64_t *colptr,
                                        const int32_t *row, int64_t self_loops, EXTRA_ARGUMENTS, int64_t heads, int64_t depth,
                                        const stored *q, const stored *k, const real *att, const stored *features,
                                        const stored *loop_features, int64_t edge_dim, const real *weight, double slope,
                                        const real *gamma, const real *shift, const real *scale, const real *grad, stored *grad_q,
                                        stored *grad_k, real *grad_att, stored *grad_features, stored *grad_loop_features,
                                        real *grad_weight, int threads)
{
    const struct graph g = {rows, cols, self_loops, edge_count, rowptr, colptr, col, row, edge_by_row, edge_by_col};
    const struct pairs p = {heads, depth, 0, edge_dim, q, k, 0, features, loop_features, att, weight, (real)slope};
    const struct results r = {.gamma = gamma,
                              .grad_gamma = grad,
                              .shift = shift,
                              .scale = scale,
                              .grad_q = grad_q,
                              .grad_k = grad_k,
                              .grad_features = grad_features,
                              .grad_loop_features = grad_loop_features,
                              .grad_att = grad_att,
                              .grad_weight = grad_weight};
    return backward(&g, &p, &r, seed, probability, threads);
}

/* For q = k = x and a graph whose edges all go both ways; grad_x is the gradient through both. In slot s of a symmetric layout
 * edge_by_row and edge_by_col hold the two directions of an edge. Returns 0, or 1 if there is no memory. */
int EXPORT(gatv2_backward_symmetric)(int64_t rows, const int64_t *rowptr, const int32_t *col, int64_t self_loops, EXTRA_ARGUMENTS,
                                     int64_t heads, int64_t depth, int64_t channels, const stored *x, const stored *v,
                                     const real *att, double slope, const stored *out, const real *shift, const real *scale,
                                     const stored *grad, stored *grad_x, stored *grad_v, real *grad_att, int threads)
{
    const int64_t width = heads * depth, value_width = heads * channels, size = nodes_per_block(rows);
    const int64_t blocks = (rows + size - 1) / size;
    const struct dropout dropout = make_dropout(seed, probability);
    struct rooms rooms = make_rooms(threads, 0, room_for_rows(width, value_width));
    real *partial = calloc((size_t)(blocks * width + rows * 3 * heads) + 1, sizeof *partial), *node = partial + blocks * width;
    if (!rooms.memory || !partial) {
        free(rooms.memory);
        free(partial);
        return 1;
    }

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        real *const room = take_room(&rooms);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; i++) fill_node(i, heads, channels, out, shift, scale, grad, node, room);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t block = 0; block < blocks; block++)
            for (int64_t i = block * size; i < rows && i < (block + 1) * size; i++) {
                const real *my_x = as_reals(width, x + i * width, room);
                const real *my_v = as_reals(value_width, v + i * value_width, room + width);
                const real *my_grad = as_reals(value_width, grad + i * value_width, room + width + value_width);
                real *x_sums = sums_of(grad_x + i * width, room + width + 2 * value_width);
                real *v_sums = sums_of(grad_v + i * value_width, room + 2 * width + 2 * value_width);
#define CALL(heads)                                                                                                           \
    gatv2_backward_node(heads, depth, channels, edges_of(col, rowptr, i, self_loops), node, node + i * 3 * heads, x, my_x, v, \
                        my_v, att, grad, my_grad, (real)slope, &dropout, numbers_of(edge_by_row, rowptr, i, edge_count),      \
                        numbers_of(edge_by_col, rowptr, i, edge_count), x_sums, v_sums, partial + block * width)
                BY_HEADS(CALL)
#undef CALL
                write_row(width, x_sums, grad_x + i * width);
                write_row(value_width, v_sums, grad_v + i * value_width);
            }
    }
    sum_blocks(blocks, width, partial, grad_att);
    free(rooms.memory);
    free(partial);
    return 0;
}
