// The sentence patterns of the embedded corpus.
#include "corpus/grammar.h"

#include <string.h>

static const lexicon *const LEX = &tarn__lexicon;

static size_t below(tarn__random *random, size_t n) { return (size_t)tarn__random_below(random, n); }

static void add(sentence_pair *out, const char *german, const char *english) {
  tarn__words_add(&out->german, german);
  tarn__words_add(&out->english, english);
}

static void add_clause(sentence_pair *out, const clause *c, german_order german, english_order english) {
  tarn__german_clause(&out->german, c, german);
  tarn__english_clause(&out->english, c, english);
}

static const char *main_clause(sentence_pair *out, tarn__random *random) {
  clause c;
  tarn__draw_clause(&c, random, NULL, CLAUSE_MAIN);
  if (c.time && tarn__chance(random, 45))
    add_clause(out, &c, GERMAN_TIME_FIRST, ENGLISH_TIME_FIRST);
  else
    add_clause(out, &c, GERMAN_SUBJECT_FIRST, ENGLISH_STATEMENT);
  return ".";
}

static const char *yes_no_question(sentence_pair *out, tarn__random *random) {
  clause c;
  if (tarn__chance(random, 20))
    tarn__draw_copula(&c, random, NULL, LIVING);
  else
    tarn__draw_clause(&c, random, NULL, CLAUSE_QUESTION);
  c.negated = false;
  add_clause(out, &c, GERMAN_VERB_FIRST, ENGLISH_QUESTION);
  return "?";
}

static const char *adverb_question(sentence_pair *out, tarn__random *random) {
  clause c;
  tarn__draw_clause(&c, random, NULL, CLAUSE_QUESTION);
  bool direction = c.verb->kind == OBJECT_DIRECTION;
  if (c.place && tarn__chance(random, 60)) {
    c.place = NULL;
    add(out, direction ? "wohin" : "wo", "where");
  } else if (tarn__chance(random, 50)) {
    c.time = NULL;
    add(out, "wann", "when");
  } else {
    add(out, "warum", "why");
  }
  add_clause(out, &c, GERMAN_VERB_FIRST, ENGLISH_QUESTION);
  return "?";
}

static const char *who_question(sentence_pair *out, tarn__random *random) {
  clause c;
  const noun_phrase who = {.kind = PHRASE_NAME, .agreement = {3, false, MASCULINE}, .name = &LEX->names[0]};
  tarn__draw_clause(&c, random, &who, CLAUSE_QUESTION);
  add(out, "wer", "who");
  add_clause(out, &c, GERMAN_NO_SUBJECT, ENGLISH_NO_SUBJECT);
  return "?";
}

static const char *object_question(sentence_pair *out, tarn__random *random) {
  clause c;
  tarn__draw_clause(&c, random, NULL, CLAUSE_QUESTION);
  bool person = tarn__chance(random, 50);
  c.verb = tarn__draw_transitive(random, person ? PERSON : OBJECT | SONG | DRINK);
  c.object.kind = c.dative.kind = c.companion.kind = PHRASE_NONE;
  c.place = NULL;
  if (c.tense == PROGRESSIVE && (c.verb->flags & VERB_STATE)) c.tense = PRESENT;
  if (!(c.verb->subject & ANIMAL)) tarn__draw_subject(&c.subject, random, PERSON);
  if (person)
    add(out, c.verb->kind == OBJECT_DATIVE ? "wem" : "wen", "who");
  else
    add(out, "was", "what");
  add_clause(out, &c, GERMAN_VERB_FIRST, ENGLISH_QUESTION);
  return "?";
}

// Draws a clause; `plain`: present tense, not negated.
static void draw_event(clause *c, tarn__random *random, const noun_phrase *subject, bool plain) {
  do {
    tarn__draw_clause(c, random, subject, CLAUSE_SUBORDINATE);
  } while (plain && (c->tense != PRESENT || c->negated || c->frequency));
  c->time = NULL;
}

// The clause after a conjunction: weather, a state of the main clause's subject, or another event.
static void add_reason(sentence_pair *out, tarn__random *random, const noun_phrase *subject, bool plain) {
  clause c;
  noun_phrase same;
  bool refers = tarn__refer(&same, subject);
  int dice = (int)below(random, 100);
  if (dice < 25) {
    const weather *w = &LEX->weather[below(random, LEX->weather_count)];
    add(out, w->last, w->english);
  } else if (dice < 50) {
    tarn__draw_copula(&c, random, refers ? &same : NULL, PERSON);
    c.time = NULL;
    if (plain) {
      c.tense = PRESENT;
      c.negated = false;
    }
    add_clause(out, &c, GERMAN_VERB_LAST, ENGLISH_STATEMENT);
  } else {
    draw_event(&c, random, refers && dice < 80 ? &same : NULL, plain);
    add_clause(out, &c, GERMAN_VERB_LAST, ENGLISH_STATEMENT);
  }
}

