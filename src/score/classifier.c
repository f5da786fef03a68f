#include "score/classifier.h"

#include <math.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/threads.h"
#include "comm/ranks.h"

void tarn_classify_default(tarn_classify_options *options) {
  *options = (tarn_classify_options){.precision = TARN_TRANSLATE_PRECISION_AUTO,
                                     .overlong = TARN_TRANSLATE_OVERLONG_TRUNCATE,
                                     .max_tokens = 4096,
                                     .window = 1024};
}

static tarn_status pack(tarn_classifier *c) {
  const tarn__rounding rounding = tarn__rounding_of(c->options.precision);
  tarn__model *model = c->checkpoint->model;
  TARN_TRY(tarn__model_pack_check(model, rounding));
  TARN_TRY(
      tarn__device_allocate(model->device, &c->packed, TARN__MEMORY_OTHER, tarn__model_pack_bytes(model, rounding), 1));
  return tarn__model_pack(model, c->packed, rounding, tarn__threads());
}

static tarn_status take_memory(tarn_classifier *c) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)c->names.count, sizeof(double)));
  c->probabilities = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)c->names.count, sizeof(int32_t)));
  c->order = memory;
  return TARN_STATUS_OK;
}

static tarn_status open_all(tarn_classifier *c, const char *path) {
  const tarn_classify_options *o = &c->options;
  TARN_REQUIRE(o->max_tokens >= 1 && o->max_tokens <= 1 << 24, USAGE,
               "the tokens computed together are 1 to %d, not %lld", 1 << 24, (long long)o->max_tokens);
  TARN_REQUIRE(o->window >= 1 && o->window <= 1000000, USAGE, "window must be from 1 to 1000000, not %lld",
               (long long)o->window);
  TARN_TRY(tarn__checkpoint_check_use(o->threads, o->overlong));
  tarn__threads_set(o->threads);
  TARN_TRY(tarn__checkpoint_open_use(&c->checkpoint, path, &c->options.precision, NULL));
  const tarn_config *config = c->checkpoint->config;
  TARN_TRY(tarn__task_require_verb(config, o->verb, path));
  c->of_words = tarn__config_task(config)->labelled == TARN__LABELLED_WORDS;
  TARN_TRY(tarn__label_names_open(&c->names, config->head.labels));
  TARN_TRY(tarn__task_first(&c->first, config, c->checkpoint->target));
  TARN_TRY(take_memory(c));
  TARN_TRY(tarn__share_open(&c->share, tarn__ranks_comm(o->ranks)));
  return pack(c);
}

tarn_status tarn_classifier_open(tarn_classifier **out, const char *path, const tarn_classify_options *options) {
  void *memory;
  *out = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_classifier)));
  tarn_classifier *c = memory;
  c->options = *options;
  const tarn_status status = open_all(c, path);
  if (status != TARN_STATUS_OK) {
    tarn_classifier_close(&c);
    return status;
  }
  *out = c;
  return TARN_STATUS_OK;
}

void tarn_classifier_close(tarn_classifier **out) {
  tarn_classifier *c = *out;
  if (!c) return;
  if (c->packed) {
    tarn__model_unpack(c->checkpoint->model);
    tarn__device_free(c->checkpoint->model->device, c->packed);
  }
  if (c->workspace) tarn__device_free(c->checkpoint->model->device, c->workspace);
  tarn__graph_close(&c->graph);
  tarn__checkpoint_close(&c->checkpoint);
  tarn__label_names_close(&c->names);
  tarn__line_block_close(&c->block);
  for (int i = 0; i < 2; i++) tarn__free(c->repaired[i].data);
  tarn__sentence_pair_close(&c->pair);
  tarn__sentence_words_close(&c->words);
  tarn__share_close(&c->share);
  int32_t *arrays[] = {c->ids, c->positions, c->offsets, c->segments, c->selected, c->zeros, c->order};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) tarn__free(arrays[i]);
  tarn__free(c->probabilities);
  tarn__free(c);
  *out = NULL;
}

const char *tarn_classifier_path(const tarn_classifier *classifier) { return classifier->checkpoint->path; }
int32_t tarn_classifier_classes(const tarn_classifier *classifier) { return classifier->names.count; }
const char *tarn_classifier_label(const tarn_classifier *classifier, int32_t label) {
  return label >= 0 && label < classifier->names.count ? classifier->names.names[label] : "";
}

const tarn_verb *tarn_classifier_verb(const tarn_classifier *classifier) {
  return tarn__config_task(classifier->checkpoint->config)->verb;
}

static tarn_status make_room(tarn_classifier *c) {
  const tarn__device *device = c->checkpoint->model->device;
  if (c->graph.workspace_bytes <= c->workspace_bytes) return TARN_STATUS_OK;
  if (c->workspace) tarn__device_free(device, c->workspace);
  c->workspace = NULL;
  c->workspace_bytes = 0;
  TARN_TRY(tarn__device_allocate(device, &c->workspace, TARN__MEMORY_ACTIVATION, c->graph.workspace_bytes, 1));
  c->workspace_bytes = c->graph.workspace_bytes;
  return TARN_STATUS_OK;
}

tarn_status tarn__classifier_run(tarn_classifier *c, const tarn__batch *batch, const float **answers, double *loss) {
  const tarn__model *model = c->checkpoint->model;
  tarn__tensor *found;
  void *read;
  tarn__model_begin(model, &c->graph, false, tarn__threads());
  tarn__tensor *sums = tarn__model_build_loss(model, &c->graph, batch, NULL, 0.0, 1.0, &found);
  TARN_TRY(tarn__graph_plan(&c->graph));
  TARN_TRY(make_room(c));
  tarn__graph_bind(&c->graph, c->workspace);
  const tarn_status status = tarn__graph_run(&c->graph, &(tarn__exec){.threads = tarn__threads()});
  TARN_TRY(model->map ? tarn__map_judge(model->map, status) : status);
  TARN_TRY(tarn__graph_result(&c->graph, &read, sums));
  *loss = ((const double *)read)[0];
  TARN_TRY(tarn__graph_result(&c->graph, &read, found));
  *answers = read;
  const int64_t count = batch->predictions * (c->names.count ? c->names.count : 1);
  for (int64_t i = 0; i < count; i++)
    TARN_REQUIRE(!isnan((*answers)[i]), NUMERIC, "the model gives an answer that is not a number");
  return TARN_STATUS_OK;
}
