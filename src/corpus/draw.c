// Draws the parts of clauses: matching words, determiners, tenses, adjuncts.
#include <string.h>

#include "corpus/grammar.h"

static const lexicon *const LEX = &tarn__lexicon;

static size_t below(tarn__random *random, size_t n) { return (size_t)tarn__random_below(random, n); }

bool tarn__chance(tarn__random *random, int percent) { return (int)below(random, 100) < percent; }

// A noun of one of the classes and of none of `without`.
static const noun *draw_word(tarn__random *random, unsigned classes, unsigned without) {
  const noun *found = NULL;
  size_t seen = 0;
  for (size_t i = 0; i < LEX->noun_count; i++) {
    const noun *n = &LEX->nouns[i];
    if (!(n->classes & classes) || (n->classes & without)) continue;
    if (below(random, ++seen) == 0) found = n;
  }
  return found;
}

static const adjective *draw_adjective(tarn__random *random, unsigned classes, const adjective *not_this,
                                       bool compared) {
  const adjective *found = NULL;
  size_t seen = 0;
  for (size_t i = 0; i < LEX->adjective_count; i++) {
    const adjective *a = &LEX->adjectives[i];
    if (!(a->classes & classes) || a == not_this || (compared && !a->german_more)) continue;
    if (below(random, ++seen) == 0) found = a;
  }
  return found;
}

// Whether "his", "her" or "their" can replace the phrase in both languages: not for animals and things, and not for
// "das Kind" and "das Mädchen", where German follows grammar and English the person.
static bool has_natural_gender(const noun_phrase *p) {
  if (p->kind == PHRASE_NONE) return false;
  if (p->kind != PHRASE_NOUN || p->agreement.plural) return true;
  return (p->noun->classes & PERSON) && p->agreement.gender != NEUTER;
}

bool tarn__refer(noun_phrase *out, const noun_phrase *phrase) {
  if (!has_natural_gender(phrase)) return false;
  *out = (noun_phrase){.kind = PHRASE_PRONOUN, .agreement = phrase->agreement};
  return true;
}

static agreement draw_speaker(tarn__random *random) {
  static const agreement speakers[] = {{1, false, MASCULINE}, {1, true, MASCULINE}, {2, false, MASCULINE}};
  return speakers[below(random, 3)];
}

static determiner draw_determiner(tarn__random *random, const noun *n, bool plural) {
  int dice = (int)below(random, 100);
  if (!n->german_plural) return dice < 55 ? BARE : dice < 85 ? DEFINITE : POSSESSIVE;
  if (n->classes & KIN) return dice < 80 ? POSSESSIVE : plural ? NUMBER : DEFINITE;
  if (plural) return dice < 45 ? DEFINITE : dice < 65 ? NUMBER : dice < 80 ? THIS : dice < 90 ? BARE : POSSESSIVE;
  if (n->classes & PERSON) return dice < 60 ? DEFINITE : dice < 85 ? INDEFINITE : THIS;
  return dice < 45 ? DEFINITE : dice < 72 ? INDEFINITE : dice < 84 ? THIS : POSSESSIVE;
}

void tarn__draw_noun(noun_phrase *out, tarn__random *random, unsigned classes, unsigned without,
                     const noun_phrase *owner) {
  const noun *n = draw_word(random, classes, without);
  bool plural = n->german_plural && !(n->classes & ONLY_ONE) && tarn__chance(random, 25);
  *out = (noun_phrase){.kind = PHRASE_NOUN, .agreement = {3, plural, n->gender}, .noun = n};
  out->determiner = draw_determiner(random, n, plural);
  out->number = 2 + (int)below(random, 4);
  out->owner = owner && has_natural_gender(owner) && tarn__chance(random, 75) ? owner->agreement : draw_speaker(random);
  if (tarn__chance(random, 28)) out->adjective = draw_adjective(random, n->classes, NULL, false);
}

