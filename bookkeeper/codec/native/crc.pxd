# The checksums of crc.h, for the compiled codec.
cdef extern from "crc.h" nogil:
    void bk_crc_init()
    unsigned int bk_crc32(unsigned int seed, const unsigned char *data, size_t size)
    unsigned int bk_crc32c(unsigned int seed, const unsigned char *data, size_t size)
    unsigned int bk_crc32c_portable(unsigned int seed, const unsigned char *data, size_t size)