static const char *adverbial_clause(sentence_pair *out, tarn__random *random) {
  static const char *const conjunctions[][2] = {
      {"weil", "because"}, {"weil", "because"}, {"obwohl", "although"}, {"wenn", "when"}, {"bevor", "before"}};
  size_t which = below(random, 5);
  const char *const *conjunction = conjunctions[which];
  bool plain = which >= 3;
  clause c;
  draw_event(&c, random, NULL, plain);
  if (tarn__chance(random, 35)) {
    add(out, conjunction[0], conjunction[1]);
    add_reason(out, random, &c.subject, plain);
    add(out, ",", ",");
    add_clause(out, &c, GERMAN_VERB_FIRST, ENGLISH_STATEMENT);
  } else {
    add_clause(out, &c, GERMAN_SUBJECT_FIRST, ENGLISH_STATEMENT);
    tarn__words_add(&out->german, ",");
    add(out, conjunction[0], conjunction[1]);
    add_reason(out, random, &c.subject, plain);
  }
  return ".";
}

// The subject of a verb that takes a clause, with that verb.
static void add_matrix(sentence_pair *out, tarn__random *random, const matrix *m, noun_phrase *subject) {
  tarn__draw_subject(subject, random, PERSON);
  subject->adjective = NULL;
  tarn__german_phrase(&out->german, subject, NOMINATIVE);
  tarn__english_phrase(&out->english, subject, false);
  int form = form_of(subject->agreement);
  add(out, m->forms[form], form == 2 ? m->english_third : m->english);
}

static const char *content_clause(sentence_pair *out, tarn__random *random) {
  bool that = tarn__chance(random, 70);
  const matrix *m =
      that ? &LEX->that[below(random, LEX->that_count)] : &LEX->whether[below(random, LEX->whether_count)];
  noun_phrase subject;
  noun_phrase same;
  clause c;
  add_matrix(out, random, m, &subject);
  tarn__words_add(&out->german, ",");
  add(out, that ? "dass" : "ob", that ? "that" : "whether");
  bool refers = tarn__chance(random, 25) && tarn__refer(&same, &subject);
  if (tarn__chance(random, 20))
    tarn__draw_copula(&c, random, NULL, LIVING | OBJECT | SONG);
  else
    tarn__draw_clause(&c, random, refers ? &same : NULL, CLAUSE_SUBORDINATE);
  add_clause(out, &c, GERMAN_VERB_LAST, ENGLISH_STATEMENT);
  return ".";
}

static const char *infinitive_clause(sentence_pair *out, tarn__random *random) {
  noun_phrase subject;
  clause c;
  add_matrix(out, random, &LEX->attempts[below(random, LEX->attempt_count)], &subject);
  tarn__words_add(&out->german, ",");
  tarn__draw_clause(&c, random, &subject, CLAUSE_INFINITIVE);
  add_clause(out, &c, GERMAN_INFINITIVE, ENGLISH_INFINITIVE);
  return ".";
}

static const char *copula(sentence_pair *out, tarn__random *random) {
  clause c;
  tarn__draw_copula(&c, random, NULL, tarn__chance(random, 50) ? LIVING : OBJECT | SONG | ROOM);
  if (c.time && tarn__chance(random, 40))
    add_clause(out, &c, GERMAN_TIME_FIRST, ENGLISH_TIME_FIRST);
  else
    add_clause(out, &c, GERMAN_SUBJECT_FIRST, ENGLISH_STATEMENT);
  return ".";
}

// "Der Mann, der das Buch liest, ist müde." and "Der Hund, den die Frau füttert, ist müde."
static const char *relative_clause(sentence_pair *out, tarn__random *random) {
  clause inner;
  clause outer;
  noun_phrase head;
  tarn__draw_noun(&head, random, LIVING, KIN, NULL);
  head.determiner = DEFINITE;
  tarn__draw_clause(&inner, random, &head, CLAUSE_SUBORDINATE);
  if (!(inner.verb->subject & head.noun->classes) || tarn__chance(random, 40)) {
    inner.verb = tarn__draw_transitive(random, head.noun->classes);
    tarn__draw_subject(&inner.subject, random, PERSON);
    inner.object.kind = inner.dative.kind = inner.companion.kind = PHRASE_NONE;
    inner.place = NULL;
    if (inner.tense == PROGRESSIVE && (inner.verb->flags & VERB_STATE)) inner.tense = PRESENT;
    head.relative_object = true;
  }
  inner.time = NULL;
  head.relative = &inner;
  tarn__draw_copula(&outer, random, &head, LIVING);
  if (tarn__chance(random, 50)) {
    do {
      tarn__draw_clause(&outer, random, &head, CLAUSE_SUBORDINATE);
    } while (!(outer.verb->subject & head.noun->classes));
  }
  add_clause(out, &outer, GERMAN_SUBJECT_FIRST, ENGLISH_STATEMENT);
  return ".";
}

