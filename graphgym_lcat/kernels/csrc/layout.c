/* The layout of a graph: its edges sorted by destination and by source, by counting. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Turns counts[0 … n] into the positions where each node's edges begin; returns the number of edges. */
static int64_t begin_at(int64_t n, int64_t *counts)
{
    int64_t total = 0;
    for (int64_t i = 0; i <= n; i++) {
        const int64_t count = counts[i];
        counts[i] = total;
        total += count;
    }
    return total;
}

/* Filling a bucket has moved its beginning to its end, where the next one begins; this moves them back. */
static void restore(int64_t n, int64_t *ptr)
{
    memmove(ptr + 1, ptr, (size_t)n * sizeof *ptr);
    ptr[0] = 0;
}

/* Fills the buckets `to`, which begin at to_ptr: node j is in the bucket of i if i is in the bucket `from` of j. Ascending order. */
static void transpose(int64_t n, const int64_t *from_ptr, const int32_t *from, int64_t to_n, int64_t *to_ptr, int32_t *to)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = from_ptr[i]; e < from_ptr[i + 1]; e++) to[to_ptr[from[e]]++] = (int32_t)i;
    restore(to_n, to_ptr);
}

/* Sorts the edges src[e] → dst[e]: col holds the sources of row i from rowptr[i] on, in ascending order, row the destinations of
 * column j from colptr[j] on. With drop_loops, self-loops are left out; otherwise loops (if not NULL) counts them per
 * destination. *symmetric says whether every edge goes both ways; then row and colptr equal col and rowptr.
 * Returns the number of edges, or −1 if an index is out of range. */
int64_t lcat_layout(int64_t edges, const int64_t *src, const int64_t *dst, int64_t num_src, int64_t num_dst, int drop_loops,
                    int64_t *rowptr, int32_t *col, int64_t *colptr, int32_t *row, int32_t *loops, int *symmetric)
{
    memset(rowptr, 0, (size_t)(num_dst + 1) * sizeof *rowptr);
    memset(colptr, 0, (size_t)(num_src + 1) * sizeof *colptr);
    if (loops) memset(loops, 0, (size_t)num_dst * sizeof *loops);
    for (int64_t e = 0; e < edges; e++) {
        const int64_t j = src[e], i = dst[e];
        if (j < 0 || j >= num_src || i < 0 || i >= num_dst) return -1;
        if (i == j && drop_loops) continue;
        if (i == j && loops) loops[i]++;
        rowptr[i]++;
        colptr[j]++;
    }
    const int64_t kept = begin_at(num_dst, rowptr);
    begin_at(num_src, colptr);
    for (int64_t e = 0; e < edges; e++)
        if (!drop_loops || src[e] != dst[e]) row[colptr[src[e]]++] = (int32_t)dst[e];
    restore(num_src, colptr);
    transpose(num_src, colptr, row, num_dst, rowptr, col);
    *symmetric = 0;
    if (num_src == num_dst && !memcmp(rowptr, colptr, (size_t)(num_src + 1) * sizeof *rowptr)) {
        transpose(num_dst, rowptr, col, num_src, colptr, row); /* sorts row */
        *symmetric = kept == 0 || !memcmp(row, col, (size_t)kept * sizeof *row);
    }
    return kept;
}

/* Fills the buckets `to`, which begin at ptr, with the edges of `from` (all edges 0 … count − 1 if NULL), each in the bucket of its
 * node, in the order in which they come. `place` is workspace. */
static void distribute(int64_t count, const int32_t *from, const int64_t *node, const int64_t *other, int drop_loops, int64_t n,
                       const int64_t *ptr, int64_t *place, int32_t *to)
{
    memcpy(place, ptr, (size_t)n * sizeof *ptr);
    for (int64_t slot = 0; slot < count; slot++) {
        const int64_t e = from ? from[slot] : slot;
        if (!drop_loops || node[e] != other[e]) to[place[node[e]]++] = (int32_t)e;
    }
}

/* For a layout by lcat_layout, of the same arguments: edge_by_row[s] is the number, in the input, of the edge in slot s of col, and
 * edge_by_col[s] that of the edge in slot s of row. Edges with the same ends stand in the order of the input.
 * Returns 0, or 1 if there is no memory. */
int lcat_edge_numbers(int64_t edges, const int64_t *src, const int64_t *dst, int64_t num_src, int64_t num_dst, int drop_loops,
                      const int64_t *rowptr, const int64_t *colptr, int32_t *edge_by_row, int32_t *edge_by_col)
{
    int64_t *place = malloc((size_t)((num_src > num_dst ? num_src : num_dst) + 1) * sizeof *place);
    if (!place) return 1;
    const int64_t kept = rowptr[num_dst];
    distribute(edges, NULL, src, dst, drop_loops, num_src, colptr, place, edge_by_col);
    distribute(kept, edge_by_col, dst, src, 0, num_dst, rowptr, place, edge_by_row);
    if (num_src == num_dst && !memcmp(rowptr, colptr, (size_t)(num_src + 1) * sizeof *rowptr)) /* where lcat_layout sorts row */
        distribute(kept, edge_by_row, src, dst, 0, num_src, colptr, place, edge_by_col);
    free(place);
    return 0;
}

/* slot[e]: where edge e of the columns stands in the rows, whose sources are in ascending order. `next` has room for num_dst numbers. */
void lcat_slots(int64_t num_src, const int64_t *colptr, const int32_t *row, int64_t num_dst, const int64_t *rowptr, int64_t *next,
                int32_t *slot)
{
    for (int64_t i = 0; i < num_dst; i++) next[i] = rowptr[i];
    for (int64_t j = 0; j < num_src; j++)
        for (int64_t e = colptr[j]; e < colptr[j + 1]; e++) slot[e] = (int32_t)next[row[e]]++;
}

/* Must equal INTERFACE in library.py. */
int lcat_interface(void) { return 9; }

/* The best instruction set that this library was built for and this processor has. */
const char *lcat_instruction_set(void)
{
#ifdef LCAT_HAVE_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) return "avx2";
#endif
    return "generic";
}

/* 1 if the kernels use several threads. */
int lcat_has_openmp(void)
{
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}
