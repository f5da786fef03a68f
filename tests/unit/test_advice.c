// Advice from records of experiments, made by hand so that their verdicts are known: what is recommended, what is not,
// and what a form becomes in another configuration.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "data/shard.h"
#include "make_shard.h"
#include "results_runs.h"
#include "tarn/lab/advice.h"

#define KINDS                                                                                                          \
  "kinds:\n  L: { heads: 2, ffn: 32 }\n  R: { heads: 2, ffn: 32, frozen: yes }\n  F: { mixer: none, ffn: 32, frozen: " \
  "yes }\ndata: { vocab: vocab, train: train, valid: valid }\n"
#define MODEL(encoder, more) \
  "model: { d_model: 16, norm: pre" more " }\nencoder: { layers: " encoder " }\ndecoder: { layers: L*2 }\n" KINDS

// A finished run of one update in `update` seconds, with a log of three lines, of which the last was disturbed.
static void one_run(const char *place, int seed, const char *model, double bleu, double update, int trained, int frozen,
                    const char *more) {
  char path[256], text[2048];
  const int last = (int)(120 / update);
  snprintf(path, sizeof path, "%s/seed-%d", place, seed);
  run_config(path, model, seed, 2);
  snprintf(text, sizeof text,
           "{\"kind\":\"valid\",\"step\":0,\"epoch\":0,\"time\":0,\"valid_bleu\":0}\n"
           "{\"kind\":\"train\",\"step\":20,\"epoch\":0.2,\"time\":%.9g,\"loss\":6}\n"
           "{\"kind\":\"train\",\"step\":40,\"epoch\":0.4,\"time\":%.9g,\"loss\":5}\n"
           "{\"kind\":\"train\",\"step\":60,\"epoch\":0.6,\"time\":%.9g,\"loss\":4}\n"
           "{\"kind\":\"valid\",\"step\":%d,\"epoch\":1,\"time\":120,\"valid_bleu\":%.9g}\n",
           20 * update, 40 * update, 60 * update + 30, last, bleu);
  run_file(path, "log.jsonl", text);
  snprintf(text, sizeof text,
           "{\"version\": \"0.1.0\", \"status\": \"finished\", \"end\": \"minutes\", \"update\": %d, \"epoch\": 1, "
           "\"seconds\": 120, \"clock\": \"wall\", \"threads\": 2, \"parameters\": {\"total\": %d, \"trained\": %d, "
           "\"frozen\": %d, \"shared_saved\": 0}%s}\n",
           last, trained + frozen, trained, frozen, more);
  run_file(path, "result.json", text);
}

// Three runs whose scores are `bleu` and `spread` more and less.
static void runs(const char *place, const char *model, double bleu, double spread, double update, int trained,
                 int frozen) {
  for (int seed = 1; seed <= 3; seed++)
    one_run(place, seed, model, bleu + spread * (seed - 2), update, trained, frozen,
            ", \"data_hash\": \"0123456789abcdef0123456789abcdef\"");
}

static void sweep(const char *folder, const char *variants, const char *seeds, const char *sequential) {
  char text[2048];
  snprintf(
      text, sizeof text,
      "{\"version\": \"0.1.0\", \"name\": \"claim\", \"baseline\": \"regular\", \"budget_seconds\": 120.0, "
      "\"clock\": \"wall\", \"variants\": [%s], \"seeds\": [%s], \"parallel\": 1, \"threads\": 2, \"test\": null%s}",
      variants, seeds, sequential);
  run_file(folder, "sweep.json", text);
}
#define VARIANT(name) "{\"name\": \"" name "\", \"set\": {}, \"equalized\": null}"

static void given(const char *path, const char *model) { sandbox_write(path, model, strlen(model)); }

static tarn_status make(tarn_advice **advice, const char *config, const char *const *folders, size_t count) {
  tarn_advice_options options;
  tarn_advice_default(&options);
  options.config = config;
  options.folders = folders;
  options.folder_count = count;
  options.plan.source_vocab = 50;
  return tarn_advice_make(advice, &options);
}

