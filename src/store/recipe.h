// The line of text that replaces a frozen random parameter in a checkpoint.
#ifndef TARN_STORE_RECIPE_H
#define TARN_STORE_RECIPE_H

#include "base/status.h"
#include "graph/param.h"

// generator=philox4x32-10 seed=1 init=orthogonal gain=1 blocks=3 shape=1536x512 hash=32 hexadecimal digits
// A reservoir has topology=random sparsity=0.5 factor=0.0625 after blocks: its spectral radius, the gain, is achieved
// once, at creation, and readers of the recipe multiply by the factor.
enum { TARN__RECIPE_TEXT = 384 };
extern const char tarn__generator[];

// The recipe of a parameter drawn from `seed` whose hash is set.
void tarn__recipe_write(char text[TARN__RECIPE_TEXT], const tarn__param *param, uint64_t seed);

// Takes the factor of a reservoir from its recipe; other parameters stay unchanged. Fails with DATA.
tarn_status tarn__recipe_take_factor(const char *text, const char *file, tarn__param *param) TARN_CHECKED;

// Checks that a recipe is what this program would write (except the hash), before the values are drawn, and then that
// their hash is the recipe's. `file` is for messages. Both fail with DATA.
tarn_status tarn__recipe_check(const char *text, const char *file, const tarn__param *param,
                               uint64_t seed) TARN_CHECKED;
tarn_status tarn__recipe_verify(const char *text, const char *file, const tarn__param *param) TARN_CHECKED;

#endif
