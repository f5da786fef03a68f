// German: declension, conjugation and word order.
#include <stdio.h>
#include <string.h>

#include "corpus/clause.h"

// Endings of articles and adjectives by case and by masculine, feminine, neuter, plural.
static const char *const DER[3][4] = {
    {"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "den"}};
static const char *const RELATIVE[3][4] = {
    {"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "denen"}};
static const char *const DIES[3][4] = {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}};
static const char *const EIN[3][4] = {{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}};
static const char *const WEAK[3][4] = {{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}};
static const char *const MIXED[3][4] = {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}};
static const char *const STRONG[3][4] = {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}};

static const char *const PRONOUN[3][8] = {{"ich", "du", "er", "wir", "ihr", "sie", "sie", "es"},
                                          {"mich", "dich", "ihn", "uns", "euch", "sie", "sie", "es"},
                                          {"mir", "dir", "ihm", "uns", "euch", "ihnen", "ihr", "ihm"}};
static const char *const OWNER[6] = {"mein", "dein", "sein", "unser", "euer", "ihr"};
static const char *const NUMBERS[6] = {"", "", "zwei", "drei", "vier", "fünf"};
static const char *const SEIN[6] = {"bin", "bist", "ist", "sind", "seid", "sind"};
static const char *const WAR[6] = {"war", "warst", "war", "waren", "wart", "waren"};
static const char *const HABEN[6] = {"habe", "hast", "hat", "haben", "habt", "haben"};
static const char *const WERDEN[6] = {"werde", "wirst", "wird", "werden", "werdet", "werden"};

void tarn__words_add(words *out, const char *text) {
  if (!*text) return;
  if (text[0] == ',' && out->length && out->text[out->length - 1] == ',') return;
  const char *space = out->length && text[0] != ',' ? " " : "";
  int room = (int)sizeof out->text - out->length;
  int wanted = snprintf(out->text + out->length, (size_t)room, "%s%s", space, text);
  if (wanted >= room) {
    out->overflow = true;
    out->text[out->length] = '\0';
    return;
  }
  out->length += wanted;
}

static void add2(words *out, const char *first, const char *second) {
  char text[128];
  snprintf(text, sizeof text, "%s%s", first, second);
  tarn__words_add(out, text);
}

static int column(agreement a) { return a.plural ? 3 : (int)a.gender; }

// Column of the table of pronouns: "er", "sie" and "es" share a form of the verb.
static int pronoun_column(agreement a) {
  if (a.person < 3 || a.plural || a.gender == MASCULINE) return form_of(a);
  return a.gender == FEMININE ? 6 : 7;
}

static void add_article(words *out, const noun_phrase *p, grammatical_case c) {
  int k = column(p->agreement);
  switch (p->determiner) {
    case DEFINITE:
      tarn__words_add(out, DER[c][k]);
      break;
    case INDEFINITE:
      add2(out, "ein", EIN[c][k]);
      break;
    case THIS:
      add2(out, "dies", DIES[c][k]);
      break;
    case NO:
      add2(out, "kein", EIN[c][k]);
      break;
    case POSSESSIVE: {
      const char *stem = OWNER[form_of(p->owner)];
      if (p->owner.person == 3 && !p->owner.plural && p->owner.gender == FEMININE) stem = "ihr";
      if (strcmp(stem, "euer") == 0 && *EIN[c][k]) stem = "eur";
      add2(out, stem, EIN[c][k]);
      break;
    }
    case NUMBER:
      tarn__words_add(out, NUMBERS[p->number]);
      break;
    case BARE:
      break;
  }
}

static void add_noun(words *out, const noun_phrase *p, grammatical_case c) {
  const noun *n = p->noun;
  if (!p->agreement.plural) {
    add2(out, n->german, c == NOMINATIVE ? "" : n->weak);
    return;
  }
  char last = n->german_plural[strlen(n->german_plural) - 1];
  add2(out, n->german_plural, c == DATIVE && last != 'n' && last != 's' ? "n" : "");
}

static void add_relative(words *out, const noun_phrase *p) {
  grammatical_case c = !p->relative_object                        ? NOMINATIVE
                       : p->relative->verb->kind == OBJECT_DATIVE ? DATIVE
                                                                  : ACCUSATIVE;
  tarn__words_add(out, ",");
  tarn__words_add(out, RELATIVE[c][column(p->agreement)]);
  tarn__german_clause(out, p->relative, p->relative_object ? GERMAN_VERB_LAST : GERMAN_LAST_NO_SUBJECT);
  tarn__words_add(out, ",");
}

// Everything of a noun phrase after its article.
static void add_rest(words *out, const noun_phrase *p, grammatical_case c) {
  if (p->adjective) {
    int k = column(p->agreement);
    bool strong = p->determiner == BARE || p->determiner == NUMBER;
    bool weak = p->determiner == DEFINITE || p->determiner == THIS;
    add2(out, p->adjective->stem, (strong ? STRONG : weak ? WEAK : MIXED)[c][k]);
  }
  add_noun(out, p, c);
  if (p->relative) add_relative(out, p);
}

void tarn__german_phrase(words *out, const noun_phrase *p, grammatical_case c) {
  switch (p->kind) {
    case PHRASE_PRONOUN:
      tarn__words_add(out, PRONOUN[c][pronoun_column(p->agreement)]);
      break;
    case PHRASE_NAME:
      tarn__words_add(out, p->name->text);
      break;
    case PHRASE_NOUN:
      add_article(out, p, c);
      add_rest(out, p, c);
      break;
    case PHRASE_NONE:
      break;
  }
}

// A preposition with its phrase; it contracts with the definite article where German does so.
static void add_prepositional(words *out, const char *preposition, const noun_phrase *p, grammatical_case c) {
  static const char *const melted[][3] = {{"in", "dem", "im"},  {"in", "das", "ins"}, {"an", "dem", "am"},
                                          {"an", "das", "ans"}, {"zu", "dem", "zum"}, {"zu", "der", "zur"},
                                          {"von", "dem", "vom"}};
  if (p->kind == PHRASE_NOUN && p->determiner == DEFINITE) {
    const char *article = DER[c][column(p->agreement)];
    for (size_t i = 0; i < sizeof melted / sizeof *melted; i++) {
      if (strcmp(melted[i][0], preposition) != 0 || strcmp(melted[i][1], article) != 0) continue;
      tarn__words_add(out, melted[i][2]);
      add_rest(out, p, c);
      return;
    }
  }
  tarn__words_add(out, preposition);
  tarn__german_phrase(out, p, c);
}

static void add_place(words *out, const place *p, bool direction) {
  noun n = {p->german, NULL, "", p->gender, NULL, NULL, 0};
  noun_phrase phrase = {.kind = PHRASE_NOUN, .agreement = {3, false, p->gender}, .noun = &n, .determiner = DEFINITE};
  grammatical_case c = direction && !p->to_dative ? ACCUSATIVE : DATIVE;
  add_prepositional(out, direction ? p->to : p->where, &phrase, c);
}

static bool ends_in(const char *text, const char *ending) {
  size_t a = strlen(text);
  size_t b = strlen(ending);
  return a >= b && strcmp(text + a - b, ending) == 0;
}

// The present tense of a regular verb or one that changes its vowel.
static void conjugate(char *out, size_t size, const verb *v, agreement a) {
  char stem[40];
  int form = form_of(a);
  bool short_ending = ends_in(v->german, "ern");
  snprintf(stem, sizeof stem, "%.*s", (int)strlen(v->german) - (short_ending ? 1 : 2), v->german);
  if (form == 3 || form == 5) {
    snprintf(out, size, "%s", v->german);
    return;
  }
  bool changed = v->change && (form == 1 || form == 2);
  if (changed) snprintf(stem, sizeof stem, "%s", v->change);
  bool dental = ends_in(stem, "t") || ends_in(stem, "d") || ends_in(stem, "ffn") || ends_in(stem, "chn");
  bool sibilant = ends_in(stem, "s") || ends_in(stem, "ß") || ends_in(stem, "z");
  const char *e = dental && !changed ? "e" : "";
  if (form == 0)
    snprintf(out, size, "%se", stem);
  else if (form == 1)
    snprintf(out, size, "%s%s%s", stem, e, sibilant ? "t" : "st");
  else
    snprintf(out, size, "%s%st", stem, e);
}

// The parts of the verb: "ruft" ... "an"; at the end of a clause "anruft".
typedef struct verb_parts {
  char finite[64], right[64], last[160];
} verb_parts;

static void divide_verb(verb_parts *out, const clause *c) {
  const verb *v = c->verb;
  int form = form_of(c->subject.agreement);
  memset(out, 0, sizeof *out);
  switch (c->tense) {
    case PRESENT:
    case PROGRESSIVE:
      conjugate(out->finite, sizeof out->finite, v, c->subject.agreement);
      snprintf(out->right, sizeof out->right, "%s", v->particle);
      snprintf(out->last, sizeof out->last, "%s%s", v->particle, out->finite);
      return;
    case PAST:
      snprintf(out->finite, sizeof out->finite, "%s", (v->flags & VERB_SEIN ? SEIN : HABEN)[form]);
      snprintf(out->right, sizeof out->right, "%s%s", v->particle, v->participle);
      break;
    case FUTURE:
    case MODAL:
      snprintf(out->finite, sizeof out->finite, "%s", (c->tense == FUTURE ? WERDEN : c->modal->forms)[form]);
      snprintf(out->right, sizeof out->right, "%s%s", v->particle, v->german);
      break;
  }
  snprintf(out->last, sizeof out->last, "%s %s", out->right, out->finite);
}

static void add_predicate(words *out, const clause *c) {
  if (c->than.kind != PHRASE_NONE) {
    tarn__words_add(out, c->predicate->german_more);
    tarn__words_add(out, "als");
    tarn__german_phrase(out, &c->than, NOMINATIVE);
    return;
  }
  if (c->very) tarn__words_add(out, "sehr");
  tarn__words_add(out, c->predicate->german);
}

// Everything between the finite verb and the end of the clause, without the subject.
static void add_middle(words *out, const clause *c, bool with_time) {
  bool object_pronoun = c->object.kind == PHRASE_PRONOUN && !(c->verb && c->verb->kind == OBJECT_PREPOSITION);
  grammatical_case object_case = c->verb && c->verb->kind == OBJECT_DATIVE ? DATIVE : ACCUSATIVE;
  if (object_pronoun) tarn__german_phrase(out, &c->object, object_case);
  if (c->dative.kind == PHRASE_PRONOUN) tarn__german_phrase(out, &c->dative, DATIVE);
  if (c->time && with_time) tarn__words_add(out, c->time->german);
  if (c->tense == PROGRESSIVE) tarn__words_add(out, "gerade");
  if (c->frequency) tarn__words_add(out, c->frequency->german);
  if (c->dative.kind != PHRASE_PRONOUN) tarn__german_phrase(out, &c->dative, DATIVE);
  bool prepositional = c->verb && c->verb->kind == OBJECT_PREPOSITION;
  if (!object_pronoun && !prepositional) tarn__german_phrase(out, &c->object, object_case);
  if (c->negated && !(c->object.kind == PHRASE_NOUN && c->object.determiner == NO)) tarn__words_add(out, "nicht");
  if (prepositional && c->object.kind != PHRASE_NONE)
    add_prepositional(out, c->verb->preposition, &c->object, c->verb->preposition_dative ? DATIVE : ACCUSATIVE);
  if (c->companion.kind != PHRASE_NONE) add_prepositional(out, "mit", &c->companion, DATIVE);
  if (c->place) add_place(out, c->place, c->verb && c->verb->kind == OBJECT_DIRECTION);
  if (c->spot) add_prepositional(out, c->spot->german, &c->support, c->spot_to ? ACCUSATIVE : DATIVE);
  if (!c->verb) add_predicate(out, c);
}

static void add_infinitive(words *out, const verb *v) {
  if (!*v->particle) tarn__words_add(out, "zu");
  char text[128];
  snprintf(text, sizeof text, "%s%s%s", v->particle, *v->particle ? "zu" : "", v->german);
  tarn__words_add(out, text);
}

void tarn__german_clause(words *out, const clause *c, german_order order) {
  verb_parts parts = {{0}, {0}, {0}};
  if (c->verb) {
    divide_verb(&parts, c);
  } else {
    const char *finite = (c->tense == PAST ? WAR : SEIN)[form_of(c->subject.agreement)];
    snprintf(parts.finite, sizeof parts.finite, "%s", finite);
    snprintf(parts.last, sizeof parts.last, "%s", finite);
  }
  bool last = order == GERMAN_VERB_LAST || order == GERMAN_LAST_NO_SUBJECT;
  bool verb_before = order == GERMAN_TIME_FIRST || order == GERMAN_VERB_FIRST || order == GERMAN_NO_SUBJECT;
  if (order == GERMAN_TIME_FIRST) tarn__words_add(out, c->time->german);
  if (verb_before) tarn__words_add(out, parts.finite);
  if (order != GERMAN_NO_SUBJECT && order != GERMAN_LAST_NO_SUBJECT && order != GERMAN_INFINITIVE)
    tarn__german_phrase(out, &c->subject, NOMINATIVE);
  if (order == GERMAN_SUBJECT_FIRST) tarn__words_add(out, parts.finite);
  add_middle(out, c, order != GERMAN_TIME_FIRST);
  if (order == GERMAN_INFINITIVE)
    add_infinitive(out, c->verb);
  else
    tarn__words_add(out, last ? parts.last : parts.right);
}
