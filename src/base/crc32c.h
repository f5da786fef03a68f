// CRC-32C (Castagnoli; RFC 3720, appendix B.4), the checksum of TFRecord files.
#ifndef TARN_BASE_CRC32C_H
#define TARN_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t tarn__crc32c(const void *data, size_t size);

// As TFRecord stores it: turned and shifted, so that a checksum of data that holds checksums is still a good one.
uint32_t tarn__crc32c_masked(const void *data, size_t size);

#endif
