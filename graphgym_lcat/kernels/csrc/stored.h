/* How the rows of nodes are stored: as REAL or, with STORED_AS_BFLOAT16 or STORED_AS_FLOAT16, in half the memory of float.
 *
 * Whatever the type, kernels compute with REAL. Rows of neighbours are converted as they are read; a node's own row and its sums
 * stand in a room of the thread, unless the type is REAL: then they need no copy.
 */
#ifndef LCAT_STORED_H
#define LCAT_STORED_H

#include <stdlib.h>

#include "vector.h"

#if defined(STORED_AS_BFLOAT16) || defined(STORED_AS_FLOAT16)
#define STORED_IS_HALF 1
#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef uint16_t stored;
typedef uint16_t halves __attribute__((vector_size(LANES * 2)));
typedef uint16_t loose_halves __attribute__((vector_size(LANES * 2), aligned(2), may_alias));

INLINE umask choose_bits(mask m, umask yes, umask no) { return ((umask)m & yes) | (~(umask)m & no); }

#ifdef STORED_AS_BFLOAT16

/* The upper half of a float. With AVX2, one shuffle puts the bytes into their places, the others become 0. */
#ifdef __AVX2__
INLINE vec load_row(const stored *p)
{
    const __m256i places = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7, -1, -1, 8, 9, -1, -1, 10, 11, -1,
                                            -1, 12, 13, -1, -1, 14, 15);
    return (vec)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p)), places);
}
#else
INLINE vec load_row(const stored *p) { return (vec)(__builtin_convertvector(*(const loose_halves *)p, umask) << 16); }
#endif

/* To the nearest, ties to even. */
INLINE void store_row(stored *p, vec v)
{
    const umask bits = (umask)v;
    const umask rounded = choose_bits(v != v, bits | 0x400000, bits + 0x7fff + ((bits >> 16) & 1));
    *(loose_halves *)p = __builtin_convertvector(rounded >> 16, halves);
}

#elif defined(__F16C__)

INLINE vec load_row(const stored *p) { return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE void store_row(stored *p, vec v) { _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT)); }

#else

/* The bits of a number without sign, moved to their place in a float, are the number times 2⁻¹¹², even of a subnormal one. */
INLINE vec load_row(const stored *p)
{
    const umask bits = __builtin_convertvector(*(const loose_halves *)p, umask), magnitude = (bits & 0x7fff) << 13;
    const umask number = (umask)((vec)magnitude * 0x1p112f);
    return (vec)(choose_bits((mask)magnitude >= 0x0f800000, magnitude | 0x7f800000, number) | (bits & 0x8000) << 16);
}

/* To the nearest, ties to even. Adding 0.5 to a number below 2⁻¹⁴ moves its last bit to that of a subnormal one. */
INLINE void store_row(stored *p, vec v)
{
    const umask sign = (umask)v & 0x80000000u, magnitude = (umask)v ^ sign;
    const umask normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    const umask subnormal = (umask)((vec)magnitude + 0.5f) - 0x3f000000;
    umask result = choose_bits((mask)magnitude < 0x38800000, subnormal, normal);
    result = choose_bits((mask)magnitude >= 0x47800000, (umask){0} + 0x7c00, result);
    result = choose_bits((mask)magnitude > 0x7f800000, (umask){0} + 0x7e00, result);
    *(loose_halves *)p = __builtin_convertvector(result | sign >> 16, halves);
}

#endif

INLINE real as_real(stored x)
{
    const stored row[LANES] = {x};
    return load_row(row)[0];
}

/* The row's numbers as REAL, in `room`. */
INLINE const real *as_reals(int64_t n, const stored *row, real *room)
{
    int64_t c = 0;
    for (; c + LANES <= n; c += LANES) store(room + c, load_row(row + c));
    if (c < n) {
        stored rest[LANES] = {0};
        memcpy(rest, row + c, (size_t)(n - c) * sizeof *rest);
        const vec v = load_row(rest);
        memcpy(room + c, &v, (size_t)(n - c) * sizeof *room);
    }
    return room;
}

/* Where the sums of a row are computed; write_row then stores them. */
INLINE real *sums_of(stored *row, real *room)
{
    (void)row;
    return room;
}

INLINE void write_row(int64_t n, const real *sums, stored *row)
{
    int64_t c = 0;
    for (; c + LANES <= n; c += LANES) store_row(row + c, load(sums + c));
    if (c < n) {
        stored rest[LANES];
        vec v = splat(0);
        memcpy(&v, sums + c, (size_t)(n - c) * sizeof *sums);
        store_row(rest, v);
        memcpy(row + c, rest, (size_t)(n - c) * sizeof *rest);
    }
}

#else
#define STORED_IS_HALF 0

typedef real stored;

INLINE vec load_row(const stored *p) { return load(p); }
INLINE void store_row(stored *p, vec v) { store(p, v); }
INLINE real as_real(stored x) { return x; }

INLINE const real *as_reals(int64_t n, const stored *row, real *room)
{
    (void)n, (void)room;
    return row;
}

INLINE real *sums_of(stored *row, real *room)
{
    (void)room;
    return row;
}

/* The sums stand in the row, or are copied there. */
INLINE void write_row(int64_t n, const real *sums, stored *row)
{
    if (sums != row) memcpy(row, sums, (size_t)n * sizeof *row);
}

#endif

/* Memory of which every thread takes its part. */
struct rooms {
    real *memory, *next;
    int64_t size;
};

/* Room for `always` numbers per thread, and for `converted` more where rows are not stored as REAL. memory is NULL if there is none. */
INLINE struct rooms make_rooms(int threads, int64_t always, int64_t converted)
{
    const int64_t size = always + (STORED_IS_HALF ? converted : 0);
    real *memory = malloc(((size_t)threads * (size_t)size + 1) * sizeof *memory);
    return (struct rooms){memory, memory, size};
}

INLINE real *take_room(struct rooms *rooms)
{
    real *mine;
#pragma omp critical
    {
        mine = rooms->next;
        rooms->next += rooms->size;
    }
    return mine;
}

#endif
