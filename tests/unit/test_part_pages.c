// docs/parts: a page for every entry of the tables of parts, and one table over all of each. They are made from what
// the entry says of itself and from a plan of a layer with it; TARN_UPDATE=1 makes them anew.
#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "model/plan.h"
#include "option_row.h"
#include "parts/table/part_table.h"

enum { WIDTH = 512, SHORT = 32, LONG = 512, ROWS = 4096, VOCAB = 100 };

#define PAGES TARN_SOURCE_DIR "/docs/parts"

// A table: its folder, here and in src/parts, what it is called, and the layer that is planned for its entries. The
// entry `empty` costs nothing; where `beyond` is set, a part costs what its layer does beyond that of `empty`.
static const struct {
  const char *folder, *title, *about;
  const char *model, *kind;  // formats with the word
  const char *empty;
  bool beyond;
} tables[TARN__TABLE_COUNT] = {
    [TARN__TABLE_MIXER] = {"mixer", "Token mixers",
                           "`mixer` of a kind: what brings information from one token to another.", "",
                           "mixer: %s, ffn: 0", "none", false},
    [TARN__TABLE_CHANNEL] = {"channel", "Channel mixers",
                             "`ffn` of a kind: what changes the vector of each token by itself.", "",
                             "mixer: none, ffn: { type: %s }", NULL, false},
    [TARN__TABLE_NORM] = {"norm", "Norms", "`norm_type` of the model or of a kind.", "", "mixer: none, norm_type: %s",
                          "none", true},
    [TARN__TABLE_POSITION] = {"position", "Positions",
                              "`positions` of the model: how it knows the order of its tokens.", ", positions: %s", "",
                              "none", true},
    [TARN__TABLE_ACTIVATION] = {"activation", "Activations",
                                "`activation` of the model or of an `ffn`: the function between two products.", "",
                                "mixer: none, ffn: { type: ffn, activation: %s }", "identity", true},
};

// What a layer costs.
typedef struct cost {
  int64_t parameters;
  double forward, backward, kept;  // operations and bytes per token
} cost;

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void describe(char text[1024], tarn__part_table table, const char *word) {
  char model[128], kind[128];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(model, sizeof model, tables[table].model, word);
  snprintf(kind, sizeof kind, tables[table].kind, word);
#pragma GCC diagnostic pop
  // A norm or none at all.
  if (table == TARN__TABLE_NORM && strcmp(word, "none") == 0) snprintf(kind, sizeof kind, "mixer: none, norm: none");
  snprintf(text, 1024,
           "model: { d_model: %d, max_length: %d, dropout: 0, norm: pre, embeddings: none%s }\n"
           "encoder: { layers: K }\nkinds: { K: { %s } }\ntrain: { precision: fp32 }\n",
           WIDTH, LONG, model, kind);
}

static cost layer_cost(tarn__part_table table, const char *word, int64_t length) {
  char text[1024];
  tarn_config *config;
  tarn__model *model;
  tarn_plan plan;
  describe(text, table, word);
  if (tarn_config_parse(&config, word, text, strlen(text), NULL, 0) != TARN_STATUS_OK)
    fail_msg("%s: %s", text, tarn_error_message());
  must(tarn__model_open(&model, config, VOCAB, VOCAB, TARN__F32, true));
  const bool source = tarn__task_reads(tarn__config_task(config), TARN__SIDE_SOURCE);
  const tarn__plan_batch batch = {.source_rows = source ? ROWS : 0,
                                  .source_length = source ? (double)length : 0,
                                  .longest_source = source ? length : 0,
                                  .target_rows = source ? 0 : ROWS,
                                  .target_length = source ? 0 : (double)length,
                                  .longest_target = source ? 0 : length};
  must(tarn__plan_model(&plan, model, &batch, 1));
  cost all = {0};
  for (size_t i = 0; i < plan.part_count; i++) {
    const tarn_plan_part *part = &plan.parts[i];
    const bool layer = strncmp(part->label, "encoder 1 ", 10) == 0;
    if (!layer && table != TARN__TABLE_POSITION) continue;
    all.parameters += part->trained_parameters + part->frozen_parameters;
    all.forward += part->forward_flops;
    all.backward += part->backward_flops;
    all.kept += (double)part->kept_bytes / ROWS;
  }
  tarn_plan_close(&plan);
  tarn__model_close(&model);
  tarn_config_close(&config);
  return all;
}

