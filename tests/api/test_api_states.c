// What models compute inside: tarn/lab/states.h.
#include <math.h>

#include "api_models.h"
#include "tarn/lab/states.h"

enum { WIDTH = 16 };
static const char *const lines[] = {"w3 w4 w5", "w10"};
static const size_t lengths[] = {8, 3};
static const char *const long_line = "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  api_language("text_run");
  api_classifier("label_run");
  api_translation("run");
  api_no_models("run");
  api_texts();
  return 0;
}

static tarn_states_options one_thread(void) {
  tarn_states_options options;
  tarn_states_default(&options);
  options.threads = 1;
  return options;
}

static tarn_states *opened_with(const char *run, tarn_states_options options) {
  tarn_states *states;
  works(tarn_states_open(&states, run, &options));
  return states;
}

static void select_one(tarn_states *states, const char *name) { works(tarn_states_select(states, &name, 1)); }

// With the two lines, and what is called `name` selected.
static tarn_states *opened(const char *name) {
  tarn_states *states = opened_with("run", one_thread());
  select_one(states, name);
  works(tarn_states_encode(states, lines, lengths, NULL, NULL, 2));
  return states;
}

static void use_tarn_states_default(void) {
  tarn_states_options options;
  tarn_states_default(&options);
  assert_int_equal(options.precision, TARN_TRANSLATE_PRECISION_AUTO);
  assert_int_equal(options.overlong, TARN_TRANSLATE_OVERLONG_REFUSE);
  assert_int_equal(options.max_tokens, 4096);
  assert_true(options.max_memory == 1000000000 && options.max_result == 8000000000);
  assert_true(!options.strict && !options.progress);
}

static void refuses_options(tarn_states_options options, const char *words) {
  tarn_states *states;
  refuses(tarn_states_open(&states, "run", &options), TARN_STATUS_USAGE, words);
  assert_null(states);
}

static void use_tarn_states_open(void) {
  tarn_states_options options = one_thread();
  tarn_states *states = opened_with("run", options);
  size_t count;
  tarn_states_selected(states, &count);
  assert_int_equal(count, 0);
  tarn_states_close(&states);
  REFUSES_NO_MODELS(tarn_states_open, states, options);
  assert_null(states);
  options.max_tokens = 0;
  refuses_options(options, "1 to 16777216, not 0");
  options = one_thread();
  options.threads = -1;
  refuses_options(options, "threads must be from 0 to 1024, not -1");
  options = one_thread();
  options.overlong = (tarn_translate_overlong)7;
  refuses_options(options, "there is no rule 7 for texts that are overlong");
  options = one_thread();
  options.precision = TARN_TRANSLATE_PRECISION_COUNT;
  refuses_options(options, "unknown precision");
}

static void use_tarn_states_open_translator(void) {
  tarn_translator *translator;
  tarn_translator_options options;
  tarn_translator_default(&options);
  options.threads = 1;
  works(tarn_translator_open(&translator, "run", &options));
  tarn_states *states, *own = opened("encoder.1");
  tarn_states_options looking = one_thread();
  float found[2][6 * WIDTH];
  works(tarn_states_open_translator(&states, translator, &looking));
  assert_string_equal(tarn_states_path(states), tarn_translator_path(translator));
  select_one(states, "encoder.1");
  works(tarn_states_encode(states, lines, lengths, NULL, NULL, 2));
  works(tarn_states_compute(states, (void *const[]){found[0]}));
  works(tarn_states_compute(own, (void *const[]){found[1]}));
  assert_memory_equal(found[0], found[1], sizeof found[0]);
  tarn_states_close(&states);
  tarn_states_close(&own);
  looking.max_tokens = -1;
  refuses(tarn_states_open_translator(&states, translator, &looking), TARN_STATUS_USAGE, "1 to 16777216, not -1");
  assert_null(states);
  tarn_translate_result result;  // it translates as before
  works(tarn_translator_lines(translator, &result, lines, lengths, 1));
  tarn_translator_close(&translator);
}

