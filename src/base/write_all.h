// Writing to descriptors that are not replaced as a whole: logs.
#ifndef TARN_BASE_WRITE_ALL_H
#define TARN_BASE_WRITE_ALL_H

#include <stdbool.h>
#include <stddef.h>

// Writes all bytes. The system may take a part of them, or none because of a signal: then the rest follows. False:
// errno says why, and a part may have been written.
bool tarn__write_all(int fd, const void *data, size_t size);

#endif
