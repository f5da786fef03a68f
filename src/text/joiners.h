// The joiners U+200C and U+200D, which spell words in scripts whose letters join: Persian, Sinhala, Hindi and others.
#ifndef TARN_TEXT_JOINERS_H
#define TARN_TEXT_JOINERS_H

#include <stdbool.h>
#include <stddef.h>

// Whether a joiner stands between two letters that join: of a cursive script (Unicode's Joining_Type), or of one of the
// scripts that come from Brahmi (Indic_Syllabic_Category). Between other letters, and in emoji, joiners say how a text
// looks, and not what it says.
bool tarn__joiners_spell(const char *text, size_t length);

#endif
