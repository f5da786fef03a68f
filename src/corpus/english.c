// English: forms of nouns and verbs, "do" in questions and negations, and word order.
#include <stdio.h>
#include <string.h>

#include "corpus/clause.h"

static const char *const PRONOUN[2][8] = {{"I", "you", "he", "we", "you", "they", "she", "it"},
                                          {"me", "you", "him", "us", "you", "them", "her", "it"}};
static const char *const OWNER[6] = {"my", "your", "his", "our", "your", "their"};
static const char *const NUMBERS[6] = {"", "", "two", "three", "four", "five"};
static const char *const BE[6] = {"am", "are", "is", "are", "are", "are"};
static const char *const WAS[6] = {"was", "were", "was", "were", "were", "were"};

static bool is_vowel(char c) { return c && strchr("aeiou", c) != NULL; }

static int pronoun_column(agreement a) {
  if (a.person < 3 || a.plural || a.gender == MASCULINE) return form_of(a);
  return a.gender == FEMININE ? 6 : 7;
}

static const char *owner_of(agreement a) {
  if (a.person == 3 && !a.plural && a.gender == FEMININE) return "her";
  return OWNER[form_of(a)];
}

static void add_relative(words *out, const noun_phrase *p) {
  bool person = p->noun->classes & PERSON;
  if (p->relative_object) {
    tarn__words_add(out, "that");
    tarn__english_clause(out, p->relative, ENGLISH_STATEMENT);
  } else {
    tarn__words_add(out, person ? "who" : "that");
    tarn__english_clause(out, p->relative, ENGLISH_NO_SUBJECT);
  }
}

static void add_noun_phrase(words *out, const noun_phrase *p) {
  bool plural = p->agreement.plural;
  const char *head = plural ? p->noun->english_plural : p->noun->english;
  const char *next = p->adjective ? p->adjective->english : head;
  switch (p->determiner) {
    case DEFINITE:
      tarn__words_add(out, "the");
      break;
    case INDEFINITE:
      tarn__words_add(out, is_vowel(next[0]) ? "an" : "a");
      break;
    case THIS:
      tarn__words_add(out, plural ? "these" : "this");
      break;
    case NO:  // the clause is negated: "does not buy any apples"
      if (plural || !p->noun->english_plural)
        tarn__words_add(out, "any");
      else
        tarn__words_add(out, is_vowel(next[0]) ? "an" : "a");
      break;
    case POSSESSIVE:
      tarn__words_add(out, owner_of(p->owner));
      break;
    case NUMBER:
      tarn__words_add(out, NUMBERS[p->number]);
      break;
    case BARE:
      break;
  }
  if (p->adjective) tarn__words_add(out, p->adjective->english);
  tarn__words_add(out, head);
  if (p->relative) add_relative(out, p);
}

void tarn__english_phrase(words *out, const noun_phrase *p, bool object) {
  switch (p->kind) {
    case PHRASE_PRONOUN:
      tarn__words_add(out, PRONOUN[object][pronoun_column(p->agreement)]);
      break;
    case PHRASE_NAME:
      tarn__words_add(out, p->name->text);
      break;
    case PHRASE_NOUN:
      add_noun_phrase(out, p);
      break;
    case PHRASE_NONE:
      break;
  }
}

// "watches", "tries", "goes", "buys".
static void third_person(char *out, size_t size, const char *base) {
  size_t n = strlen(base);
  char last = base[n - 1];
  bool consonant_y = last == 'y' && !is_vowel(base[n - 2]);
  bool hiss = last == 's' || last == 'x' || last == 'z' || last == 'o' || (last == 'h' && strchr("cs", base[n - 2]));
  if (consonant_y)
    snprintf(out, size, "%.*sies", (int)n - 1, base);
  else
    snprintf(out, size, "%s%s", base, hiss ? "es" : "s");
}

// "writing", "running", "reading".
static void progressive(char *out, size_t size, const char *base) {
  size_t n = strlen(base);
  int groups = 0;
  for (size_t i = 0; i < n; i++) groups += is_vowel(base[i]) && (i == 0 || !is_vowel(base[i - 1]));
  bool doubled = n >= 3 && groups == 1 && !is_vowel(base[n - 1]) && !strchr("wxy", base[n - 1]) &&
                 is_vowel(base[n - 2]) && !is_vowel(base[n - 3]);
  if (base[n - 1] == 'e' && base[n - 2] != 'e')
    snprintf(out, size, "%.*sing", (int)n - 1, base);
  else if (doubled)
    snprintf(out, size, "%s%cing", base, base[n - 1]);
  else
    snprintf(out, size, "%sing", base);
}

// An auxiliary ("does", "will", "is" or none), and the verb that follows it.
typedef struct verb_parts {
  char auxiliary[16], main[64];
  bool be;  // the auxiliary is a form of "be"
} verb_parts;