static bool is_empty(tarn__part_table table, const char *word) {
  return tables[table].empty && strcmp(tables[table].empty, word) == 0;
}

static cost cost_of(tarn__part_table table, const char *word, int64_t length) {
  if (is_empty(table, word)) return (cost){0};
  const cost whole = layer_cost(table, word, length);
  if (!tables[table].beyond) return whole;
  const cost rest = layer_cost(table, tables[table].empty, length);
  return (cost){whole.parameters - rest.parameters, whole.forward - rest.forward, whole.backward - rest.backward,
                whole.kept - rest.kept};
}

static const char *in_words(bool yes) { return yes ? "yes" : "no"; }

// An operation is a multiplication or an addition; thousands of them.
static void put_thousands(FILE *out, double operations) { fprintf(out, " %.1f |", operations / 1000.0); }

static void put_keys(FILE *out, tarn__part_table table, const tarn__part *part) {
  char owner[64];
  bool any = false;
  tarn_config_option option;
  snprintf(owner, sizeof owner, "%s %s", tarn__part_noun(table), part->word);
  char section[64] = "";
  for (size_t i = 0; tarn_config_option_at(i, &option); i++) {
    if (strcmp(option.part, owner) != 0) continue;
    // A part that several keys name has its keys at each of them.
    const int length = (int)(strrchr(option.key, '.') - option.key);
    if (!any) snprintf(section, sizeof section, "%.*s", length, option.key);
    if (strncmp(section, option.key, (size_t)length) != 0 || section[length] != 0) continue;
    if (!any) fprintf(out, "## Keys\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
    put_option_row(out, &option);
    any = true;
  }
  if (any) fputc('\n', out);
}

static void put_cost_table(FILE *out, tarn__part_table table, const tarn__part *part) {
  if (is_empty(table, part->word)) return;
  const cost brief = cost_of(table, part->word, SHORT), far = cost_of(table, part->word, LONG);
  fprintf(
      out,
      "## Cost\n\nAt d_model %d, with the defaults of its keys%s%s; per token, in sentences of %d and of %d tokens.\n\n"
      "| | %d tokens | %d tokens |\n| --- | ---: | ---: |\n",
      WIDTH, tables[table].beyond ? ", beyond that of " : ", norms included",
      tables[table].beyond ? tables[table].empty : "", SHORT, LONG, SHORT, LONG);
  fprintf(out, "| parameters | %lld | %lld |\n", (long long)brief.parameters, (long long)far.parameters);
  fprintf(out, "| operations forward, thousands |");
  put_thousands(out, brief.forward);
  put_thousands(out, far.forward);
  fprintf(out, "\n| operations backward, thousands |");
  put_thousands(out, brief.backward);
  put_thousands(out, far.backward);
  fprintf(out, "\n| bytes kept for the backward pass, fp32 | %.0f | %.0f |\n\n", brief.kept, far.kept);
}

static void put_abilities(FILE *out, const tarn__mixer_entry *mixer) {
  fprintf(out, "- In a decoder (causal form): %s\n- Token by token while decoding: %s\n", in_words(mixer->causal),
          in_words(mixer->decodes));
  fprintf(out, "- Followed by cross-attention in a decoder that has an encoder: %s\n",
          mixer->beside ? "within its sublayer" : in_words(mixer->attends));
  fprintf(out, "- Has queries and keys for position schemes (rotary, ALiBi and the like): %s\n",
          in_words(mixer->pairs));
  fprintf(out, "- Reads its own state at the previous token (recurrent): %s\n\n", in_words(mixer->sequential));
}

static char *page_of(tarn__part_table table, const tarn__part *part) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  if (!part->equation || !part->source) fail_msg("%s has no equation or no source", part->word);
  fprintf(out, "<!-- made from src/parts/%s by tests/unit/test_part_pages.c -->\n# %s\n\n%c%s.\n\n",
          tables[table].folder, part->word, part->text[0], part->text + 1);
  for (const char *line = part->equation; line;) {
    const char *end = strchr(line, '\n');
    fprintf(out, "    %.*s\n", end ? (int)(end - line) : (int)strlen(line), line);
    line = end ? end + 1 : NULL;
  }
  fprintf(out, "\nSource: %s.\n\n", part->source);
  if (table == TARN__TABLE_MIXER) put_abilities(out, (const tarn__mixer_entry *)part);
  put_keys(out, table, part);
  put_cost_table(out, table, part);
  assert_int_equal(fclose(out), 0);
  // One line end at the end of the page.
  while (size > 1 && text[size - 2] == '\n') text[--size] = 0;
  return text;
}