static tarn_advice *made(const char *config, const char *folder) {
  tarn_advice *advice;
  if (make(&advice, config, &folder, 1) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return advice;
}

static const tarn_advice_form *form_of(const tarn_advice *advice, const char *variant) {
  const tarn_advice_record *r = &advice->records[0];
  for (size_t i = 0; i < r->form_count; i++)
    if (strcmp(r->forms[i].variant, variant) == 0) return &r->forms[i];
  fail_msg("there is no form %s", variant);
  return NULL;
}

static const char *choice(const tarn_advice_record *r, size_t index) {
  return index < r->form_count ? r->forms[index].variant : "none";
}

static void has_line(const tarn_advice_record *r, const char *line) {
  for (size_t i = 0; i < r->line_count; i++)
    if (strcmp(r->lines[i], line) == 0) return;
  for (size_t i = 0; i < r->line_count; i++) print_error("- %s\n", r->lines[i]);
  fail_msg("no line \"%s\"", line);
}

static void near(double got, double expected) {
  if (fabs(got - expected) <= 1e-9 * fmax(1, fabs(expected))) return;
  fail_msg("got %.17g, expected %.17g", got, expected);
}

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  // Without a design: only what is better can be good.
  runs("plain/regular", MODEL("L*4", ""), 20, 0.1, 1, 1000, 0);
  runs("plain/frozen", MODEL("(R L)*2", ""), 30, 0.1, 0.8, 600, 400);
  runs("plain/ffn", MODEL("(F L)*2", ""), 29, 0.1, 0.5, 700, 200);
  runs("plain/half", MODEL("L*2", ""), 20.02, 0.2, 0.6, 600, 0);
  runs("plain/other", MODEL("(R L)*2", ", activation: gelu"), 31, 0.1, 0.8, 600, 400);
  runs("plain/top", MODEL("L*2 R*2", ""), 10, 0.1, 0.8, 600, 400);
  runs("plain/deeper", MODEL("L*5", ""), 40, 0.1, 2, 1200, 0);
  sweep("plain",
        VARIANT("regular") "," VARIANT("frozen") "," VARIANT("ffn") "," VARIANT("half") "," VARIANT(
            "other") "," VARIANT("top") "," VARIANT("deeper"),
        "1, 2, 3", "");
  // With one: equivalent within 0.3, worse by less than that, worse, and open after the first look.
  runs("design/regular", MODEL("L*4", ""), 20, 0.01, 1, 1000, 0);
  runs("design/frozen", MODEL("(R L)*2", ""), 20.005, 0.01, 0.8, 600, 400);
  runs("design/near", MODEL("(F L)*2", ""), 19.9, 0.001, 0.9, 500, 200);
  runs("design/half", MODEL("L*2", ""), 20.001, 0.01, 0.6, 550, 0);
  runs("design/open", MODEL("L R*2 L", ""), 20.1, 3, 0.7, 400, 400);
  runs("design/far", MODEL("L*2 R*2", ""), 18, 0.01, 0.8, 600, 400);
  sweep("design",
        VARIANT("regular") "," VARIANT("frozen") "," VARIANT("near") "," VARIANT("half") "," VARIANT(
            "open") "," VARIANT("far"),
        "1, 2, 3, 4, 5",
        ", \"sequential\": {\"first\": 3, \"max_seeds\": 5, \"looks\": [3, 5], \"measure\": \"best\", \"alpha\": 0.05, "
        "\"spending\": \"pocock\", \"equivalence\": 0.3, \"futility\": 0}");
  // About exponents.
  runs("neutral/regular", MODEL("L*4", ""), 20, 0.01, 1, 1000, 0);
  runs("neutral/frozen", MODEL("(R L)*2", ""), 30, 0.01, 0.8, 600, 400);
  sweep(
      "neutral", VARIANT("regular") "," VARIANT("frozen"), "1, 2, 3",
      ", \"sequential\": {\"first\": 3, \"max_seeds\": 3, \"looks\": [3], \"measure\": \"exponent\", \"alpha\": 0.05, "
      "\"spending\": \"pocock\", \"equivalence\": 0.0, \"futility\": 0}");
  given("four.yaml",
        "model: { d_model: 32, norm: pre }\nencoder: { layers: L*4 }\ndecoder: { layers: L*2 }\n"
        "kinds:\n  L: { heads: 4, ffn: 64, dropout: 0.3 }\n");
  return 0;
}

// --- verdicts

