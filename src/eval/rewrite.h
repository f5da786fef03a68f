// The steps that sacreBLEU's tokenizers are made of. Its tokenizers are short lists of regular expressions, applied one
// after the other; each of them looks at one character or at two neighbours, so each is a single pass here.
//
// `spare` is scratch that the caller keeps between calls; a step may swap it with `text`. A step at most triples the
// text.
#ifndef TARN_EVAL_REWRITE_H
#define TARN_EVAL_REWRITE_H

#include "eval/codepoints.h"

typedef bool (*tarn__character_class)(int32_t c);

// s/([class])/ $1 /
tarn_status tarn__rewrite_single(tarn__codepoints *text, tarn__codepoints *spare,
                                 tarn__character_class single) TARN_CHECKED;

// s/([first])([second])/$1 $2 / or, with the space in front, s/([first])([second])/ $1 $2/. As in a regular expression,
// matches do not overlap.
tarn_status tarn__rewrite_pair(tarn__codepoints *text, tarn__codepoints *spare, tarn__character_class first,
                               tarn__character_class second, bool in_front) TARN_CHECKED;

// Puts a space before the text and one behind it.
tarn_status tarn__rewrite_pad(tarn__codepoints *text, tarn__codepoints *spare) TARN_CHECKED;

// Replaces every occurrence of an ASCII word by one character, or by nothing when `by` is 0.
void tarn__rewrite_replace(tarn__codepoints *text, const char *word, int32_t by);

// s/[class]//
void tarn__rewrite_remove(tarn__codepoints *text, tarn__character_class single);

// &quot; &amp; &lt; and &gt;, in this order, become their characters.
void tarn__rewrite_entities(tarn__codepoints *text);

// What mteval's 13a and Tercom do to Western punctuation: spaces around marks and symbols of ASCII other than
// apostrophe, period, comma and dash, and around these three (not the apostrophe) depending on digits beside them.
tarn_status tarn__rewrite_marks(tarn__codepoints *text, tarn__codepoints *spare) TARN_CHECKED;
tarn_status tarn__rewrite_points(tarn__codepoints *text, tarn__codepoints *spare) TARN_CHECKED;

#endif
