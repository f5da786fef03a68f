// CRC-32C (Castagnoli; RFC 3720, appendix B.4), the checksum of TFRecord files.
#ifndef TARN_BASE_CRC32C_H
#define TARN_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t tarn__crc32c(const void *data, size_t size);

// As TFRecord stores it: rotated and shifted, so that the checksum of data that contain checksums remains a good one.
uint32_t tarn__crc32c_masked(const void *data, size_t size);

#endif