static void better_forms_are_recommended(void **state) {
  tarn_advice *advice = made("four.yaml", "plain");
  const tarn_advice_record *r = &advice->records[0];
  (void)state;
  assert_string_equal(advice->task, "translation");
  assert_int_equal(advice->used, 1);
  assert_string_equal(r->title, "best bleu");
  assert_string_equal(r->clock, "wall");
  assert_true(!r->sequential && r->margin == 0 && !r->baseline_freezes && r->updates == 120 && r->epochs == 1);
  assert_int_equal(r->form_count, 5);  // a deeper model is none
  const tarn_advice_form *f = form_of(advice, "frozen");
  assert_string_equal(f->what, "2 of 4 encoder layers frozen: (R L)*2");
  assert_true(f->freezes && f->decision == TARN_ADVICE_BETTER && f->runs == 3 && !f->also && !f->equalized);
  assert_string_equal(f->words, "better");
  near(f->difference, 10);
  assert_true(f->low < 10 && f->low > 9 && f->p < 0.01);
  near(f->trained_share, 0.6);
  near(f->frozen_share, 0.4);
  near(f->optimiser_bytes, 600 * 8);
  near(f->update_share, 0.8);  // not the mean, which the last line disturbs
  f = form_of(advice, "ffn");
  assert_string_equal(f->what, "2 of 4 encoder layers frozen: (F L)*2, mixer none");
  f = form_of(advice, "half");
  assert_true(!f->freezes && f->decision == TARN_ADVICE_UNDECIDED);
  assert_string_equal(f->what, "2 of 4 encoder layers left out: L*2");
  f = form_of(advice, "other");
  assert_string_equal(f->also, "model.activation=gelu");
  assert_string_equal(f->obstacle, "it changes more than what is frozen or left out");
  assert_int_equal(form_of(advice, "top")->decision, TARN_ADVICE_WORSE);
  // Of two good forms one has fewer trained parameters and one is faster; the third changes something else.
  assert_string_equal(choice(r, r->fewest), "frozen");
  assert_string_equal(choice(r, r->fastest), "ffn");
  assert_string_equal(choice(r, r->shallower), "none");
  assert_int_equal(r->line_count, 5);
  has_line(r,
           "of the forms of freezing decided as good, the one with the fewest trained parameters: frozen (2 of 4 "
           "encoder layers frozen: (R L)*2), better, 0.60 of the trained parameters, 0.80 of the time of an update");
  has_line(r,
           "of the forms of freezing decided as good, the one with the fastest update: ffn (2 of 4 encoder layers "
           "frozen: (F L)*2, mixer none), better, 0.70 of the trained parameters, 0.50 of the time of an update");
  has_line(r, "decided as good, but not of freezing alone, because other keys differ: other");
  has_line(r, "worse: top");
  has_line(r,
           "undecided, so not recommended (without a margin of equivalence only a better form can be decided as "
           "good): half");
  tarn_advice_close(&advice);
  assert_null(advice);
}

// Its BLEU would be decided, of seeds that something else chose.
static void exponents_are_no_advice(void **state) {
  static const char *const folder = "neutral";
  tarn_advice *advice;
  (void)state;
  assert_true(make(&advice, "four.yaml", &folder, 1) != TARN_STATUS_OK);
  assert_non_null(strstr(tarn_error_message(), "its design is about exponent, by which no form is better"));
}

static void equivalent_forms_are_recommended(void **state) {
  tarn_advice *advice = made("four.yaml", "design");
  const tarn_advice_record *r = &advice->records[0];
  (void)state;
  assert_true(r->sequential && r->margin == 0.3 && r->alpha == 0.05);
  assert_string_equal(r->measure, "best");
  const tarn_advice_form *f = form_of(advice, "frozen");
  assert_int_equal(f->decision, TARN_ADVICE_EQUIVALENT);
  assert_string_equal(f->words, "equivalent within 0.3");
  assert_true(f->p_equal < 0.05 && f->p > 0.05);
  f = form_of(advice, "near");
  assert_int_equal(f->decision, TARN_ADVICE_EQUIVALENT);
  assert_string_equal(f->words, "worse, but equivalent within 0.3");
  assert_int_equal(form_of(advice, "open")->decision, TARN_ADVICE_UNDECIDED);
  assert_int_equal(form_of(advice, "far")->decision, TARN_ADVICE_WORSE);
  // The open form trains least, and is not recommended.
  assert_string_equal(choice(r, r->fewest), "near");
  assert_string_equal(choice(r, r->fastest), "frozen");
  assert_string_equal(choice(r, r->shallower), "half");
  has_line(r,
           "leaving layers out is decided as good, and it is simpler than freezing: half (2 of 4 encoder layers left "
           "out: L*2), equivalent within 0.3, 0.55 of the trained parameters, 0.60 of the time of an update");
  has_line(
      r,
      "of the forms of freezing decided as good, the one with the fewest trained parameters: near (2 of 4 encoder "
      "layers frozen: (F L)*2, mixer none), worse, but equivalent within 0.3, 0.50 of the trained parameters, 0.90 "
      "of the time of an update; it was compared with regular only, not with half");
  has_line(r, "undecided, so not recommended: open");
  has_line(r, "worse: far");
  tarn_advice_close(&advice);
}

