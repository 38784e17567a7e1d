/* CRC32C (Castagnoli) and CRC-32 (zlib's), reflected. CRC32C takes the CPU's instruction where there is one, three
 * streams at a time, and where the CPU multiplies polynomials in long vectors, 256 bytes at a time; everything else
 * goes eight bytes at a time through tables. bk_crc_init fills the tables: call it once before anything else. */
#ifndef BK_CRC_H
#define BK_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define BK_CRC_X86 1
#include <immintrin.h>
#else
#define BK_CRC_X86 0
#endif

/* Compilers that know the long vectors. */
#if BK_CRC_X86 && (defined(__clang__) ? __clang_major__ >= 8 : __GNUC__ >= 10)
#define BK_CRC_LONG 1
#else
#define BK_CRC_LONG 0
#endif

static uint32_t bk_castagnoli[8][256];
static uint32_t bk_ieee[8][256];
static int bk_crc_has_instruction;

static void bk_crc_fill(uint32_t tables[8][256], uint32_t polynomial)
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t crc = n;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ polynomial : crc >> 1;
        tables[0][n] = crc;
    }
    for (uint32_t n = 0; n < 256; n++)
        for (int k = 1; k < 8; k++)
            tables[k][n] = (tables[k - 1][n] >> 8) ^ tables[0][tables[k - 1][n] & 0xff];
}

static uint32_t bk_crc_tables(uint32_t tables[8][256], uint32_t seed, const unsigned char *p, size_t size)
{
    uint32_t crc = ~seed;
    while (size >= 8) {
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = tables[7][low & 0xff] ^ tables[6][(low >> 8) & 0xff] ^ tables[5][(low >> 16) & 0xff] ^
              tables[4][low >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
        p += 8;
        size -= 8;
    }
    while (size--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *p++) & 0xff];
    return ~crc;
}

static inline uint32_t bk_crc32(uint32_t seed, const unsigned char *p, size_t size)
{
    return bk_crc_tables(bk_ieee, seed, p, size);
}

static inline uint32_t bk_crc32c_portable(uint32_t seed, const unsigned char *p, size_t size)
{
    return bk_crc_tables(bk_castagnoli, seed, p, size);
}

#if BK_CRC_X86

/* The instruction takes three cycles but one can begin in each, so three independent stretches run at once; a
 * table moves a crc over the stretch that follows it. */
#define BK_CRC_LARGE 2048
#define BK_CRC_MEDIUM 256
#define BK_CRC_SMALL 64
static uint32_t bk_shift_large[4][256];
static uint32_t bk_shift_medium[4][256];
static uint32_t bk_shift_small[4][256];

static void bk_crc_fill_shift(uint32_t shift[4][256], size_t zeros)
{
    for (int k = 0; k < 4; k++) {
        uint32_t basis[8];
        for (int bit = 0; bit < 8; bit++) {
            uint32_t crc = (uint32_t)1 << (8 * k + bit);
            for (size_t n = 0; n < zeros; n++)
                crc = (crc >> 8) ^ bk_castagnoli[0][crc & 0xff];
            basis[bit] = crc;
        }
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t sum = 0;
            for (int bit = 0; bit < 8; bit++)
                sum ^= n >> bit & 1 ? basis[bit] : 0;
            shift[k][n] = sum;
        }
    }
}

