// What the rules for the end of a sentence need to know about a language.
#ifndef TARN_TEXT_SENTENCE_LANGUAGE_H
#define TARN_TEXT_SENTENCE_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

// Lists are words with a blank before and after each. A lower-case word stands for itself and its capitalised form;
// others stand for themselves only ("Sat" is no form of "sat"). Abbreviations omit their last full stop.
typedef struct tarn__sentence_language {
  const char *name;      // "en"
  const char *never;     // abbreviations that never end a sentence: titles before names, "e.g."
  const char *numbered;  // abbreviations before a number, otherwise words: "No"
  const char *maybe;     // other abbreviations: a sentence ends there only if the next word is a starter
  const char *starters;  // capitalised words that rarely continue a sentence: articles, pronouns, conjunctions
  const char *speech;    // verbs after direct speech: "Why?" John asked.
  bool ordinals;         // "19." is an ordinal number, and "XIV." too
} tarn__sentence_language;

// Fails with USAGE, naming the available languages.
tarn_status tarn__sentence_language_find(const tarn__sentence_language **language, const char *name) TARN_CHECKED;

// Whether a word is in a list, as above.
bool tarn__sentence_language_has(const char *list, const char *word, size_t length);

#endif
