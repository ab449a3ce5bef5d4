/* Products of small matrices that live in the cache: one of them is read number by number, the other in vectors. */
#ifndef LCAT_SMALL_PRODUCTS_H
#define LCAT_SMALL_PRODUCTS_H

#include "rows.h"

/* to[m, n] += Σ_k x[m, k] y[k, n]. The numbers of x lie x_row and x_column apart, n counts whole vectors. */
struct product {
    const real *x, *y;
    real *to;
    int64_t x_row, x_column, y_row, to_row, inner;
};

INLINE void add_product_tile(int rows, int vectors, const struct product *p, int64_t m, int64_t n)
{
    const real *x = p->x + m * p->x_row, *y = p->y + n;
    vec sum[4][2];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = load(p->to + (m + r) * p->to_row + n + v * LANES);
    for (int64_t k = 0; k < p->inner; k++) {
        vec line[2];
        UNROLL for (int v = 0; v < vectors; v++) line[v] = load(y + k * p->y_row + v * LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            const real factor = x[r * p->x_row + k * p->x_column];
            UNROLL for (int v = 0; v < vectors; v++) sum[r][v] += factor * line[v];
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) store(p->to + (m + r) * p->to_row + n + v * LANES, sum[r][v]);
}

NOINLINE void add_product(const struct product *p, int64_t rows, int64_t columns)
{
    int64_t n = 0;
    for (; n + 2 * LANES <= columns; n += 2 * LANES) {
        int64_t m = 0;
        for (; m + 4 <= rows; m += 4) add_product_tile(4, 2, p, m, n);
        for (; m < rows; m++) add_product_tile(1, 2, p, m, n);
    }
    for (; n < columns; n += LANES) {
        int64_t m = 0;
        for (; m + 4 <= rows; m += 4) add_product_tile(4, 1, p, m, n);
        for (; m < rows; m++) add_product_tile(1, 1, p, m, n);
    }
}

#endif
