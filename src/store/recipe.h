// The line of text that stands for a frozen random parameter in a checkpoint.
#ifndef TARN_STORE_RECIPE_H
#define TARN_STORE_RECIPE_H

#include "base/status.h"
#include "graph/param.h"

// generator=philox4x32-10 seed=1 init=orthogonal gain=1 blocks=3 shape=1536x512 hash=32 hexadecimal digits
// A reservoir has topology=random sparsity=0.5 factor=0.0625 behind blocks: its spectral radius, which is its gain, is
// found once, when it is made, and who reads the recipe multiplies by the factor.
enum { TARN__RECIPE_TEXT = 384 };
extern const char tarn__generator[];

// The recipe of a parameter whose values were made from `seed` and whose hash is set.
void tarn__recipe_write(char text[TARN__RECIPE_TEXT], const tarn__param *param, uint64_t seed);

// Takes the factor of a reservoir from its recipe; other parameters are left as they are. Fails with DATA.
tarn_status tarn__recipe_take_factor(const char *text, const char *file, tarn__param *param) TARN_CHECKED;

// Checks that a recipe asks for what this program would make (all but the hash), before it is made, and then that the
// hash of what was made is the recipe's. `file` is for messages. Both fail with DATA.
tarn_status tarn__recipe_check(const char *text, const char *file, const tarn__param *param,
                               uint64_t seed) TARN_CHECKED;
tarn_status tarn__recipe_verify(const char *text, const char *file, const tarn__param *param) TARN_CHECKED;

#endif