static void nothing_decided_is_said(void **state) {
  (void)state;
  runs("open/regular", MODEL("L*4", ""), 20, 1, 1, 1000, 0);
  runs("open/frozen", MODEL("(R L)*2", ""), 20.5, 1, 1, 600, 400);
  sweep("open", VARIANT("regular") "," VARIANT("frozen"), "1, 2, 3", "");
  tarn_advice *advice = made("four.yaml", "open");
  has_line(&advice->records[0], "nothing is recommended: nothing is decided yet");
  tarn_advice_close(&advice);
  // A worse form is a decision, but nothing to recommend.
  runs("open/frozen", MODEL("(R L)*2", ""), 10, 1, 1, 600, 400);
  advice = made("four.yaml", "open");
  assert_int_equal(form_of(advice, "frozen")->decision, TARN_ADVICE_WORSE);
  has_line(&advice->records[0],
           "nothing is recommended: no form that freezes, and nothing else, is decided as good, and "
           "none that leaves layers out");
  tarn_advice_close(&advice);
  // Two seeds have no verdict, however far they are.
  sweep("open", VARIANT("regular") "," VARIANT("frozen"), "1, 2", "");
  advice = made("four.yaml", "open");
  assert_string_equal(form_of(advice, "frozen")->words, "no verdict (two seeds)");
  has_line(&advice->records[0], "nothing is recommended: nothing is decided yet");
  tarn_advice_close(&advice);
}

// A shallower model counts against freezing even if it differs in other ways, which is said.
static void shallower_models_are_told_apart(void **state) {
  (void)state;
  runs("shallow/regular", MODEL("L*4", ""), 20, 0.1, 1, 1000, 0);
  runs("shallow/one", MODEL("L", ", activation: gelu"), 30, 0.1, 1, 300, 0);
  sweep("shallow", VARIANT("regular") "," VARIANT("one"), "1, 2, 3", "");
  tarn_advice *advice = made("four.yaml", "shallow");
  const tarn_advice_record *r = &advice->records[0];
  assert_string_equal(choice(r, r->shallower), "one");
  has_line(r,
           "a shallower model that differs in more than that is decided as good, without freezing anything: one (3 of "
           "4 encoder layers left out: L), better, 0.30 of the trained parameters, 1.00 of the time of an update; it "
           "also changes model.activation=gelu");
  tarn_advice_close(&advice);
  // One that does not comes first, though it has more parameters.
  runs("shallow/two", MODEL("L*2", ""), 30, 0.1, 1, 500, 0);
  sweep("shallow", VARIANT("regular") "," VARIANT("one") "," VARIANT("two"), "1, 2, 3", "");
  advice = made("four.yaml", "shallow");
  r = &advice->records[0];
  assert_string_equal(choice(r, r->shallower), "two");
  has_line(
      r,
      "leaving layers out is decided as good, and it is simpler than freezing: two (2 of 4 encoder layers left out: "
      "L*2), better, 0.50 of the trained parameters, 1.00 of the time of an update");
  tarn_advice_close(&advice);
}

// A record that compares frozen models with each other says nothing about freezing.
static void a_frozen_baseline_recommends_nothing(void **state) {
  (void)state;
  runs("how/regular", MODEL("(R L)*2", ""), 20, 0.1, 1, 600, 400);
  runs("how/ffn", MODEL("(F L)*2", ""), 30, 0.1, 1, 600, 200);
  runs("how/trained", MODEL("L*4", ""), 30, 0.1, 1, 1000, 0);
  sweep("how", VARIANT("regular") "," VARIANT("ffn") "," VARIANT("trained"), "1, 2, 3", "");
  tarn_advice *advice = made("four.yaml", "how");
  const tarn_advice_record *r = &advice->records[0];
  assert_true(r->baseline_freezes && r->form_count == 1 && r->fewest == 1 && r->fastest == 1);
  assert_string_equal(r->forms[0].obstacle, "its baseline freezes layers itself");
  has_line(r, "decided as good against it: ffn");
  tarn_advice_close(&advice);
}