static void put_table(FILE *out, tarn__part_table table) {
  const tarn__part *part;
  const bool mixers = table == TARN__TABLE_MIXER;
  fprintf(out,
          "\n## %s\n\n%s\n\n| part | what it is | parameters | at %d tokens | at %d tokens | bytes kept |%s source |\n",
          tables[table].title, tables[table].about, SHORT, LONG, mixers ? " decoder |" : "");
  fprintf(out, "| --- | --- | ---: | ---: | ---: | ---: |%s --- |\n", mixers ? " --- |" : "");
  for (int i = 0; (part = tarn__part_at(table, i)) != NULL; i++) {
    const cost brief = cost_of(table, part->word, SHORT), far = cost_of(table, part->word, LONG);
    fprintf(out, "| [`%s`](%s/%s.md) | %s | %lld |", part->word, tables[table].folder, part->word, part->text,
            (long long)brief.parameters);
    put_thousands(out, brief.forward + brief.backward);
    put_thousands(out, far.forward + far.backward);
    fprintf(out, " %.0f |", brief.kept);
    const tarn__mixer_entry *mixer = (const tarn__mixer_entry *)part;
    if (mixers) fprintf(out, " %s |", mixer->decodes ? "yes" : mixer->causal ? "training only" : "no");
    fprintf(out, " %s |\n", part->source ? part->source : "");
  }
}

static char *overview(void) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  fprintf(out,
          "<!-- made from src/parts by tests/unit/test_part_pages.c -->\n# Parts\n\n"
          "What layers and models are made of. Each part may be trained or frozen (`frozen` of its kind). Parameters, "
          "thousands of operations per token (forward and backward, in sentences of %d and %d tokens) and bytes kept "
          "per token for the backward pass (fp32, %d tokens) are those of a layer at d_model %d with the defaults of "
          "the part's keys: for mixers with their norm; for norms, positions and activations what they add to a layer "
          "without them.\n",
          SHORT, LONG, SHORT, WIDTH);
  for (tarn__part_table table = 0; table < TARN__TABLE_COUNT; table++) put_table(out, table);
  assert_int_equal(fclose(out), 0);
  return text;
}

// Compares a page with the file, or writes it.
static void hold(const char *path, char *text) {
  if (getenv("TARN_UPDATE")) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
  } else {
    char *page;
    size_t size;
    must(tarn__file_read(path, &page, &size));
    assert_string_equal(page, text);
    tarn__free(page);
  }
  free(text);
}

static void pages_say_what_entries_say(void **state) {
  (void)state;
  char path[512];
  const tarn__part *part;
  for (tarn__part_table table = 0; table < TARN__TABLE_COUNT; table++) {
    snprintf(path, sizeof path, PAGES "/%s", tables[table].folder);
    if (getenv("TARN_UPDATE")) (void)mkdir(path, 0777);
    for (int i = 0; (part = tarn__part_at(table, i)) != NULL; i++) {
      snprintf(path, sizeof path, PAGES "/%s/%s.md", tables[table].folder, part->word);
      hold(path, page_of(table, part));
    }
  }
  hold(PAGES "/README.md", overview());
}

// A part that is gone leaves no page.
static void every_page_has_its_entry(void **state) {
  (void)state;
  for (tarn__part_table table = 0; table < TARN__TABLE_COUNT; table++) {
    char path[512], word[64];
    snprintf(path, sizeof path, PAGES "/%s", tables[table].folder);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *file; (file = readdir(folder));) {
      if (sscanf(file->d_name, "%63[a-z0-9_].md", word) != 1) continue;
      if (!tarn__part_find(table, word)) fail_msg("%s/%s is of no part", path, file->d_name);
    }
    closedir(folder);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pages_say_what_entries_say),
                                     cmocka_unit_test(every_page_has_its_entry)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
