// The meaning of a sentence of the embedded corpus, and its realisation in German and English. A clause names its
// parts; each language decides forms and order.
#ifndef TARN_CORPUS_CLAUSE_H
#define TARN_CORPUS_CLAUSE_H

#include <stdbool.h>

#include "corpus/lexicon.h"

typedef enum grammatical_case { NOMINATIVE, ACCUSATIVE, DATIVE } grammatical_case;
typedef enum tense { PRESENT, PROGRESSIVE, PAST, FUTURE, MODAL } tense;
typedef enum phrase_kind { PHRASE_NONE, PHRASE_PRONOUN, PHRASE_NAME, PHRASE_NOUN } phrase_kind;
typedef enum determiner { DEFINITE, INDEFINITE, THIS, POSSESSIVE, NO, BARE, NUMBER } determiner;

typedef struct clause clause;

// Grammatical person 1 .. 3, number, and gender for person 3.
typedef struct agreement {
  int person;
  bool plural;
  gender gender;
} agreement;

typedef struct noun_phrase {
  phrase_kind kind;
  agreement agreement;
  const name *name;
  const noun *noun;
  determiner determiner;
  agreement owner;  // of POSSESSIVE
  int number;       // of NUMBER, 2 .. 5
  const adjective *adjective;
  const clause *relative;  // a clause whose subject, or else object, is this phrase; NULL: none
  bool relative_object;
} noun_phrase;

struct clause {
  noun_phrase subject, dative, object, companion;
  const verb *verb;  // NULL: the copula with `predicate`
  tense tense;
  const modal *modal;
  const adjective *predicate;
  noun_phrase than;  // compared with the predicate
  bool very;         // intensifies the predicate
  bool negated;
  const time_phrase *time, *frequency;
  const place *place;  // location, or direction for verbs of direction
  const spot *spot;    // of `support`: location, or direction with spot_to
  noun_phrase support;
  bool spot_to;
};

// The place of the finite verb, and what precedes it.
typedef enum german_order {
  GERMAN_SUBJECT_FIRST,    // Der Mann ruft heute seine Mutter an
  GERMAN_TIME_FIRST,       // Heute ruft der Mann seine Mutter an
  GERMAN_VERB_FIRST,       // ruft der Mann heute seine Mutter an
  GERMAN_NO_SUBJECT,       // ruft heute seine Mutter an (after "wer")
  GERMAN_VERB_LAST,        // der Mann heute seine Mutter anruft
  GERMAN_LAST_NO_SUBJECT,  // heute seine Mutter anruft (after a relative pronoun)
  GERMAN_INFINITIVE        // heute seine Mutter anzurufen
} german_order;

typedef enum english_order {
  ENGLISH_STATEMENT,   // the man calls his mother today
  ENGLISH_TIME_FIRST,  // today the man calls his mother
  ENGLISH_QUESTION,    // does the man call his mother today
  ENGLISH_NO_SUBJECT,  // calls his mother today
  ENGLISH_INFINITIVE   // call his mother today
} english_order;

// Text that grows word by word; an overlong text is marked and must be discarded.
typedef struct words {
  char text[512];
  int length;
  bool overflow;
} words;

// Appends a word with a space before it, except at the start. A comma gets no space, and no second comma follows it.
void tarn__words_add(words *out, const char *text);

// Appends the clause without a full stop and without an initial capital.
void tarn__german_clause(words *out, const clause *clause, german_order order);
void tarn__english_clause(words *out, const clause *clause, english_order order);

void tarn__german_phrase(words *out, const noun_phrase *phrase, grammatical_case grammatical_case);
void tarn__english_phrase(words *out, const noun_phrase *phrase, bool object);

// 0 .. 5: ich, du, er, wir, ihr, sie.
static inline int form_of(agreement a) { return a.person - 1 + (a.plural ? 3 : 0); }

#endif