// "Die Lampe steht auf dem Tisch." and "Sie stellt die Lampe auf den Tisch."
static const char *position(sentence_pair *out, tarn__random *random) {
  clause c;
  bool flat = tarn__chance(random, 50);
  bool moved = tarn__chance(random, 50);
  noun_phrase thing;
  memset(&c, 0, sizeof c);
  if (moved) tarn__draw_subject(&c.subject, random, PERSON);
  tarn__draw_noun(&thing, random, flat ? FLAT : THING, flat ? 0 : FLAT, moved ? &c.subject : NULL);
  if (moved)
    c.object = thing;
  else
    c.subject = thing;
  if (!moved && thing.determiner == BARE) c.subject.determiner = DEFINITE;
  c.verb = moved ? (flat ? LEX->lay : LEX->set) : (flat ? LEX->lie : LEX->stand);
  c.tense = tarn__chance(random, 65) ? PRESENT : PAST;
  c.spot = &LEX->spots[below(random, LEX->spot_count)];
  c.spot_to = moved;
  tarn__draw_noun(&c.support, random, FURNITURE, 0, NULL);
  c.support.agreement.plural = false;
  c.support.determiner = DEFINITE;
  c.negated = thing.determiner == DEFINITE && tarn__chance(random, 20);
  add_clause(out, &c, GERMAN_SUBJECT_FIRST, ENGLISH_STATEMENT);
  return ".";
}

// "Auf dem Tisch liegen zwei Bücher."
static const char *existence(sentence_pair *out, tarn__random *random) {
  clause c;
  bool flat = tarn__chance(random, 50);
  memset(&c, 0, sizeof c);
  tarn__draw_noun(&c.subject, random, flat ? FLAT : THING, flat ? 0 : FLAT, NULL);
  bool plural = c.subject.agreement.plural;
  c.subject.determiner = plural ? NUMBER : INDEFINITE;
  tarn__draw_noun(&c.support, random, FURNITURE, 0, NULL);
  c.support.agreement.plural = false;
  c.support.determiner = DEFINITE;
  const spot *s = &LEX->spots[below(random, LEX->spot_count)];
  c.verb = flat ? LEX->lie : LEX->stand;
  tarn__words_add(&out->german, s->german);
  tarn__german_phrase(&out->german, &c.support, DATIVE);
  tarn__german_clause(&out->german, &c, GERMAN_VERB_FIRST);
  tarn__words_add(&out->english, plural ? "there are" : "there is");
  tarn__english_phrase(&out->english, &c.subject, false);
  tarn__words_add(&out->english, s->english);
  tarn__english_phrase(&out->english, &c.support, true);
  return ".";
}

static const char *coordination(sentence_pair *out, tarn__random *random) {
  clause first;
  clause second;
  bool but = tarn__chance(random, 50);
  tarn__draw_clause(&first, random, NULL, CLAUSE_SUBORDINATE);
  tarn__draw_clause(&second, random, NULL, CLAUSE_SUBORDINATE);
  add_clause(out, &first, GERMAN_SUBJECT_FIRST, ENGLISH_STATEMENT);
  if (but) add(out, ",", ",");
  add(out, but ? "aber" : "und", but ? "but" : "and");
  add_clause(out, &second, GERMAN_SUBJECT_FIRST, ENGLISH_STATEMENT);
  return ".";
}

// The patterns and their percentages.
static const struct {
  const char *(*draw)(sentence_pair *, tarn__random *);
  int share;
} PATTERNS[] = {
    {main_clause, 34},      {yes_no_question, 7}, {adverb_question, 4},   {who_question, 3}, {object_question, 4},
    {adverbial_clause, 13}, {content_clause, 10}, {infinitive_clause, 5}, {copula, 7},       {relative_clause, 4},
    {position, 4},          {existence, 2},       {coordination, 3},
};

// Adds an initial capital and the final mark; removes a comma before the mark.
static void finish(words *out, const char *mark) {
  if (out->length && out->text[out->length - 1] == ',') out->text[--out->length] = '\0';
  unsigned char *first = (unsigned char *)out->text;
  if (first[0] >= 'a' && first[0] <= 'z') first[0] = (unsigned char)(first[0] - 32);
  if (first[0] == 0xC3 && first[1] >= 0xA0) first[1] = (unsigned char)(first[1] - 32);  // ä ö ü
  if (out->length + 2 > (int)sizeof out->text) {
    out->overflow = true;
    return;
  }
  memcpy(out->text + out->length, mark, 2);
  out->length++;
}

bool tarn__grammar_draw(sentence_pair *out, tarn__random *random) {
  int dice = (int)below(random, 100);
  size_t i = 0;
  memset(out, 0, sizeof *out);
  while (dice >= PATTERNS[i].share) dice -= PATTERNS[i++].share;
  const char *mark = PATTERNS[i].draw(out, random);
  finish(&out->german, mark);
  finish(&out->english, mark);
  return !out->german.overflow && !out->english.overflow;
}