// Times of other processors, or with other threads, are not compared.
static void times_are_of_one_machine(void **state) {
  static const char *const machines[] = {", \"processor\": \"A\"", ", \"processor\": \"B\""};
  (void)state;
  for (int seed = 1; seed <= 3; seed++) {
    one_run("times/regular", seed, MODEL("L*4", ""), 20 + 0.1 * seed, 1, 1000, 0, machines[0]);
    // A faster machine once.
    one_run("times/frozen", seed, MODEL("(R L)*2", ""), 30 + 0.1 * seed, seed == 2 ? 0.1 : 0.75, 600, 400,
            machines[seed == 2]);
    one_run("times/ffn", seed, MODEL("(F L)*2", ""), 30 + 0.1 * seed, 0.1, 700, 200, machines[1]);
  }
  sweep("times", VARIANT("regular") "," VARIANT("frozen") "," VARIANT("ffn"), "1, 2, 3", "");
  tarn_advice *advice = made("four.yaml", "times");
  const tarn_advice_record *r = &advice->records[0];
  near(form_of(advice, "frozen")->update_share, 0.75);
  assert_true(isnan(form_of(advice, "ffn")->update_share));
  assert_string_equal(choice(r, r->fastest), "frozen");
  assert_string_equal(choice(r, r->fewest), "frozen");
  tarn_advice_close(&advice);
  // One is not called the fastest, or the one that trains least, where only one is decided.
  one_run("times/ffn", 2, MODEL("(F L)*2", ""), 0, 0.1, 700, 200, machines[1]);
  advice = made("four.yaml", "times");
  has_line(&advice->records[0],
           "one form of freezing is decided as good: frozen (2 of 4 encoder layers frozen: (R L)*2), "
           "better, 0.60 of the trained parameters, 0.75 of the time of an update");
  tarn_advice_close(&advice);
}

// --- the form in another configuration

static void applied(const char *model, const char *folder, const char *variant, const char *kind, const char *layers) {
  given("given.yaml", model);
  tarn_advice *advice = made("given.yaml", folder);
  const tarn_advice_form *f = form_of(advice, variant);
  if (f->obstacle) fail_msg("%s: %s", variant, f->obstacle);
  assert_int_equal(f->override_count, kind ? 2 : 1);
  if (kind) assert_string_equal(f->overrides[0], kind);
  assert_string_equal(f->overrides[f->override_count - 1], layers);
  // It is what a plan with these changes says.
  tarn_config *config;
  tarn_plan plan;
  assert_int_equal(tarn_config_read(&config, "given.yaml", f->overrides, f->override_count), TARN_STATUS_OK);
  assert_int_equal(tarn_plan_make(&plan, config, &(tarn_plan_options){.source_vocab = 50}), TARN_STATUS_OK);
  assert_int_equal(f->planned.trained_parameters, plan.trained_parameters);
  assert_int_equal(f->planned.frozen_parameters, plan.frozen_parameters);
  assert_int_equal(f->planned.total_bytes, plan.total_bytes);
  assert_true(f->planned.trained_parameters < advice->planned.trained_parameters);
  assert_true((f->planned.frozen_parameters > 0) == f->freezes);
  tarn_plan_close(&plan);
  tarn_config_close(&config);
  tarn_advice_close(&advice);
}

static void refused(const char *model, const char *folder, const char *variant, const char *words) {
  given("given.yaml", model);
  tarn_advice *advice = made("given.yaml", folder);
  const tarn_advice_form *f = form_of(advice, variant);
  assert_int_equal(f->override_count, 0);
  assert_non_null(f->obstacle);
  if (!strstr(f->obstacle, words)) fail_msg("\"%s\" instead of \"%s\"", f->obstacle, words);
  assert_int_equal(f->planned.total_bytes, 0);
  tarn_advice_close(&advice);
}

#define GIVEN(encoder, decoder, kinds) \
  "model: { d_model: 32 }\nencoder: { layers: " encoder " }\ndecoder: { layers: " decoder " }\nkinds:\n" kinds