static void draw_pronoun(noun_phrase *out, tarn__random *random) {
  static const agreement all[] = {{1, false, MASCULINE}, {2, false, MASCULINE}, {3, false, MASCULINE},
                                  {3, false, FEMININE},  {1, true, MASCULINE},  {2, true, MASCULINE},
                                  {3, true, MASCULINE}};
  *out = (noun_phrase){.kind = PHRASE_PRONOUN, .agreement = all[below(random, 7)]};
}

static void draw_name(noun_phrase *out, tarn__random *random) {
  const name *n = &LEX->names[below(random, LEX->name_count)];
  *out = (noun_phrase){.kind = PHRASE_NAME, .agreement = {3, false, n->gender}, .name = n};
}

void tarn__draw_subject(noun_phrase *out, tarn__random *random, unsigned classes) {
  int dice = (int)below(random, 100);
  if ((classes & PERSON) && dice < 32)
    draw_pronoun(out, random);
  else if ((classes & PERSON) && dice < 44)
    draw_name(out, random);
  else
    tarn__draw_noun(out, random, classes, 0, NULL);
  if (out->kind == PHRASE_NOUN && out->determiner == BARE) out->determiner = DEFINITE;
}

// Whether a pronoun would refer to the subject, which requires a reflexive pronoun, or nearly so ("I see us").
static bool clashes(const noun_phrase *p, const noun_phrase *subject) {
  if (p->kind == PHRASE_NAME) return subject->kind == PHRASE_NAME && p->name == subject->name;
  return p->kind == PHRASE_PRONOUN && p->agreement.person < 3 && p->agreement.person == subject->agreement.person;
}

// An object: for persons sometimes a pronoun or a name.
static void draw_object(noun_phrase *out, tarn__random *random, unsigned classes, const noun_phrase *subject,
                        bool pronouns) {
  int dice = (int)below(random, 100);
  bool person = classes & PERSON;
  do {
    if (person && pronouns && dice < 25)
      draw_pronoun(out, random);
    else if (person && dice < 35)
      draw_name(out, random);
    else
      tarn__draw_noun(out, random, classes, 0, subject);
  } while (clashes(out, subject));
}

static void draw_tense(clause *c, tarn__random *random, clause_use use) {
  int dice = (int)below(random, 100);
  bool state = c->verb->flags & VERB_STATE;
  c->tense = dice < 42 ? PRESENT : dice < 68 ? PAST : dice < 84 ? MODAL : dice < 92 || state ? FUTURE : PROGRESSIVE;
  if (use == CLAUSE_INFINITIVE) c->tense = PRESENT;
  if (c->tense == MODAL) c->modal = &LEX->modals[below(random, LEX->modal_count)];
}

static const time_phrase *draw_time(tarn__random *random, tense t) {
  for (;;) {
    const time_phrase *time = &LEX->times[below(random, LEX->time_count)];
    if (!(time->past && t != PAST) && !(time->future && t == PAST)) return time;
  }
}

static void draw_adjuncts(clause *c, tarn__random *random, clause_use use) {
  unsigned flags = c->verb->flags;
  object_kind kind = c->verb->kind;
  bool brief = use == CLAUSE_SUBORDINATE || use == CLAUSE_INFINITIVE;
  if (kind == OBJECT_DIRECTION || (flags & VERB_PLACE) ||
      (!(flags & VERB_NO_PLACE) && tarn__chance(random, brief ? 12 : 22)))
    c->place = &LEX->places[below(random, LEX->place_count)];
  if ((kind == OBJECT_NONE || kind == OBJECT_DIRECTION) && !(flags & VERB_NO_COMPANION) &&
      !(c->subject.agreement.person < 3 && brief) && tarn__chance(random, 18)) {
    tarn__draw_noun(&c->companion, random, LIVING, 0, &c->subject);
    if (c->companion.determiner == BARE) c->companion.determiner = DEFINITE;
  }
  if (use == CLAUSE_INFINITIVE) return;
  if (c->tense != PROGRESSIVE && tarn__chance(random, brief ? 15 : 35)) c->time = draw_time(random, c->tense);
  bool plain = c->tense == PRESENT || c->tense == PAST;
  if (!c->time && plain && use != CLAUSE_QUESTION && tarn__chance(random, 12))
    c->frequency = &LEX->frequencies[below(random, LEX->frequency_count)];
}

