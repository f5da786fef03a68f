// What the fuzz targets share. A target is one file fuzz_NAME.c with LLVMFuzzerTestOneInput(), which gives one input to
// one reader. Each process works in a folder of its own in memory, which is its current folder, so inputs that must be
// files are.
//
// Inputs of several files are archives in text: a line "-- NAME --" begins each file, which goes on to the line end
// before the next such line.
#ifndef TARN_TESTS_FUZZ_FUZZ_H
#define TARN_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tarn/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

// What a target needs once; called in its folder. Empty for most.
void fuzz_prepare(void);

// Writes a file into the folder; the folders of its name must be there.
void fuzz_write(const char *name, const void *data, size_t size);
// Copies a file of the source tree, such as "tests/fuzz/data/lm.safetensors", into the folder.
void fuzz_copy(const char *name, const char *path);
// Makes `folder` anew with the files of an archive. Names are of letters, digits, "_-." and "/", at most three folders
// deep; others, and what stands before the first name, are left out. Returns the number of files.
size_t fuzz_unpack(const char *folder, const uint8_t *data, size_t size);
// Removes a folder with all that is in it.
void fuzz_remove(const char *folder);

// Ends the process, as a crash does, if a failure has no line of its own, or is a defect of the library (INTERNAL).
// Returns whether all went well.
bool fuzz_good(tarn_status status);
// The same, if `status` is a failure.
void fuzz_must(tarn_status status);
// A number from the bytes of an input, with which a target chooses its actions besides reading: equal inputs give equal
// numbers.
unsigned fuzz_choice(const uint8_t *data, size_t size);
// Ends the process if a property does not hold.
#define FUZZ_REQUIRE(condition) \
  do {                          \
    if (!(condition)) abort();  \
  } while (0)

// Custom mutation of a file of tensors (store/safetensors.h): mostly of a text of its header, of a number or of the
// bytes behind it, so that lengths agree. For LLVMFuzzerCustomMutator().
size_t fuzz_mutate_tensors(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

#endif