static void forms_take_the_given_layers(void **state) {
  (void)state;
  // The keys in which the record's frozen layers differ, and no others; only what is no default is written.
  applied(GIVEN("A*4", "A", "  A: { heads: 4, ffn: 64, dropout: 0.3 }\n"), "plain", "frozen",
          "kinds.R={ ffn: 64, frozen: yes, dropout: 0.3 }", "encoder.layers=(R A)*2");
  applied(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "plain", "ffn",
          "kinds.R={ mixer: none, ffn: 64, frozen: yes }", "encoder.layers=(R A)*2");
  // A pattern of groups goes on; the name of a kind in use is not taken.
  applied(GIVEN("R*6", "R", "  R: { heads: 8, ffn: 64 }\n"), "plain", "frozen",
          "kinds.RR={ heads: 8, ffn: 64, frozen: yes }", "encoder.layers=(RR R)*3");
  refused(GIVEN("A*5", "A", "  A: { heads: 8, ffn: 64 }\n"), "plain", "frozen", "has no form for your 5");
  // One that is no group holds for its own depth only.
  applied(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "design", "open",
          "kinds.R={ heads: 8, ffn: 64, frozen: yes }", "encoder.layers=A R*2 A");
  refused(GIVEN("A*8", "A", "  A: { heads: 8, ffn: 64 }\n"), "design", "open", "has no form for your 8");
  // Layers left out.
  applied(GIVEN("A*6", "A", "  A: { heads: 8, ffn: 64 }\n"), "plain", "half", NULL, "encoder.layers=A*3");
  refused(GIVEN("A*5", "A", "  A: { heads: 8, ffn: 64 }\n"), "plain", "half", "has no form for your 5");
}

static void other_stacks_are_refused(void **state) {
  (void)state;
  refused(GIVEN("A*3 B", "A", "  A: { heads: 4, ffn: 64 }\n  B: { heads: 4, ffn: 32 }\n"), "plain", "frozen",
          "your encoder A*3 B is not one kind of trained layer");
  refused(GIVEN("(R A)*2", "A", "  A: { heads: 4, ffn: 64 }\n  R: { heads: 4, ffn: 64, frozen: yes }\n"), "plain",
          "frozen", "your encoder (R A)*2 is not one kind of trained layer");
  refused(GIVEN("A1*4", "A", "  A: { heads: 4, ffn: 64 }\n"), "plain", "frozen", "each with its own weights");
  refused(GIVEN("A*4", "B", "  A: { mixer: light_conv, kernel: 3, heads: 4, ffn: 64 }\n  B: { heads: 4 }\n"), "plain",
          "frozen", "have the mixer attention, and yours light_conv");
}

// What the record's variants freeze in other ways.
static void other_forms(void **state) {
  (void)state;
  runs("ways/regular", MODEL("L*4", ""), 20, 0.1, 1, 1000, 0);
  runs("ways/embeddings", MODEL("L*4", ", frozen_embeddings: encoder"), 30, 0.1, 1, 900, 100);
  runs("ways/shared", MODEL("(R1 L)*2", ""), 30, 0.1, 1, 600, 200);
  runs("ways/both", MODEL("(R1 L1)*2", ""), 30, 0.1, 1, 400, 200);
  runs("ways/equal", MODEL("(R L)*2", ""), 30, 0.1, 1, 600, 400);
  runs("ways/deeper", MODEL("(R L)*3", ""), 30, 0.1, 1, 800, 600);
  runs("ways/wide",
       "model: { d_model: 16, norm: pre }\nencoder: { layers: (W L)*2 }\ndecoder: { layers: L*2 }\nkinds:\n  "
       "L: { heads: 2, ffn: 32 }\n  W: { heads: 2, ffn: 64, frozen: yes }\ndata: { vocab: vocab, train: "
       "train, valid: valid }\n",
       30, 0.1, 1, 600, 800);
  // Drawn as trained layers are by default, which frozen ones are not.
  runs("ways/xavier",
       "model: { d_model: 16, norm: pre }\nencoder: { layers: (X L)*2 }\ndecoder: { layers: L*2 }\nkinds:\n  "
       "L: { heads: 2, ffn: 32 }\n  X: { heads: 2, ffn: 32, frozen: yes, init: xavier }\ndata: { vocab: vocab, train: "
       "train, valid: valid }\n",
       30, 0.1, 1, 600, 400);
  sweep("ways",
        VARIANT("regular") "," VARIANT("embeddings") "," VARIANT("shared") "," VARIANT("both") "," VARIANT(
            "deeper") "," VARIANT("wide") "," VARIANT("xavier") ",{\"name\": \"equal\", \"set\": {}, \"equalized\": {\"kinds.L.ffn\": \"32\", "
                                          "\"equalize\": \"parameters\", \"value\": 10, \"base\": 10}}",
        "1, 2, 3", "");
  applied(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "ways", "embeddings", NULL,
          "model.frozen_embeddings=encoder");
  applied(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "ways", "shared",
          "kinds.R={ heads: 8, ffn: 64, frozen: yes }", "encoder.layers=(R1 A)*2");
  applied(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "ways", "xavier",
          "kinds.R={ heads: 8, ffn: 64, frozen: yes, init: xavier }", "encoder.layers=(R A)*2");
  refused(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "ways", "both", "it changes more than");
  refused(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "ways", "deeper", "it changes more than");
  refused(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "ways", "wide", "another \"ffn\" than its trained ones");
  refused(GIVEN("A*4", "A", "  A: { heads: 8, ffn: 64 }\n"), "ways", "equal", "its sizes were changed");
  tarn_advice *advice = made("given.yaml", "ways");
  assert_string_equal(form_of(advice, "both")->also, "encoder.layers=(R1 L1)*2");
  assert_string_equal(form_of(advice, "equal")->equalized, "kinds.L.ffn=32");
  assert_string_equal(form_of(advice, "embeddings")->what, "embeddings frozen: encoder");
  assert_string_equal(form_of(advice, "xavier")->what, "2 of 4 encoder layers frozen: (X L)*2, init xavier");
  assert_true(advice->records[0].equalized);
  tarn_advice_close(&advice);
}

