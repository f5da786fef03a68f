// The embedded corpus: forms of both languages on clauses made by hand, and properties of the files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "corpus/grammar.h"
#include "sandbox.h"
#include "tarn/lab/corpus.h"

static const noun *find_noun(const char *german) {
  for (size_t i = 0; i < tarn__lexicon.noun_count; i++)
    if (strcmp(tarn__lexicon.nouns[i].german, german) == 0) return &tarn__lexicon.nouns[i];
  fail_msg("no noun %s", german);
  return NULL;
}

static const verb *find_verb(const char *particle, const char *german) {
  for (size_t i = 0; i < tarn__lexicon.verb_count; i++) {
    const verb *v = &tarn__lexicon.verbs[i];
    if (strcmp(v->german, german) == 0 && strcmp(v->particle, particle) == 0) return v;
  }
  fail_msg("no verb %s%s", particle, german);
  return NULL;
}

static const adjective *find_adjective(const char *german) {
  for (size_t i = 0; i < tarn__lexicon.adjective_count; i++)
    if (strcmp(tarn__lexicon.adjectives[i].german, german) == 0) return &tarn__lexicon.adjectives[i];
  fail_msg("no adjective %s", german);
  return NULL;
}

static noun_phrase make_noun(const char *german, determiner d, const char *adjective_text, bool plural) {
  const noun *n = find_noun(german);
  noun_phrase p = {.kind = PHRASE_NOUN, .agreement = {3, plural, n->gender}, .noun = n, .determiner = d, .number = 2};
  p.owner = (agreement){3, false, FEMININE};
  if (adjective_text) p.adjective = find_adjective(adjective_text);
  return p;
}

static noun_phrase make_pronoun(int person, bool plural, gender g) {
  return (noun_phrase){.kind = PHRASE_PRONOUN, .agreement = {person, plural, g}};
}

static void expect_phrase(const noun_phrase *p, grammatical_case c, const char *german) {
  words out = {.length = 0};
  tarn__german_phrase(&out, p, c);
  assert_string_equal(out.text, german);
}

static void expect(const clause *c, german_order de, const char *german, english_order en, const char *english) {
  words out = {.length = 0};
  tarn__german_clause(&out, c, de);
  assert_string_equal(out.text, german);
  out = (words){.length = 0};
  tarn__english_clause(&out, c, en);
  assert_string_equal(out.text, english);
}

static void test_declension(void **state) {
  (void)state;
  noun_phrase p = make_noun("Mann", DEFINITE, "alt", false);
  expect_phrase(&p, NOMINATIVE, "der alte Mann");
  expect_phrase(&p, ACCUSATIVE, "den alten Mann");
  expect_phrase(&p, DATIVE, "dem alten Mann");
  p = make_noun("Junge", INDEFINITE, "klein", false);
  expect_phrase(&p, NOMINATIVE, "ein kleiner Junge");
  expect_phrase(&p, ACCUSATIVE, "einen kleinen Jungen");
  expect_phrase(&p, DATIVE, "einem kleinen Jungen");
  p = make_noun("Auto", INDEFINITE, "teuer", false);
  expect_phrase(&p, ACCUSATIVE, "ein teures Auto");
  p = make_noun("Frau", POSSESSIVE, "jung", false);
  expect_phrase(&p, NOMINATIVE, "ihre junge Frau");
  expect_phrase(&p, DATIVE, "ihrer jungen Frau");
  p = make_noun("Apfel", NUMBER, "rot", true);
  p.adjective = find_adjective("frisch");
  expect_phrase(&p, NOMINATIVE, "zwei frische Äpfel");
  expect_phrase(&p, DATIVE, "zwei frischen Äpfeln");
  p = make_noun("Auto", THIS, "neu", true);
  expect_phrase(&p, DATIVE, "diesen neuen Autos");
  p = make_noun("Kaffee", BARE, "kalt", false);
  expect_phrase(&p, ACCUSATIVE, "kalten Kaffee");
  p = make_noun("Buch", NO, "gut", false);
  expect_phrase(&p, ACCUSATIVE, "kein gutes Buch");
  p = make_noun("Hut", POSSESSIVE, NULL, false);
  p.owner = (agreement){2, true, MASCULINE};
  expect_phrase(&p, NOMINATIVE, "euer Hut");
  expect_phrase(&p, ACCUSATIVE, "euren Hut");
}

