/* Neighbour sampling: in-edges of nodes, drawn without replacement, and the numbers of their ends within a batch.
 *
 * What is drawn for a node is a function of the seed and the node alone (hash.h), the same with any number of threads.
 */
#include <stdint.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "hash.h"

#define AHEAD 16 /* how far ahead memory is fetched: almost every access misses the caches */
#define BLOCK 32 /* nodes whose edges are fetched together */
#define FETCH(address) __builtin_prefetch(address)

struct in_edge {
    uint32_t source, number; /* number: its position in the input */
};

/* Asks for large pages where memory is still untouched: a batch touches so much new memory that the faults of small pages take longer
 * than drawing, and random access to a large graph needs fewer translations. */
void lcat_prefer_large_pages(void *memory, int64_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = (uintptr_t)1 << 21, from = ((uintptr_t)memory + page - 1) & ~(page - 1);
    const uintptr_t to = ((uintptr_t)memory + (uintptr_t)bytes) & ~(page - 1);
    if (to > from) madvise((void *)from, to - from, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

/* Sorts the edges src[e] → dst[e] by destination: those of node i begin at begin[i], in the order of the input.
 * Returns 0, or −1 if an index is out of range. */
int lcat_in_edges(int64_t edges, const int64_t *src, const int64_t *dst, int64_t num_src, int64_t num_dst, int64_t *begin,
                  struct in_edge *sorted)
{
    memset(begin, 0, (size_t)(num_dst + 1) * sizeof *begin);
    for (int64_t e = 0; e < edges; e++) {
        if (src[e] < 0 || src[e] >= num_src || dst[e] < 0 || dst[e] >= num_dst) return -1;
        begin[dst[e]]++;
    }
    int64_t total = 0;
    for (int64_t i = 0; i <= num_dst; i++) {
        total += begin[i];
        begin[i] = total;
    }
    for (int64_t e = edges - 1; e >= 0; e--) { /* filled from its end, the bucket of i begins at begin[i] when it is full */
        if (e >= AHEAD) FETCH(begin + dst[e - AHEAD]);
        sorted[--begin[dst[e]]] = (struct in_edge){(uint32_t)src[e], (uint32_t)e};
    }
    return 0;
}

static int64_t drawn(int64_t degree, int64_t size) { return size < 0 || degree < size ? degree : size; }

/* offset[i]: where the edges drawn for nodes[i] begin, if each node gets up to `size` (all if negative). Returns their number. */
int64_t lcat_sample_counts(int64_t count, const int64_t *nodes, const int64_t *begin, int64_t size, int64_t *offset)
{
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i + AHEAD < count) FETCH(begin + nodes[i + AHEAD]);
        offset[i] = total;
        total += drawn(begin[nodes[i] + 1] - begin[nodes[i]], size);
    }
    return total;
}

/* Chooses `size` of the numbers 0 … degree − 1 (Floyd). Word k of a node is a hash of (seed, node, k); scaling it to a bound below
 * 2³² favours some numbers by less than bound / 2³², which no test of a graph could notice. */
static void choose(int64_t degree, int64_t size, uint32_t node_word, uint32_t key, int64_t *chosen)
{
    for (int64_t k = 0; k < size; k++) {
        const int64_t last = degree - size + k;
        const uint64_t word = finish_word(node_word ^ mix_word(key + (uint32_t)k * STEP));
        const int64_t candidate = (int64_t)((word * (uint64_t)(last + 1)) >> 32);
        int64_t taken = 0;
        for (int64_t earlier = 0; earlier < k; earlier++) taken |= chosen[earlier] == candidate;
        chosen[k] = taken ? last : candidate;
    }
}

/* Draws up to `size` in-edges for each of nodes[0 … count), without replacement; those of nodes[i] are written from offset[i] on:
 * source[e] and number[e] are the edge, target[e] = first + i. */
void lcat_sample_edges(int64_t count, const int64_t *nodes, const int64_t *begin, const struct in_edge *sorted, int64_t size,
                       int64_t seed, const int64_t *offset, int64_t first, int64_t *source, int64_t *target, int64_t *number,
                       int threads)
{
    const struct keys keys = scramble(seed);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
    for (int64_t block = 0; block < count; block += BLOCK) {
        const int64_t end = block + BLOCK < count ? block + BLOCK : count;
        for (int64_t i = block; i < end; i++) FETCH(begin + nodes[i]);
        for (int64_t i = block; i < end; i++) { /* first choose for all, so that their edges are on the way when they are read */
            const int64_t node = nodes[i], degree = begin[node + 1] - begin[node], kept = drawn(degree, size);
            int64_t *const own = number + offset[i];
            if (kept < degree)
                choose(degree, kept, mix_word((uint32_t)node ^ keys.first), keys.second, own);
            else
                for (int64_t k = 0; k < kept; k++) own[k] = k;
            for (int64_t k = 0; k < kept; k++) {
                own[k] += begin[node];
                FETCH(sorted + own[k]);
            }
        }
        for (int64_t i = block; i < end; i++) {
            const int64_t next = offset[i] + drawn(begin[nodes[i] + 1] - begin[nodes[i]], size);
            for (int64_t e = offset[i]; e < next; e++) {
                const struct in_edge edge = sorted[number[e]];
                source[e] = edge.source;
                target[e] = first + i;
                number[e] = edge.number;
            }
        }
    }
}

/* Replaces nodes[0 … count) by their numbers in place, which is −1 for those without one: these are numbered from `first` on, in the
 * order in which they come, and written to fresh. Returns how many they are. */
int64_t lcat_number_nodes(int64_t count, int64_t *nodes, int32_t *place, int64_t first, int64_t *fresh)
{
    int64_t added = 0;
    for (int64_t e = 0; e < count; e++) {
        if (e + AHEAD < count) FETCH(place + nodes[e + AHEAD]);
        const int64_t node = nodes[e];
        if (place[node] < 0) {
            place[node] = (int32_t)(first + added);
            fresh[added++] = node;
        }
        nodes[e] = place[node];
    }
    return added;
}
