// What a file system may have left after a power loss: the journal of a command says what it did to files, and only
// what it asked to be on the disk (fsync of files and of folders) surely is.
#ifndef TARN_TESTS_FAULT_POWER_H
#define TARN_TESTS_FAULT_POWER_H

#include <stdint.h>

// Remembers the folder as it is on the disk before the command, with the inodes of its files.
void power_begin(const char *folder);

// Makes the folder what it may be after the changes of the journal and a loss of power. Each seed is another outcome:
// writes that were not synchronised are dropped, torn at blocks of 512 bytes or whole, sizes grown before their bytes,
// names made, moved and removed or not.
void power_lose(const char *folder, const char *journal, uint64_t seed);

#endif