static inline uint64_t bk_crc_load(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

static inline uint64_t bk_crc_shift(uint32_t shift[4][256], uint64_t crc)
{
    return shift[0][crc & 0xff] ^ shift[1][(crc >> 8) & 0xff] ^ shift[2][(crc >> 16) & 0xff] ^ shift[3][crc >> 24 & 0xff];
}

#define BK_CRC_THREE(stretch, shift)                                                      \
    while (size >= 3 * (stretch)) {                                                       \
        uint64_t b = 0, c = 0;                                                            \
        for (const unsigned char *stop = p + (stretch); p < stop; p += 8) {               \
            a = __builtin_ia32_crc32di(a, bk_crc_load(p));                                \
            b = __builtin_ia32_crc32di(b, bk_crc_load(p + (stretch)));                    \
            c = __builtin_ia32_crc32di(c, bk_crc_load(p + 2 * (stretch)));                \
        }                                                                                 \
        a = bk_crc_shift(shift, a) ^ b;                                                   \
        a = bk_crc_shift(shift, a) ^ c;                                                   \
        p += 2 * (stretch);                                                               \
        size -= 3 * (stretch);                                                            \
    }

__attribute__((target("sse4.2"))) static uint32_t bk_crc32c_x86(uint32_t seed, const unsigned char *p, size_t size)
{
    uint64_t a = (uint32_t)~seed;
    BK_CRC_THREE(BK_CRC_LARGE, bk_shift_large)
    BK_CRC_THREE(BK_CRC_MEDIUM, bk_shift_medium)
    BK_CRC_THREE(BK_CRC_SMALL, bk_shift_small)
    for (; size >= 8; size -= 8, p += 8)
        a = __builtin_ia32_crc32di(a, bk_crc_load(p));
    uint32_t crc = (uint32_t)a;
    for (; size; size--)
        crc = __builtin_ia32_crc32qi(crc, *p++);
    return ~crc;
}

#if BK_CRC_LONG
/* Bytes that lie d bytes before others stand for their polynomial times x^8d. To fold is to multiply them by that,
 * modulo the CRC's polynomial, and to add the others: the CRC stays the same. Sixteen bytes are folded as two halves,
 * and the product of reflected numbers is one bit short: so the factors are x^(8d + 31) and x^(8d - 33). */
#define BK_CRC_WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))
#define BK_CRC_WIDE_MIN 256
static int bk_crc_has_wide;
static uint64_t bk_fold_256[8]; /* the factors of four times sixteen bytes: here each the same */
static uint64_t bk_fold_64[8];
static uint64_t bk_fold_together[8]; /* over the last of the four; the last stays what it is */

static uint64_t bk_crc_power(unsigned n)
{
    uint32_t power = 0x80000000u;
    while (n--)
        power = power & 1 ? (power >> 1) ^ 0x82f63b78u : power >> 1;
    return power;
}

static void bk_crc_fill_folds(void)
{
    for (unsigned k = 0; k < 4; k++) {
        const unsigned before = 8 * (48 - 16 * k);
        bk_fold_256[2 * k] = bk_crc_power(8 * 256 + 31);
        bk_fold_256[2 * k + 1] = bk_crc_power(8 * 256 - 33);
        bk_fold_64[2 * k] = bk_crc_power(8 * 64 + 31);
        bk_fold_64[2 * k + 1] = bk_crc_power(8 * 64 - 33);
        bk_fold_together[2 * k] = before ? bk_crc_power(before + 31) : 0;
        bk_fold_together[2 * k + 1] = before ? bk_crc_power(before - 33) : 0;
    }
}

BK_CRC_WIDE static inline __m512i bk_crc_folded(__m512i from, __m512i factors, __m512i onto)
{
    const __m512i low = _mm512_clmulepi64_epi128(from, factors, 0x00);
    const __m512i high = _mm512_clmulepi64_epi128(from, factors, 0x11);
    return _mm512_ternarylogic_epi64(low, high, onto, 0x96); /* the exclusive or of three */
}

BK_CRC_WIDE static uint32_t bk_crc32c_wide(uint32_t seed, const unsigned char *p, size_t size)
{
    __m512i factors = _mm512_loadu_si512(bk_fold_256);
    __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
    __m512i c = _mm512_loadu_si512(p + 128), d = _mm512_loadu_si512(p + 192);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~seed)));
    for (p += 256, size -= 256; size >= 256; p += 256, size -= 256) {
        a = bk_crc_folded(a, factors, _mm512_loadu_si512(p));
        b = bk_crc_folded(b, factors, _mm512_loadu_si512(p + 64));
        c = bk_crc_folded(c, factors, _mm512_loadu_si512(p + 128));
        d = bk_crc_folded(d, factors, _mm512_loadu_si512(p + 192));
    }
    factors = _mm512_loadu_si512(bk_fold_64);
    d = bk_crc_folded(bk_crc_folded(bk_crc_folded(a, factors, b), factors, c), factors, d);
    for (; size >= 64; p += 64, size -= 64)
        d = bk_crc_folded(d, factors, _mm512_loadu_si512(p));
    const __m512i last = _mm512_maskz_mov_epi64(0xc0, d);
    uint64_t words[8], crc = 0;
    a = bk_crc_folded(d, _mm512_loadu_si512(bk_fold_together), last);
    _mm512_storeu_si512(words, a);
    crc = __builtin_ia32_crc32di(crc, words[0] ^ words[2] ^ words[4] ^ words[6]);
    crc = __builtin_ia32_crc32di(crc, words[1] ^ words[3] ^ words[5] ^ words[7]);
    return bk_crc32c_x86(~(uint32_t)crc, p, size);
}
#endif

#endif

static inline uint32_t bk_crc32c(uint32_t seed, const unsigned char *p, size_t size)
{
#if BK_CRC_LONG
    if (bk_crc_has_wide && size >= BK_CRC_WIDE_MIN)
        return bk_crc32c_wide(seed, p, size);
#endif
#if BK_CRC_X86
    if (bk_crc_has_instruction)
        return bk_crc32c_x86(seed, p, size);
#endif
    return bk_crc32c_portable(seed, p, size);
}

static void bk_crc_init(void)
{
    bk_crc_fill(bk_castagnoli, 0x82f63b78u);
    bk_crc_fill(bk_ieee, 0xedb88320u);
#if BK_CRC_X86
    bk_crc_fill_shift(bk_shift_large, BK_CRC_LARGE);
    bk_crc_fill_shift(bk_shift_medium, BK_CRC_MEDIUM);
    bk_crc_fill_shift(bk_shift_small, BK_CRC_SMALL);
    __builtin_cpu_init();
    bk_crc_has_instruction = __builtin_cpu_supports("sse4.2");
#endif
#if BK_CRC_LONG
    bk_crc_has_wide = bk_crc_has_instruction && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
    bk_crc_fill_folds();
#endif
}

#endif