static void test_separable(void **state) {
  (void)state;
  clause c = {.subject = make_noun("Mann", DEFINITE, NULL, false),
              .object = make_noun("Mutter", POSSESSIVE, NULL, false),
              .verb = find_verb("an", "rufen"),
              .time = &tarn__lexicon.times[0]};
  c.object.owner = c.subject.agreement;
  expect(&c, GERMAN_SUBJECT_FIRST, "der Mann ruft heute seine Mutter an", ENGLISH_STATEMENT,
         "the man calls his mother today");
  expect(&c, GERMAN_TIME_FIRST, "heute ruft der Mann seine Mutter an", ENGLISH_TIME_FIRST,
         "today the man calls his mother");
  expect(&c, GERMAN_VERB_LAST, "der Mann heute seine Mutter anruft", ENGLISH_STATEMENT,
         "the man calls his mother today");
  expect(&c, GERMAN_INFINITIVE, "heute seine Mutter anzurufen", ENGLISH_INFINITIVE, "call his mother today");
  c.negated = true;
  expect(&c, GERMAN_VERB_FIRST, "ruft der Mann heute seine Mutter nicht an", ENGLISH_STATEMENT,
         "the man does not call his mother today");
  c.negated = false;
  c.tense = PAST;
  expect(&c, GERMAN_SUBJECT_FIRST, "der Mann hat heute seine Mutter angerufen", ENGLISH_QUESTION,
         "did the man call his mother today");
  expect(&c, GERMAN_VERB_LAST, "der Mann heute seine Mutter angerufen hat", ENGLISH_STATEMENT,
         "the man called his mother today");
  c.tense = MODAL;
  c.modal = &tarn__lexicon.modals[1];
  expect(&c, GERMAN_SUBJECT_FIRST, "der Mann muss heute seine Mutter anrufen", ENGLISH_QUESTION,
         "does the man have to call his mother today");
  expect(&c, GERMAN_VERB_LAST, "der Mann heute seine Mutter anrufen muss", ENGLISH_STATEMENT,
         "the man has to call his mother today");
  c.modal = &tarn__lexicon.modals[0];
  c.negated = true;
  c.time = NULL;
  expect(&c, GERMAN_SUBJECT_FIRST, "der Mann kann seine Mutter nicht anrufen", ENGLISH_STATEMENT,
         "the man cannot call his mother");
}