// --- how near the record is

static void distance_is_told(void **state) {
  (void)state;
  given("given.yaml", GIVEN("A*6", "A", "  A: { heads: 4, ffn: 64 }\n"));
  tarn_advice *advice = made("given.yaml", "plain");
  static const char *const told[] = {"d_model 32, not 16",
                                     "encoder of 6 layers, not 4",
                                     "decoder of 1 layer, not 2",
                                     "norm post, not pre",
                                     "text not compared, because yours was not read",
                                     "trained for up to 50000 updates, not 120"};
  assert_int_equal(advice->records[0].distant_count, 6);
  for (size_t i = 0; i < 6; i++) assert_string_equal(advice->records[0].distant[i], told[i]);
  tarn_advice_close(&advice);
  // The text is compared by its hash, whatever it is called.
  make_shard("text", 10, 50, 50, 1);
  tarn__shard shard;
  char hash[128];
  assert_int_equal(tarn__shard_open(&shard, "text"), TARN_STATUS_OK);
  snprintf(hash, sizeof hash, ", \"data_hash\": \"%s\"", shard.hash);
  tarn__shard_close(&shard);
  for (int seed = 1; seed <= 3; seed++) {
    one_run("same/regular", seed, MODEL("L*4", ""), 20 + 0.1 * seed, 1, 1000, 0, hash);
    one_run("same/frozen", seed, MODEL("(R L)*2", ""), 20 + 0.1 * seed, 1, 600, 400, hash);
  }
  sweep("same", VARIANT("regular") "," VARIANT("frozen"), "1, 2, 3", "");
  given("given.yaml",
        "model: { d_model: 16, norm: pre }\nencoder: { layers: L*4 }\ndecoder: { layers: L*2 }\nkinds:\n  "
        "L: { heads: 2, ffn: 32 }\ndata: { train: text }\ntrain: { max_epochs: 2 }\n");
  const char *const folders[] = {"same", "plain"};
  tarn_advice_options options;
  tarn_advice_default(&options);
  options.config = "given.yaml", options.folders = folders, options.folder_count = 2;
  assert_int_equal(tarn_advice_make(&advice, &options), TARN_STATUS_OK);
  assert_int_equal(advice->records[0].distant_count, 0);
  assert_int_equal(advice->records[1].distant_count, 1);
  assert_string_equal(advice->records[1].distant[0], "another text");
  tarn_advice_close(&advice);
}

// --- folders that are of no use

static void fails(const char *folder, tarn_status status, const char *words) {
  tarn_advice *advice;
  assert_int_equal(make(&advice, "four.yaml", &folder, 1), status);
  assert_null(advice);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" instead of \"%s\"", tarn_error_message(), words);
  assert_null(strchr(tarn_error_message(), '\n'));
}

