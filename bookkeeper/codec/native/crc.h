/* CRC32C (Castagnoli) and CRC-32 (zlib's), reflected. CRC32C takes the CPU's instruction where there is one, three
 * streams at a time; everything else goes eight bytes at a time through tables. bk_crc_init fills the tables: call
 * it once before anything else. */
#ifndef BK_CRC_H
#define BK_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define BK_CRC_X86 1
#else
#define BK_CRC_X86 0
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

#endif

static inline uint32_t bk_crc32c(uint32_t seed, const unsigned char *p, size_t size)
{
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
}

#endif