static void use_tarn_states_close(void) {
  tarn_states *states = opened("encoder");
  tarn_states_close(&states);
  assert_null(states);
  tarn_states_close(&states);
}

static void use_tarn_states_path(void) {
  tarn_states *states = opened("encoder");
  assert_non_null(strstr(tarn_states_path(states), "run/checkpoint"));
  tarn_states_close(&states);
}

static void use_tarn_states_sides(void) {
  tarn_states *states = opened("encoder"), *text = opened_with("text_run", one_thread());
  assert_int_equal(tarn_states_sides(states), 2);
  assert_int_equal(tarn_states_sides(text), 1);
  tarn_states_close(&states);
  tarn_states_close(&text);
}

static void use_tarn_states_offered(void) {
  tarn_states *states = opened("encoder");
  size_t count, found = 0;
  const tarn_states_array *offered = tarn_states_offered(states, &count);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(offered[i].name, "decoder.1.cross_attention") == 0) {
      assert_int_equal(offered[i].form, TARN_STATES_FORM_ATTENTION);
      assert_int_equal(offered[i].side, TARN_STATES_SIDE_TARGET);
      assert_int_equal(offered[i].key_side, TARN_STATES_SIDE_SOURCE);
      found++;
    }
    if (strcmp(offered[i].name, "output.topK.ids") == 0) {
      assert_int_equal(offered[i].type, TARN_STATES_TYPE_I32);
      assert_int_equal(offered[i].width, 0);
      found++;
    }
  }
  assert_int_equal(found, 2);
  tarn_states_close(&states);
}