static void bad_folders_are_named(void **state) {
  (void)state;
  fails("missing", TARN_STATUS_IO, "missing: it cannot be found");
  assert_int_equal(mkdir("empty", 0777), 0);
  fails("empty", TARN_STATUS_USAGE,
        "empty says nothing about a model of the task translation: there is no record in it: it has no sweep.json");
  fails("four.yaml", TARN_STATUS_USAGE, "there is no folder of records");
  run_file("planned", "sweep.yaml", "base: base.yaml\n");
  fails("planned/", TARN_STATUS_USAGE,
        "planned says nothing about a model of the task translation: none of its runs has begun");
  // No baseline, or none that is finished.
  run_file("lost", "sweep.json",
           "{\"version\": \"0.1.0\", \"name\": \"lost\", \"variants\": [{\"name\": \"a\"}], \"seeds\": [1]}");
  fails("lost", TARN_STATUS_USAGE, "lost/sweep.json: it has no \"baseline\"");
  sweep("lost", VARIANT("regular") "," VARIANT("frozen"), "1, 2, 3", "");
  fails("lost", TARN_STATUS_USAGE, "none of its runs is finished");
  runs("lost/frozen", MODEL("(R L)*2", ""), 20, 0.1, 1, 600, 400);
  fails("lost", TARN_STATUS_USAGE, "no run of its baseline regular is finished");
  // Damage: no JSON, another version, a log that was cut.
  runs("hurt/regular", MODEL("L*4", ""), 20, 0.1, 1, 1000, 0);
  run_file("hurt", "sweep.json", "{\"version\": ");
  fails("hurt", TARN_STATUS_DATA, "hurt/sweep.json");
  sweep("hurt", VARIANT("regular") "," VARIANT("frozen"), "1, 2, 3", "");
  one_run("hurt/regular", 2, MODEL("L*4", ""), 20, 1, 1000, 0,
          ", \"log\": {\"bytes\": 5000, \"hash\": \"0c1ebb2de0c40d12\"}");
  fails("hurt", TARN_STATUS_DATA, "hurt/regular/seed-2/log.jsonl is not that of the training");
  run_file("hurt/regular/seed-2", "result.json", "{\"version\": \"99.0.0\"}");
  fails("hurt", TARN_STATUS_DATA, "99.0.0");
}

// Folders of another task are left out, beside one of the task.
static void other_tasks_are_left_out(void **state) {
  (void)state;
#define TEXTS \
  "model: { d_model: 16 }\nkinds:\n  L: { heads: 2, ffn: 32 }\ndata: { vocab: vocab, train: train, valid: valid }\n"
  for (int seed = 1; seed <= 3; seed++)
    one_run("texts/regular", seed, TEXTS "decoder: { layers: L }\nvalid: { metric: loss }\n", seed, 1, 1000, 0, "");
  sweep("texts", VARIANT("regular"), "1, 2, 3", "");
  fails("texts", TARN_STATUS_USAGE, "texts says nothing about a model of the task translation: its task is language");
  const char *const folders[] = {"texts", "four.yaml", "planned", "plain"};
  tarn_advice *advice;
  assert_int_equal(make(&advice, "four.yaml", folders, 4), TARN_STATUS_OK);
  assert_int_equal(advice->record_count, 3);
  assert_int_equal(advice->used, 1);
  assert_non_null(advice->records[0].left_out);
  assert_non_null(advice->records[1].left_out);
  assert_null(advice->records[2].left_out);
  tarn_advice_close(&advice);
  assert_int_equal(make(&advice, "four.yaml", folders, 3), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "none of the 2 folders"));
}

// Every failing allocation at first, then fewer, since each costs a reading of the record, and fewest under sanitizers.
static void survives_lack_of_memory(void **state) {
  const char *folder = "same";
  tarn_advice *advice;
  tarn_status status = TARN_STATUS_MEMORY;
  const uint64_t part = getenv("TARN_SAMPLE") ? 2 : 8;
  (void)state;
  for (uint64_t n = 1; status == TARN_STATUS_MEMORY; n += 1 + n / part) {
    tarn__memory_fail_after(n);
    status = make(&advice, "four.yaml", &folder, 1);
    tarn__memory_fail_after(0);
    if (status != TARN_STATUS_OK) assert_null(advice);
    tarn_advice_close(&advice);
  }
  assert_int_equal(status, TARN_STATUS_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(better_forms_are_recommended),
      cmocka_unit_test(exponents_are_no_advice),
      cmocka_unit_test(equivalent_forms_are_recommended),
      cmocka_unit_test(nothing_decided_is_said),
      cmocka_unit_test(shallower_models_are_told_apart),
      cmocka_unit_test(a_frozen_baseline_recommends_nothing),
      cmocka_unit_test(times_are_of_one_machine),
      cmocka_unit_test(forms_take_the_given_layers),
      cmocka_unit_test(other_stacks_are_refused),
      cmocka_unit_test(other_forms),
      cmocka_unit_test(distance_is_told),
      cmocka_unit_test(bad_folders_are_named),
      cmocka_unit_test(other_tasks_are_left_out),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
