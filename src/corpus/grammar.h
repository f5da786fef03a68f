// Draws random sentences of the embedded corpus, in both languages at once.
#ifndef TARN_CORPUS_GRAMMAR_H
#define TARN_CORPUS_GRAMMAR_H

#include "base/random.h"
#include "corpus/clause.h"

typedef struct sentence_pair {
  words german, english;
} sentence_pair;

// False if the sentence is too long: draw again.
bool tarn__grammar_draw(sentence_pair *out, tarn__random *random);

// Draws a clause for the templates above. `subject` NULL: a new one. A simple clause has few adjuncts.
typedef enum clause_use { CLAUSE_MAIN, CLAUSE_QUESTION, CLAUSE_SUBORDINATE, CLAUSE_INFINITIVE } clause_use;
void tarn__draw_clause(clause *out, tarn__random *random, const noun_phrase *subject, clause_use use);
// A clause with "to be" and an adjective; classes of the subject if it is new.
void tarn__draw_copula(clause *out, tarn__random *random, const noun_phrase *subject, unsigned classes);
// A noun phrase of these classes; `owner` may be NULL.
void tarn__draw_noun(noun_phrase *out, tarn__random *random, unsigned classes, unsigned without,
                     const noun_phrase *owner);
// A subject: pronoun, name or noun.
void tarn__draw_subject(noun_phrase *out, tarn__random *random, unsigned classes);
// The pronoun for a phrase; false if there is no natural one in both languages.
bool tarn__refer(noun_phrase *out, const noun_phrase *phrase);
// True with a probability of `percent` in 100.
bool tarn__chance(tarn__random *random, int percent);
// A random verb for a kind and class of object that works with English prepositions.
const verb *tarn__draw_transitive(tarn__random *random, unsigned object);

#endif
