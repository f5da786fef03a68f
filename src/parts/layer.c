// A layer: a token mixer, in a decoder with an encoder cross-attention, then a channel mixer.
#include <stdio.h>

#include "parts/backskip.h"
#include "parts/block.h"

tarn__layer_weights *tarn__layer_declare(tarn__declare *declare) {
  tarn__layer_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const tarn_kind *kind = declare->kind;
  const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
  const tarn__channel_entry *channel = tarn__channel_of(kind);
  weights->kind = kind;
  weights->backskip = tarn__backskip_declare(declare);
  declare->cross = &weights->cross;
  declare->last = NULL;
  if (mixer->declare) weights->mixing = mixer->declare(declare, kind->mixer.keys);
  if (channel) weights->channels = channel->declare(declare, kind->channel.keys);
  return weights;
}

void tarn__layer_build(const tarn__block_run *run, const tarn__layer_weights *weights, tarn__stream *stream) {
  const tarn_kind *kind = weights->kind;
  const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
  const tarn__channel_entry *channel = tarn__channel_of(kind);
  tarn__backskip *skip = tarn__backskip_enter(run, weights->backskip, stream);
  stream->begins = true;
  stream->replaced = !kind->residual;
  stream->skip = run->skip;
  const bool crosses = weights->cross.heads > 0 && !mixer->beside;
  stream->last = !crosses && !channel;
  if (mixer->build) mixer->build(run, weights->mixing, kind, stream);
  stream->last = !channel;
  if (crosses) tarn__cross_build(run, &weights->cross, kind, stream);
  stream->last = true;
  if (channel) channel->build(run, weights->channels, kind, stream);
  tarn__backskip_leave(run, skip, stream);
}

int64_t tarn__layer_cache_width(const tarn__layer_weights *weights, int64_t d_model) {
  const tarn__mixer_entry *mixer = tarn__mixer_of(weights->kind);
  return mixer->cache_width ? mixer->cache_width(weights->kind->mixer.keys, d_model) : 0;
}

tarn__dtype tarn__layer_cache_dtype(const tarn__layer_weights *weights, tarn__dtype dtype) {
  return tarn__mixer_of(weights->kind)->wide && dtype == TARN__BF16 ? TARN__F32 : dtype;
}

int64_t tarn__layer_state_width(const tarn__layer_weights *weights, int64_t d_model) {
  return tarn__mixer_of(weights->kind)->sequential ? tarn__layer_cache_width(weights, d_model) : 0;
}

int64_t tarn__layer_history(const tarn__layer_weights *weights) {
  const tarn__mixer_entry *mixer = tarn__mixer_of(weights->kind);
  if (!mixer->cache_width) return 1;
  return mixer->history ? mixer->history(weights->kind->mixer.keys) : INT64_MAX;
}

int64_t tarn__layer_cross_width(const tarn__layer_weights *weights) {
  return weights->cross.heads > 0 ? 2 * weights->cross.kv_heads * weights->cross.width : 0;
}

tarn_status tarn__centred_check(const tarn__part_site *site, const char *key, int64_t width) {
  char below[32] = "";
  if (!site->in_encoder || width % 2 != 0) return TARN_STATUS_OK;
  if (width > 2) snprintf(below, sizeof below, "%lld or ", (long long)width - 1);
  return tarn__part_fail(site, key,
                         "%lld is even, but a layer of the encoder sees as many tokens before it as after it; use "
                         "%s%lld",
                         (long long)width, below, (long long)width + 1);
}

tarn_status tarn__heads_check(const tarn__part_site *site, int64_t heads) {
  if (site->model->d_model % heads != 0)
    return tarn__part_fail(site, "heads", "%lld does not divide model.d_model %lld", (long long)heads,
                           (long long)site->model->d_model);
  return tarn__head_width_check(site, heads, site->model->d_model / heads);
}

tarn_status tarn__head_width_check(const tarn__part_site *site, int64_t heads, int64_t width) {
  const tarn__position_entry *position = tarn__position_of(&site->model->positions);
  const bool turned = position->turn && tarn__mixer_of(site->kind)->pairs;
  return turned ? position->check_heads(site, heads, width) : TARN_STATUS_OK;
}
