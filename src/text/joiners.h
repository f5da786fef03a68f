// The joiners U+200C and U+200D, which spell words in scripts whose letters join: Persian, Sinhala, Hindi and others.
#ifndef TARN_TEXT_JOINERS_H
#define TARN_TEXT_JOINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/vocab.h"

// Whether a joiner stands between two letters that join: of a cursive script (Unicode's Joining_Type), or of a script
// derived from Brahmi (Indic_Syllabic_Category). Between other letters, and in emoji, joiners only affect the
// appearance.
bool tarn__joiners_spell(const char *text, size_t length);

// Whether `lines` of `all` are more than stray ones: one of 10,000.
bool tarn__joiners_matter(int64_t lines, int64_t all);

// Counts a line from which a vocabulary removes joiners.
int64_t tarn__joiners_lost(const tarn_vocab *vocab, const char *text, size_t length);
// Warns if `lines` of `all` lines of a file lose them and that matters. `name`: the vocabulary's.
void tarn__joiners_warn(const char *path, const tarn_vocab *vocab, const char *name, int64_t lost, int64_t all);

#endif
