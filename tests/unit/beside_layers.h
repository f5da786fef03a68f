// Descriptions of models of width 8 over a vocabulary of 20 words, for tests of the parameters outside the
// layers: embeddings, projections, outputs. Define KINDS, the kinds of layers, before; include it after cmocka.h.
#ifndef TARN_TESTS_BESIDE_LAYERS_H
#define TARN_TESTS_BESIDE_LAYERS_H

#include <stdio.h>
#include <string.h>

#include "model/model.h"

#define ENCODER "encoder: { layers: L }\n"
#define DECODER "decoder: { layers: L }\n"

enum { WORDS = 20, D = 8 };

static inline tarn_status read_text(tarn_config **config, const char *model, const char *stacks) {
  char text[640];
  snprintf(text, sizeof text, "model: { d_model: 8, %s }\n%s" KINDS, model, stacks);
  return tarn_config_parse(config, "m.yaml", text, strlen(text), NULL, 0);
}

static inline tarn_config *parse(const char *model, const char *stacks) {
  tarn_config *config;
  if (read_text(&config, model, stacks) != TARN_STATUS_OK) fail_msg("%s: %s", model, tarn_error_message());
  return config;
}

static inline void refused(const char *model, const char *stacks, const char *message) {
  tarn_config *config;
  if (read_text(&config, model, stacks) != TARN_STATUS_USAGE) fail_msg("%s is not refused", model);
  if (!strstr(tarn_error_message(), message)) fail_msg("\"%s\" lacks \"%s\"", tarn_error_message(), message);
}

static inline tarn__model *open_model(const tarn_config *config) {
  tarn__model *model;
  if (tarn__model_open(&model, config, WORDS, WORDS, TARN__F32, true) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  return model;
}

// The parameters outside the layers, with their uses: "band1.weight 6x8 1"; f: frozen.
static inline void beside(char *text, size_t size, const tarn__model *model) {
  *text = '\0';
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *p = model->params[i];
    const char *name = strncmp(p->name, "embeddings.", 11) == 0 ? p->name + 11 : p->name;
    if (strncmp(p->name, "encoder", 7) == 0 || strncmp(p->name, "decoder", 7) == 0) continue;
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s %lldx%lld%s %d", used ? ", " : "", name, (long long)p->rows,
             (long long)p->cols, p->trained ? "" : "f", (int)p->uses);
  }
}

// Checks the parameters of a description outside its layers, and that no layer shares any of them.
static inline void assert_beside(const char *model_keys, const char *stacks, const char *params) {
  char text[800];
  tarn_config *config = parse(model_keys, stacks);
  tarn__model *model = open_model(config);
  tarn__model_size size;
  beside(text, sizeof text, model);
  assert_string_equal(text, params);
  tarn__model_measure(model, &size);
  assert_int_equal(size.shared_layers, 0);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

#endif