static void use_tarn_states_select(void) {
  tarn_states *states = opened("encoder");
  const char *const names[] = {"encoder.1", "encoder.1", "encoder.2*", "output.top3"};
  size_t count;
  works(tarn_states_select(states, names, 4));
  tarn_states_selected(states, &count);
  assert_true(count >= 5);
  static const struct {
    const char *name, *words;
  } bad[] = {{"encoder.3", "did you mean \"encoder."},
             {"", "it has no \"\""},
             {"encoder.1.states", "it has no \"encoder.1.states\""},
             {"nothing*", "it has no \"nothing*\""},
             {"output.top0", "K is a number from 1 to 60"},
             {"output.top61", "K is a number from 1 to 60"},
             {"output.top99999999999999999999", "K is a number from 1 to 60"},
             {"output.topK", "K is a number"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    refuses(tarn_states_select(states, &bad[i].name, 1), TARN_STATUS_USAGE, bad[i].words);
    tarn_states_selected(states, &count);
    assert_int_equal(count, 0);
  }
  works(tarn_states_select(states, NULL, 0));
  tarn_states_close(&states);
}

static void use_tarn_states_selected(void) {
  tarn_states *states = opened("output.top3");
  size_t count;
  const tarn_states_array *selected = tarn_states_selected(states, &count);
  assert_int_equal(count, 2);
  assert_string_equal(selected[0].name, "output.top3");
  assert_string_equal(selected[1].name, "output.top3.ids");
  assert_int_equal(selected[1].width, 3);
  tarn_states_close(&states);
}

static void use_tarn_states_encode(void) {
  tarn_states *states = opened("encoder");
  tarn_states_summary summary;
  const char *const targets[] = {"w6", "w7 w8"};
  works(tarn_states_encode(states, lines, lengths, targets, (const size_t[]){2, 5}, 2));
  tarn_states_get_summary(states, &summary);
  assert_int_equal(summary.tokens[TARN_STATES_SIDE_TARGET], 5);
  works(tarn_states_encode(states, NULL, NULL, NULL, NULL, 0));
  assert_null(tarn_states_ids(states, TARN_STATES_SIDE_SOURCE));
  refuses(tarn_states_encode(states, &long_line, (const size_t[]){strlen(long_line)}, NULL, NULL, 1), TARN_STATUS_DATA,
          "line 1: 25 tokens, and the model takes 20");
  tarn_states_get_summary(states, &summary);
  assert_int_equal(summary.sentences, 0);
  tarn_states_close(&states);
  tarn_states_options options = one_thread();
  options.strict = true;
  states = opened_with("run", options);
  const char *const invalid[] = {"w3", "w4 \xFF"};
  refuses(tarn_states_encode(states, invalid, (const size_t[]){2, 4}, NULL, NULL, 2), TARN_STATUS_DATA,
          "line 2: invalid UTF-8");
  refuses(tarn_states_encode(states, lines, lengths, invalid, (const size_t[]){2, 4}, 2), TARN_STATUS_DATA,
          "target of line 2: invalid UTF-8");
  tarn_states_close(&states);
  states = opened_with("text_run", one_thread());
  refuses(tarn_states_encode(states, lines, lengths, targets, lengths, 2), TARN_STATUS_USAGE, "there are no targets");
  tarn_states_close(&states);
  states = opened_with("label_run", one_thread());
  refuses(tarn_states_encode(states, lines, (const size_t[]){0}, NULL, NULL, 1), TARN_STATUS_DATA,
          "line 1: a sentence that gives no token");
  tarn_states_close(&states);
}

static void use_tarn_states_encode_file(void) {
  tarn_states *states = opened("encoder");
  tarn_states_summary summary;
  works(tarn_states_encode_file(states, "lines", "lines"));
  tarn_states_get_summary(states, &summary);
  assert_int_equal(summary.sentences, 3);
  refuses(tarn_states_encode_file(states, "missing", NULL), TARN_STATUS_IO, "missing: ");
  refuses(tarn_states_encode_file(states, "lines", "missing"), TARN_STATUS_IO, "missing: ");
  refuses(tarn_states_encode_file(states, "folder", NULL), TARN_STATUS_IO, "folder: ");
  refuses(tarn_states_encode_file(states, "zero", NULL), TARN_STATUS_DATA, "zero:2: ");
  refuses(tarn_states_encode_file(states, "long", NULL), TARN_STATUS_DATA, "long:1: 25 tokens");
  refuses(tarn_states_encode_file(states, "lines", "full"), TARN_STATUS_DATA, "lines has more lines than full");
  refuses(tarn_states_encode_file(states, "full", "lines"), TARN_STATUS_DATA, "full has fewer lines than lines");
  refuses(tarn_states_encode_file(states, "-", "-"), TARN_STATUS_USAGE, "standard input cannot be both");
  tarn_states_close(&states);
  states = opened_with("text_run", one_thread());
  refuses(tarn_states_encode_file(states, "lines", "lines"), TARN_STATUS_USAGE, "there are no targets");
  tarn_states_close(&states);
}

static void use_tarn_states_get_summary(void) {
  tarn_states *states = opened("encoder");
  const char *const unheard = "w3 unheard";
  tarn_states_summary summary;
  works(tarn_states_encode(states, &unheard, (const size_t[]){10}, NULL, NULL, 1));
  tarn_states_get_summary(states, &summary);
  assert_int_equal(summary.sentences, 1);
  assert_int_equal(summary.unknown, 1);
  assert_int_equal(summary.tokens[TARN_STATES_SIDE_SOURCE], 3);
  assert_int_equal(summary.tokens[TARN_STATES_SIDE_TARGET], 0);
  tarn_states_close(&states);
}

static void use_tarn_states_ids(void) {
  tarn_states *states = opened("encoder");
  const int32_t *ids = tarn_states_ids(states, TARN_STATES_SIDE_SOURCE);
  assert_int_equal(ids[0], 3);
  assert_int_equal(ids[3], 2);
  assert_null(tarn_states_ids(states, TARN_STATES_SIDE_TARGET));
  assert_null(tarn_states_ids(states, TARN_STATES_SIDE_COUNT));
  assert_null(tarn_states_ids(states, (tarn_states_side)-1));
  tarn_states_close(&states);
}

static void use_tarn_states_offsets(void) {
  tarn_states *states = opened("encoder");
  const int64_t *offsets = tarn_states_offsets(states, TARN_STATES_SIDE_SOURCE);
  assert_true(offsets[0] == 0 && offsets[1] == 4 && offsets[2] == 6);
  assert_null(tarn_states_offsets(states, TARN_STATES_SIDE_TARGET));
  tarn_states_close(&states);
  states = opened_with("run", one_thread());
  assert_null(tarn_states_offsets(states, TARN_STATES_SIDE_SOURCE));
  tarn_states_close(&states);
}

static void use_tarn_states_piece(void) {
  tarn_states *states = opened("encoder");
  assert_string_equal(tarn_states_piece(states, TARN_STATES_SIDE_SOURCE, 4), "w4");
  assert_string_equal(tarn_states_piece(states, TARN_STATES_SIDE_TARGET, -1), "");
  assert_string_equal(tarn_states_piece(states, TARN_STATES_SIDE_TARGET, TINY_VOCAB), "");
  tarn_states_close(&states);
}

static void use_tarn_states_place(void) {
  tarn_states *states = opened("encoder.1.attention");
  assert_int_equal(tarn_states_place(states, 0, 0), 0);
  assert_int_equal(tarn_states_place(states, 0, 1), 2 * 4 * 4);
  assert_int_equal(tarn_states_place(states, 0, 2), 2 * (4 * 4 + 2 * 2));
  select_one(states, "decoder");
  assert_int_equal(tarn_states_place(states, 0, 2), -1);
  tarn_states_close(&states);
  states = opened_with("run", one_thread());  // no sentence was ever given
  select_one(states, "encoder");
  assert_int_equal(tarn_states_place(states, 0, 0), 0);
  tarn_states_close(&states);
}

static void use_tarn_states_places(void) {
  tarn_states *states = opened("encoder.1");
  int64_t places[3];
  tarn_states_places(states, 0, places);
  assert_true(places[0] == 0 && places[1] == 4 * WIDTH && places[2] == 6 * WIDTH);
  select_one(states, "output");
  tarn_states_places(states, 0, places);
  assert_true(places[0] == -1 && places[1] == -1 && places[2] == -1);
  tarn_states_close(&states);
}

static tarn_status stop_at_once(void *user, int64_t done, int64_t total) {
  assert_true(done > 0 && done <= total);
  ++*(int *)user;
  return TARN_STATUS_INTERRUPTED;
}

static void use_tarn_states_compute(void) {
  const char *const names[] = {"encoder.1", "encoder.2.attention"};
  float weights[2 * 20];
  tarn_states *states = opened("encoder.1");
  works(tarn_states_select(states, names, 2));
  works(tarn_states_compute(states, (void *const[]){NULL, weights}));
  assert_true(fabs(weights[0] + weights[1] + weights[2] + weights[3] - 1) < 1e-5);
  works(tarn_states_select(states, NULL, 0));
  refuses(tarn_states_compute(states, NULL), TARN_STATUS_USAGE, "nothing is selected");
  select_one(states, "decoder.1");
  refuses(tarn_states_compute(states, (void *const[]){weights}), TARN_STATUS_USAGE, "there are none");
  tarn_states_close(&states);
  states = opened_with("run", one_thread());  // without a sentence there is nothing to compute
  select_one(states, "encoder");
  works(tarn_states_compute(states, (void *const[]){weights}));
  tarn_states_close(&states);
  int told = 0;
  for (int i = 0; i < 3; i++) {
    tarn_states_options options = one_thread();
    if (i == 0) options.max_result = 10;
    if (i == 1) options.max_memory = 10;
    if (i == 2) options.progress = stop_at_once, options.user = &told;
    states = opened_with("run", options);
    select_one(states, "encoder.2.attention");
    works(tarn_states_encode(states, lines, lengths, NULL, NULL, 2));
    const tarn_status status = tarn_states_compute(states, (void *const[]){weights});
    if (i == 0) refuses(status, TARN_STATUS_USAGE, "the results would be 0.0 MB");
    if (i == 1) refuses(status, TARN_STATUS_MEMORY, "line 1 alone needs");
    if (i == 2) assert_int_equal(status, TARN_STATUS_INTERRUPTED);
    tarn_states_close(&states);
  }
  assert_int_equal(told, 1);
}

static tarn_status count_to(void *user, int64_t sentence, const void *const *values) {
  int64_t *left = user;
  assert_true(sentence >= 0 && isfinite(((const float *)values[0])[0]));
  return --*left == 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static void use_tarn_states_each(void) {
  tarn_states *states = opened("encoder.0");
  int64_t left = 10;
  works(tarn_states_each(states, count_to, &left));
  assert_int_equal(left, 8);
  left = 1;
  assert_int_equal(tarn_states_each(states, count_to, &left), TARN_STATUS_INTERRUPTED);
  works(tarn_states_select(states, NULL, 0));
  refuses(tarn_states_each(states, count_to, &left), TARN_STATUS_USAGE, "nothing is selected");
  select_one(states, "output");
  refuses(tarn_states_each(states, count_to, &left), TARN_STATUS_USAGE, "there are none");
  tarn_states_close(&states);
}

static void use_tarn_states_write(void) {
  tarn_states *states = opened("encoder.1.attention");
  struct stat info;
  works(tarn_states_write(states, "states.safetensors", TARN_STATES_FORMAT_SAFETENSORS));
  assert_int_equal(stat("states.safetensors", &info), 0);
  works(tarn_states_write(states, "arrays", TARN_STATES_FORMAT_NPY));
  works(tarn_states_write(states, "arrays", TARN_STATES_FORMAT_NPY));
  assert_int_equal(stat("arrays/encoder.1.attention.npy", &info), 0);
  refuses(tarn_states_write(states, "x", (tarn_states_format)2), TARN_STATUS_USAGE, "unknown format");
  refuses(tarn_states_write(states, "no/folder/x", TARN_STATES_FORMAT_SAFETENSORS), TARN_STATUS_IO, "no/folder/x");
  refuses(tarn_states_write(states, "folder", TARN_STATES_FORMAT_SAFETENSORS), TARN_STATUS_IO, "folder");
  refuses(tarn_states_write(states, "lines", TARN_STATES_FORMAT_NPY), TARN_STATUS_IO, "lines");
  refuses(tarn_states_write(states, "/dev/null", TARN_STATES_FORMAT_SAFETENSORS), TARN_STATUS_IO, "/dev/null: ");
  api_write("arrays/other.npy", "other");
  refuses(tarn_states_write(states, "arrays", TARN_STATES_FORMAT_NPY), TARN_STATUS_IO, "has other.npy");
  select_one(states, "output");
  refuses(tarn_states_write(states, "y", TARN_STATES_FORMAT_SAFETENSORS), TARN_STATUS_USAGE, "there are none");
  assert_int_equal(stat("y", &info), -1);
  tarn_states_close(&states);
}

int main(void) {
  static const char *const headers[] = {"lab/states.h", NULL};
  static const api_use uses[] = {
      USE(tarn_states_default), USE(tarn_states_open),        USE(tarn_states_open_translator),
      USE(tarn_states_close),   USE(tarn_states_path),        USE(tarn_states_sides),
      USE(tarn_states_offered), USE(tarn_states_select),      USE(tarn_states_selected),
      USE(tarn_states_encode),  USE(tarn_states_encode_file), USE(tarn_states_get_summary),
      USE(tarn_states_ids),     USE(tarn_states_offsets),     USE(tarn_states_piece),
      USE(tarn_states_place),   USE(tarn_states_places),      USE(tarn_states_compute),
      USE(tarn_states_each),    USE(tarn_states_write)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