static void test_conjugation(void **state) {
  (void)state;
  static const struct {
    const char *particle, *german, *expected;
  } cases[] = {
      {"", "lesen", "ich lese|du liest|er liest|wir lesen|ihr lest|sie lesen"},
      {"", "arbeiten", "ich arbeite|du arbeitest|er arbeitet|wir arbeiten|ihr arbeitet|sie arbeiten"},
      {"", "schließen", "ich schließe|du schließt|er schließt|wir schließen|ihr schließt|sie schließen"},
      {"", "füttern", "ich füttere|du fütterst|er füttert|wir füttern|ihr füttert|sie füttern"},
      {"", "zeichnen", "ich zeichne|du zeichnest|er zeichnet|wir zeichnen|ihr zeichnet|sie zeichnen"},
      {"", "öffnen", "ich öffne|du öffnest|er öffnet|wir öffnen|ihr öffnet|sie öffnen"},
      {"", "umarmen", "ich umarme|du umarmst|er umarmt|wir umarmen|ihr umarmt|sie umarmen"},
      {"ein", "laden", "ich lade ein|du lädst ein|er lädt ein|wir laden ein|ihr ladet ein|sie laden ein"},
      {"", "essen", "ich esse|du isst|er isst|wir essen|ihr esst|sie essen"},
      {"", "treffen", "ich treffe|du triffst|er trifft|wir treffen|ihr trefft|sie treffen"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char all[512] = "";
    for (int form = 0; form < 6; form++) {
      clause c = {.subject = make_pronoun(form % 3 + 1, form >= 3, MASCULINE),
                  .verb = find_verb(cases[i].particle, cases[i].german)};
      words out = {.length = 0};
      tarn__german_clause(&out, &c, GERMAN_SUBJECT_FIRST);
      if (form) strcat(all, "|");
      strcat(all, out.text);
    }
    assert_string_equal(all, cases[i].expected);
  }
}

static void test_english(void **state) {
  (void)state;
  clause c = {.subject = make_pronoun(3, false, FEMININE),
              .object = make_pronoun(3, false, MASCULINE),
              .verb = find_verb("ab", "holen"),
              .tense = PROGRESSIVE};
  expect(&c, GERMAN_SUBJECT_FIRST, "sie holt ihn gerade ab", ENGLISH_STATEMENT, "she is picking him up");
  c.object = make_noun("Kind", DEFINITE, "müde", false);
  expect(&c, GERMAN_VERB_FIRST, "holt sie gerade das müde Kind ab", ENGLISH_QUESTION,
         "is she picking up the tired child");
  c.verb = find_verb("", "kaufen");
  c.tense = PRESENT;
  c.negated = true;
  c.object = make_noun("Apfel", NO, NULL, false);
  expect(&c, GERMAN_SUBJECT_FIRST, "sie kauft keinen Apfel", ENGLISH_STATEMENT, "she does not buy an apple");
  c.object = make_noun("Ei", NO, NULL, true);
  expect(&c, GERMAN_SUBJECT_FIRST, "sie kauft keine Eier", ENGLISH_STATEMENT, "she does not buy any eggs");
  c.negated = false;
  c.object = make_noun("Apfel", INDEFINITE, "frisch", false);
  expect(&c, GERMAN_SUBJECT_FIRST, "sie kauft einen frischen Apfel", ENGLISH_STATEMENT, "she buys a fresh apple");
  c.object = make_noun("Stuhl", INDEFINITE, "alt", false);
  expect(&c, GERMAN_SUBJECT_FIRST, "sie kauft einen alten Stuhl", ENGLISH_STATEMENT, "she buys an old chair");
  c.verb = find_verb("", "gehen");
  c.object.kind = PHRASE_NONE;
  c.place = &tarn__lexicon.places[4];
  c.tense = PAST;
  expect(&c, GERMAN_VERB_LAST, "sie zum Bahnhof gegangen ist", ENGLISH_NO_SUBJECT, "went to the station");
  const char *progressives[][3] = {{"", "schwimmen", "I am swimming"}, {"", "schreiben", "I am writing"},
                                   {"", "öffnen", "I am opening"},     {"auf", "räumen", "I am tidying up"},
                                   {"", "sitzen", "I am sitting"},     {"", "reparieren", "I am repairing"}};
  for (size_t i = 0; i < sizeof progressives / sizeof *progressives; i++) {
    clause p = {.subject = make_pronoun(1, false, MASCULINE),
                .verb = find_verb(progressives[i][0], progressives[i][1]),
                .tense = PROGRESSIVE};
    words out = {.length = 0};
    tarn__english_clause(&out, &p, ENGLISH_STATEMENT);
    assert_string_equal(out.text, progressives[i][2]);
  }
}

static void test_relative(void **state) {
  (void)state;
  clause inner = {.subject = make_noun("Frau", DEFINITE, NULL, false), .verb = find_verb("", "füttern")};
  clause outer = {.subject = make_noun("Hund", DEFINITE, NULL, false), .predicate = find_adjective("müde")};
  outer.subject.relative = &inner;
  outer.subject.relative_object = true;
  expect(&outer, GERMAN_SUBJECT_FIRST, "der Hund, den die Frau füttert, ist müde", ENGLISH_STATEMENT,
         "the dog that the woman feeds is tired");
  inner = (clause){.subject = make_noun("Mann", DEFINITE, NULL, true),
                   .object = make_noun("Brief", DEFINITE, NULL, false),
                   .verb = find_verb("", "lesen")};
  outer.subject = make_noun("Mann", DEFINITE, NULL, true);
  outer.subject.relative = &inner;
  expect(&outer, GERMAN_SUBJECT_FIRST, "die Männer, die den Brief lesen, sind müde", ENGLISH_STATEMENT,
         "the men who read the letter are tired");
}

static tarn_status write_corpus(const char *folder, uint64_t seed, int64_t sentences, int64_t held_out) {
  tarn_corpus_options options;
  tarn_corpus_default(&options);
  options.output = folder;
  options.seed = seed;
  options.sentences = sentences;
  options.held_out = held_out;
  return tarn_corpus_write(&options);
}

static char *read_text(const char *path) {
  char *text;
  size_t size;
  assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
  return text;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// Splits a text into its lines, in place.
static size_t split(char *text, char **lines) {
  size_t count = 0;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) lines[count++] = line;
  return count;
}

enum { TRAIN = 12000, HELD_OUT = 500, ALL = TRAIN + 2 * HELD_OUT };

static void test_files(void **state) {
  (void)state;
  static char *lines[ALL];
  static const char *const languages[] = {"de", "en"};
  assert_int_equal(write_corpus("c", 1, TRAIN, HELD_OUT), TARN_STATUS_OK);
  for (int l = 0; l < 2; l++) {
    char *texts[3];
    char path[32];
    size_t count = 0;
    static const char *const splits[] = {"train", "valid", "test"};
    static const size_t sizes[] = {TRAIN, HELD_OUT, HELD_OUT};
    for (int s = 0; s < 3; s++) {
      snprintf(path, sizeof path, "c/%s.%s", splits[s], languages[l]);
      texts[s] = read_text(path);
      size_t added = split(texts[s], lines + count);
      assert_int_equal(added, sizes[s]);
      count += added;
    }
    for (size_t i = 0; i < count; i++) {
      const char *line = lines[i];
      char mark = line[strlen(line) - 1];
      assert_true(mark == '.' || mark == '?');
      assert_true((line[0] >= 'A' && line[0] <= 'Z') || (unsigned char)line[0] == 0xC3);
      static const char *const never[] = {"  ",   ",,",   ", .",  ",.",    ",?",    " ,",    " .",   " a a", " a e",
                                          " a i", " a o", " a u", " an b", " an c", " an s", " I's", "NULL", "sss "};
      for (size_t k = 0; k < sizeof never / sizeof *never; k++)
        if (!(l == 0 && never[k][1] == 'a') && strstr(line, never[k])) fail_msg("\"%s\" in \"%s\"", never[k], line);
    }
    qsort(lines, count, sizeof *lines, by_text);
    for (size_t i = 1; i < count; i++) assert_true(strcmp(lines[i - 1], lines[i]) != 0);
    for (int s = 0; s < 3; s++) tarn__free(texts[s]);
  }
}

// Every phenomenon that the corpus is there for must be in it often enough to be learnt.
static void test_phenomena(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int least;
  } german[] = {{", weil ", 150}, {", dass ", 300}, {" nicht ", 400},  {"anruft", 10}, {" an.", 60},
                {" kein", 60},    {" dem ", 600},   {" gerade ", 200}, {" muss ", 40}, {" anzu", 10},
                {", den ", 10},   {"?", 1200},      {" ins ", 40}};
  assert_int_equal(write_corpus("c", 1, TRAIN, HELD_OUT), TARN_STATUS_OK);
  char *text = read_text("c/train.de");
  for (size_t i = 0; i < sizeof german / sizeof *german; i++) {
    int count = 0;
    for (const char *p = text; (p = strstr(p, german[i].text)); p++) count++;
    if (count < german[i].least) fail_msg("only %d of \"%s\"", count, german[i].text);
  }
  tarn__free(text);
}

