// The words of the embedded corpus as tables (lexicon.c). All text is UTF-8.
#ifndef TARN_CORPUS_LEXICON_H
#define TARN_CORPUS_LEXICON_H

#include <stdbool.h>
#include <stddef.h>

typedef enum gender { MASCULINE, FEMININE, NEUTER } gender;

// Classes of nouns, by which verbs and adjectives choose them.
enum {
  PERSON = 1 << 0,
  KIN = 1 << 1,  // with PERSON: sounds best with a possessive
  ANIMAL = 1 << 2,
  FOOD = 1 << 3,
  DRINK = 1 << 4,
  READABLE = 1 << 5,
  THING = 1 << 6,  // can be carried
  FURNITURE = 1 << 7,
  CLOTHES = 1 << 8,
  VEHICLE = 1 << 9,
  OPENABLE = 1 << 10,
  DEVICE = 1 << 11,
  BUILDING = 1 << 12,
  SONG = 1 << 13,
  ROOM = 1 << 14,
  FLAT = 1 << 15,      // with another: lies rather than stands
  ONLY_ONE = 1 << 16,  // with KIN: at most one per person
  LIVING = PERSON | ANIMAL,
  GOODS = FOOD | READABLE | THING | FURNITURE | CLOTHES | VEHICLE,
  OBJECT = GOODS | OPENABLE | DEVICE | BUILDING
};

typedef struct noun {
  const char *german, *german_plural;  // German plural NULL: a mass noun
  const char *weak;                    // ending of accusative and dative singular of weak nouns, else ""
  gender gender;
  const char *english, *english_plural;
  unsigned classes;
} noun;

typedef struct adjective {
  const char *german, *stem;  // "teuer", and "teur" before endings
  const char *english;
  const char *german_more, *english_more;  // comparatives; NULL: no comparison
  unsigned classes;
} adjective;

typedef enum object_kind {
  OBJECT_NONE,
  OBJECT_ACCUSATIVE,
  OBJECT_DATIVE,
  OBJECT_BOTH,         // dative and accusative: gives the man the book
  OBJECT_PREPOSITION,  // waits for the bus
  OBJECT_DIRECTION     // goes to the park
} object_kind;

enum {
  VERB_SEIN = 1,      // perfect with "sein"
  VERB_STATE = 2,     // no English progressive
  VERB_TO = 4,        // explains the story to the child
  VERB_NO_PLACE = 8,  // does not fit a place
  VERB_PLACE = 16,    // needs a place
  VERB_NO_COMPANION = 32
};

typedef struct verb {
  const char *particle, *german;  // "an", "rufen"; particle "": none
  const char *change;             // stem of second and third person singular with a changed vowel, else NULL
  const char *participle;         // without the particle
  object_kind kind;
  const char *preposition;  // OBJECT_PREPOSITION: German preposition and its case
  bool preposition_dative;
  unsigned subject, object;                  // classes of nouns
  const char *english, *past, *progressive;  // progressive NULL: by rule
  const char *english_particle;              // "up" of "picks up", else ""
  const char *english_preposition;           // "for" of "waits for", else ""
  unsigned flags;
} verb;

typedef struct time_phrase {
  const char *german, *english;
  bool past, future;  // fits only the past, only the future
} time_phrase;

// Places are noun phrases with the definite article: "in der Küche", "in die Küche".
typedef struct place {
  const char *german;
  gender gender;
  const char *where, *to;                  // German prepositions with dative, and with the case of `to_dative`
  bool to_dative;                          // "zum Bahnhof"
  const char *english_where, *english_to;  // whole phrases
} place;

typedef struct modal {
  const char *forms[6];          // ich, du, er, wir, ihr, sie
  const char *auxiliary, *main;  // "would" and "like to"; auxiliary NULL: a full verb ("has to")
  const char *main_third;        // of a full verb
} modal;

// "weiß" + dass: verbs that take a clause.
typedef struct matrix {
  const char *forms[6];
  const char *english, *english_third;
} matrix;

typedef struct weather {
  const char *last;  // as a subordinate clause, with the verb at its end
  const char *english;
} weather;

typedef struct name {
  const char *text;
  gender gender;
} name;

typedef struct spot {
  const char *german, *english;  // two-way prepositions: "auf", "on"
} spot;

typedef struct lexicon {
  const noun *nouns;
  size_t noun_count;
  const adjective *adjectives;
  size_t adjective_count;
  const verb *verbs;
  size_t verb_count;
  const time_phrase *times;
  size_t time_count;
  const time_phrase *frequencies;
  size_t frequency_count;
  const place *places;
  size_t place_count;
  const modal *modals;
  size_t modal_count;
  const matrix *that, *whether;
  size_t that_count, whether_count;
  const weather *weather;
  size_t weather_count;
  const name *names;
  size_t name_count;
  const spot *spots;
  size_t spot_count;
  const matrix *attempts;  // verbs with zu and an infinitive
  size_t attempt_count;
  const verb *lie, *stand, *lay, *set;  // verbs of location and of placement
} lexicon;

extern const lexicon tarn__lexicon;

#endif
