// The description of a run for TensorBoard: as a text (plugin "text"), and as hyper-parameters (plugin "hparams", data
// format in tensorboard/plugins/hparams/plugin_data.proto), by which runs can be sorted and filtered.
#include "train/event_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "config/yaml_tree.h"
#include "run/event_message.h"
#include "run/names.h"

// Numbers of the fields that are written, by message.
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, CLASS_TENSOR = 2, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_STRING = 8, SHAPE_SIZE = 2, SIZE_COUNT = 1, FLOAT = 1, STRING = 7 };
enum { HPARAMS_START = 3, START_HPARAMS = 1, START_TIME = 5, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { JSON_NUMBER = 2, JSON_TEXT = 3, JSON_BOOL = 4 };

// --- values of a plugin

static tarn_status metadata(tarn__message *value, const char *plugin, const tarn__message *content) {
  tarn__message data = {0}, all = {0};
  tarn_status status = tarn__message_text(&data, PLUGIN_NAME, plugin);
  if (status == TARN_STATUS_OK && content)
    status = tarn__message_bytes(&data, PLUGIN_CONTENT, content->data, content->size);
  if (status == TARN_STATUS_OK) status = tarn__message_bytes(&all, METADATA_PLUGIN, data.data, data.size);
  if (status == TARN_STATUS_OK) status = tarn__message_number(&all, METADATA_CLASS, CLASS_TENSOR);
  if (status == TARN_STATUS_OK) status = tarn__message_bytes(value, VALUE_METADATA, all.data, all.size);
  tarn__free(data.data);
  tarn__free(all.data);
  return status;
}

// A tensor with one text, or the empty numeric one that marks a value as metadata only.
static tarn_status tensor(tarn__message *value, const char *text) {
  tarn__message all = {0};
  const uint8_t size[] = {SIZE_COUNT << 3, text ? 1 : 0};
  const uint8_t shape[] = {SHAPE_SIZE << 3 | 2, sizeof size, size[0], size[1]};
  tarn_status status = tarn__message_number(&all, TENSOR_TYPE, text ? STRING : FLOAT);
  if (status == TARN_STATUS_OK) status = tarn__message_bytes(&all, TENSOR_SHAPE, shape, sizeof shape);
  if (status == TARN_STATUS_OK && text) status = tarn__message_text(&all, TENSOR_STRING, text);
  if (status == TARN_STATUS_OK) status = tarn__message_bytes(value, VALUE_TENSOR, all.data, all.size);
  tarn__free(all.data);
  return status;
}

static tarn_status add_value(tarn__message *summary, const char *tag, const char *plugin, const tarn__message *content,
                             const char *text) {
  tarn__message value = {0};
  tarn_status status = tarn__message_text(&value, VALUE_TAG, tag);
  if (status == TARN_STATUS_OK) status = tensor(&value, text);
  if (status == TARN_STATUS_OK) status = metadata(&value, plugin, content);
  if (status == TARN_STATUS_OK) status = tarn__message_bytes(summary, SUMMARY_VALUE, value.data, value.size);
  tarn__free(value.data);
  return status;
}

// --- hyper-parameters

// A google.protobuf.Value: a number, a boolean or a string.
static tarn_status json_value(tarn__message *m, const tarn__yaml_node *node) {
  char *end;
  const double number = strtod(node->text, &end);
  const bool yes = strcmp(node->text, "yes") == 0;
  if (*node->text && !*end && isfinite(number) && !node->quoted) return tarn__message_double(m, JSON_NUMBER, number);
  if (yes || strcmp(node->text, "no") == 0) return tarn__message_number(m, JSON_BOOL, yes);
  return tarn__message_text(m, JSON_TEXT, node->text);
}

static tarn_status add_entry(tarn__message *start, const char *key, const tarn__yaml_node *node) {
  tarn__message entry = {0}, value = {0};
  tarn_status status = json_value(&value, node);
  if (status == TARN_STATUS_OK) status = tarn__message_text(&entry, ENTRY_KEY, key);
  if (status == TARN_STATUS_OK) status = tarn__message_bytes(&entry, ENTRY_VALUE, value.data, value.size);
  if (status == TARN_STATUS_OK) status = tarn__message_bytes(start, START_HPARAMS, entry.data, entry.size);
  tarn__free(entry.data);
  tarn__free(value.data);
  return status;
}

// Adds each scalar in a map under its path, "train.lr"; list entries are numbered from 0. The reader limits the depth
// of the tree.
static tarn_status add_entries(tarn__message *start, const char *path, const tarn__yaml_node *node) {
  char key[512];
  int index = 0;
  for (const tarn__yaml_node *child = node->first; child; child = child->next, index++) {
    const char *dot = *path ? "." : "";
    if (child->key)
      snprintf(key, sizeof key, "%s%s%s", path, dot, child->key);
    else
      snprintf(key, sizeof key, "%s%s%d", path, dot, index);
    if (child->type != TARN__YAML_SCALAR)
      TARN_TRY(add_entries(start, key, child));
    else if (!tarn__yaml_is_empty(child))
      TARN_TRY(add_entry(start, key, child));
  }
  return TARN_STATUS_OK;
}

static tarn_status add_hparams(tarn__message *summary, const char *text) {
  tarn__yaml tree = {0};
  tarn__yaml_node *root;
  tarn__message start = {0}, content = {0};
  tarn_status status = tarn__yaml_parse(&tree, &root, TARN__RUN_CONFIG, true, text, strlen(text));
  if (status == TARN_STATUS_OK) status = add_entries(&start, "", root);
  if (status == TARN_STATUS_OK) status = tarn__message_double(&start, START_TIME, (double)time(NULL));
  if (status == TARN_STATUS_OK) status = tarn__message_bytes(&content, HPARAMS_START, start.data, start.size);
  if (status == TARN_STATUS_OK) status = add_value(summary, "_hparams_/session_start_info", "hparams", &content, NULL);
  tarn__free(content.data);
  tarn__free(start.data);
  tarn__yaml_close(&tree);
  return status;
}

// --- the description

// TensorBoard renders texts as Markdown, in which indented lines are shown verbatim.
static tarn_status add_text(tarn__message *summary, const char *text) {
  tarn__buffer shown = {0};
  while (*text) {
    const size_t length = strcspn(text, "\n");
    tarn__buffer_add(&shown, "    ");
    tarn__buffer_put(&shown, text, length);
    tarn__buffer_add(&shown, "\n");
    text += length + (text[length] == '\n');
  }
  tarn_status status = shown.status;
  if (status == TARN_STATUS_OK)
    status = add_value(summary, "description/text_summary", "text", NULL, shown.data ? shown.data : "");
  tarn__buffer_close(&shown);
  return status;
}

tarn_status tarn__event_config(tarn__message *summary, const tarn_config *config) {
  char *text;
  TARN_TRY(tarn_config_write(config, &text));
  tarn_status status = add_text(summary, text);
  if (status == TARN_STATUS_OK) status = add_hparams(summary, text);
  tarn_config_text_close(&text);
  return status;
}