static void test_deterministic(void **state) {
  (void)state;
  assert_int_equal(write_corpus("a", 3, 500, 50), TARN_STATUS_OK);
  assert_int_equal(write_corpus("b", 3, 500, 50), TARN_STATUS_OK);
  assert_int_equal(write_corpus("d", 4, 500, 50), TARN_STATUS_OK);
  char *a = read_text("a/train.de");
  char *b = read_text("b/train.de");
  char *d = read_text("d/train.de");
  assert_string_equal(a, b);
  assert_true(strcmp(a, d) != 0);
  tarn__free(a);
  tarn__free(b);
  tarn__free(d);
}

static void test_refusals(void **state) {
  (void)state;
  assert_int_equal(write_corpus(NULL, 1, 10, 1), TARN_STATUS_USAGE);
  assert_int_equal(write_corpus("x", 1, 0, 1), TARN_STATUS_USAGE);
  assert_int_equal(write_corpus("x", 1, 10, -1), TARN_STATUS_USAGE);
  assert_int_equal(write_corpus("/proc/x", 1, 10, 1), TARN_STATUS_IO);
  assert_int_equal(write_corpus("x/y/z", 1, 10, 0), TARN_STATUS_OK);
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (uint64_t n = 1;; n++) {
    tarn__memory_fail_after(n);
    tarn_status status = write_corpus("x", 1, 10, 1);
    tarn__memory_fail_after(0);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_declension), cmocka_unit_test(test_separable),     cmocka_unit_test(test_conjugation),
      cmocka_unit_test(test_english),    cmocka_unit_test(test_relative),      cmocka_unit_test(test_files),
      cmocka_unit_test(test_phenomena),  cmocka_unit_test(test_deterministic), cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
