// The steps of sacreBLEU's tokenizers, which are short lists of regular expressions, applied one after the other; each
// looks at one or two adjacent characters, so each is a single pass here.
//
// `spare` is scratch memory that the caller keeps between calls; a step may swap it with `text`. A step at most triples
// the text.
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

// Adds a space at both ends of the text.
tarn_status tarn__rewrite_pad(tarn__codepoints *text, tarn__codepoints *spare) TARN_CHECKED;

// Replaces every occurrence of an ASCII word by one character, or by nothing if `by` is 0.
void tarn__rewrite_replace(tarn__codepoints *text, const char *word, int32_t by);

// s/[class]//
void tarn__rewrite_remove(tarn__codepoints *text, tarn__character_class single);

// &quot; &amp; &lt; and &gt;, in this order, become their characters.
void tarn__rewrite_entities(tarn__codepoints *text);

// The treatment of Western punctuation by mteval's 13a and Tercom: spaces around ASCII marks and symbols other than
// apostrophe, period, comma and dash, and around the last three depending on adjacent digits.
tarn_status tarn__rewrite_marks(tarn__codepoints *text, tarn__codepoints *spare) TARN_CHECKED;
tarn_status tarn__rewrite_points(tarn__codepoints *text, tarn__codepoints *spare) TARN_CHECKED;

#endif