// Negation: "kein" for an indefinite object; a number or an indefinite dative would be odd.
static void negate(clause *c, tarn__random *random) {
  noun_phrase *o = &c->object;
  c->negated = true;
  if (o->kind != PHRASE_NOUN || c->verb->kind == OBJECT_NONE) return;
  bool accusative = c->verb->kind == OBJECT_ACCUSATIVE || c->verb->kind == OBJECT_BOTH;
  if (o->determiner == INDEFINITE || o->determiner == BARE)
    o->determiner = accusative ? NO : DEFINITE;
  else if (o->determiner == NUMBER)
    o->determiner = accusative && tarn__chance(random, 50) ? NO : DEFINITE;
}

static const verb *draw_verb(tarn__random *random, clause_use use) {
  for (;;) {
    const verb *v = &LEX->verbs[below(random, LEX->verb_count)];
    if (use != CLAUSE_INFINITIVE) return v;
    if (v->kind != OBJECT_NONE && !(v->flags & VERB_STATE)) return v;
  }
}

const verb *tarn__draw_transitive(tarn__random *random, unsigned object) {
  for (;;) {
    const verb *v = draw_verb(random, CLAUSE_MAIN);
    if ((v->kind == OBJECT_ACCUSATIVE || v->kind == OBJECT_DATIVE) && (v->object & object)) return v;
  }
}

void tarn__draw_clause(clause *c, tarn__random *random, const noun_phrase *subject, clause_use use) {
  memset(c, 0, sizeof *c);
  c->verb = draw_verb(random, use);
  if (subject)
    c->subject = *subject;
  else
    tarn__draw_subject(&c->subject, random, c->verb->subject);
  draw_tense(c, random, use);
  if (c->verb->kind == OBJECT_BOTH) {
    draw_object(&c->dative, random, PERSON, &c->subject, true);
    if (c->dative.kind == PHRASE_NOUN && c->dative.determiner == BARE) c->dative.determiner = DEFINITE;
  }
  if (c->verb->object) draw_object(&c->object, random, c->verb->object, &c->subject, c->verb->kind != OBJECT_BOTH);
  bool bare = c->object.kind == PHRASE_NOUN && c->object.determiner == BARE && c->object.noun->german_plural;
  if (bare && c->verb->kind != OBJECT_ACCUSATIVE) c->object.determiner = DEFINITE;
  draw_adjuncts(c, random, use);
  if (!c->frequency && use != CLAUSE_QUESTION && use != CLAUSE_INFINITIVE && tarn__chance(random, 14))
    negate(c, random);
}

void tarn__draw_copula(clause *c, tarn__random *random, const noun_phrase *subject, unsigned classes) {
  memset(c, 0, sizeof *c);
  if (subject)
    c->subject = *subject;
  else
    tarn__draw_subject(&c->subject, random, classes);
  c->tense = tarn__chance(random, 70) ? PRESENT : PAST;
  bool is_noun = c->subject.kind == PHRASE_NOUN;
  unsigned fits = is_noun ? c->subject.noun->classes : PERSON;
  c->very = tarn__chance(random, 20);
  bool compared = !c->very && tarn__chance(random, 30);
  c->predicate = draw_adjective(random, fits, is_noun ? c->subject.adjective : NULL, compared || c->very);
  if (compared && c->predicate) {
    unsigned kind = fits & PERSON ? PERSON : fits & ANIMAL ? ANIMAL : fits & ~(unsigned)FLAT;
    tarn__draw_noun(&c->than, random, kind, 0, &c->subject);
    c->than.adjective = NULL;
    if (c->than.determiner == BARE) c->than.determiner = DEFINITE;
  }
  c->negated = tarn__chance(random, 14);
  if ((fits & LIVING) && tarn__chance(random, 25)) c->time = draw_time(random, c->tense);
}