static void set(verb_parts *out, const char *auxiliary, const char *main) {
  snprintf(out->auxiliary, sizeof out->auxiliary, "%s", auxiliary);
  snprintf(out->main, sizeof out->main, "%s", main);
}

// A full verb in the present: "buys", or "does" + "buy" where "do" is needed.
static void set_present(verb_parts *out, const char *base, const char *third, bool is_third, bool needs_do) {
  if (needs_do)
    set(out, is_third ? "does" : "do", base);
  else
    set(out, "", is_third ? third : base);
}

static void divide_verb(verb_parts *out, const clause *c, bool needs_do) {
  int form = form_of(c->subject.agreement);
  bool is_third = form == 2;
  char text[64];
  char both[2][64];
  memset(out, 0, sizeof *out);
  if (!c->verb) {
    set(out, (c->tense == PAST ? WAS : BE)[form], "");
    out->be = true;
    return;
  }
  const char *base = c->verb->english;
  switch (c->tense) {
    case PRESENT:
      third_person(text, sizeof text, base);
      set_present(out, base, text, is_third, needs_do);
      break;
    case PROGRESSIVE:
      if (c->verb->progressive)
        snprintf(text, sizeof text, "%s", c->verb->progressive);
      else
        progressive(text, sizeof text, base);
      set(out, BE[form], text);
      out->be = true;
      break;
    case PAST:
      set(out, needs_do ? "did" : "", needs_do ? base : c->verb->past);
      break;
    case FUTURE:
      set(out, "will", base);
      break;
    case MODAL:
      snprintf(both[0], sizeof both[0], "%s%s%s", c->modal->main, *c->modal->main ? " " : "", base);
      snprintf(both[1], sizeof both[1], "%s %s", c->modal->main_third ? c->modal->main_third : "", base);
      if (c->modal->auxiliary)
        set(out, c->modal->auxiliary, both[0]);
      else
        set_present(out, both[0], both[1], is_third, needs_do);
      break;
  }
}

static void add_objects(words *out, const clause *c) {
  const verb *v = c->verb;
  bool pronoun = c->object.kind == PHRASE_PRONOUN && !*v->english_preposition;
  if (c->dative.kind != PHRASE_NONE && !(v->flags & VERB_TO)) tarn__english_phrase(out, &c->dative, true);
  if (pronoun) tarn__english_phrase(out, &c->object, true);  // "picks him up", but "picks up the child"
  tarn__words_add(out, v->english_particle);
  tarn__words_add(out, v->english_preposition);  // also alone: "Who does he look for?"
  if (!pronoun) tarn__english_phrase(out, &c->object, true);
  if (c->dative.kind != PHRASE_NONE && (v->flags & VERB_TO)) {
    tarn__words_add(out, "to");
    tarn__english_phrase(out, &c->dative, true);
  }
}

static void add_predicate(words *out, const clause *c) {
  if (c->very) tarn__words_add(out, "very");
  tarn__words_add(out, c->than.kind != PHRASE_NONE ? c->predicate->english_more : c->predicate->english);
  if (c->than.kind == PHRASE_NONE) return;
  tarn__words_add(out, "than");
  tarn__english_phrase(out, &c->than, true);
}

static void add_end(words *out, const clause *c, bool with_time) {
  if (c->companion.kind != PHRASE_NONE) {
    tarn__words_add(out, "with");
    tarn__english_phrase(out, &c->companion, true);
  }
  if (c->place) {
    bool direction = c->verb && c->verb->kind == OBJECT_DIRECTION;
    tarn__words_add(out, direction ? c->place->english_to : c->place->english_where);
  }
  if (c->spot) {
    tarn__words_add(out, c->spot->english);
    tarn__english_phrase(out, &c->support, true);
  }
  if (c->time && with_time) tarn__words_add(out, c->time->english);
}

void tarn__english_clause(words *out, const clause *c, english_order order) {
  verb_parts parts;
  bool question = order == ENGLISH_QUESTION;
  divide_verb(&parts, c, question || c->negated);
  if (order == ENGLISH_INFINITIVE) set(&parts, "", c->verb->english);
  if (order == ENGLISH_TIME_FIRST) tarn__words_add(out, c->time->english);
  if (question) tarn__words_add(out, parts.auxiliary);
  if (order != ENGLISH_NO_SUBJECT && order != ENGLISH_INFINITIVE) tarn__english_phrase(out, &c->subject, false);
  if (c->negated && strcmp(parts.auxiliary, "can") == 0 && !question) {
    tarn__words_add(out, "cannot");
  } else {
    if (!question) tarn__words_add(out, parts.auxiliary);
    if (c->negated) tarn__words_add(out, "not");
  }
  if (c->frequency) tarn__words_add(out, c->frequency->english);
  tarn__words_add(out, parts.main);
  if (c->verb)
    add_objects(out, c);
  else
    add_predicate(out, c);
  add_end(out, c, order != ENGLISH_TIME_FIRST);
}
