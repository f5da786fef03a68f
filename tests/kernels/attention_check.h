// A graph of one attention over sequences of given lengths, for kernel_check.h.
#ifndef TARN_TESTS_ATTENTION_CHECK_H
#define TARN_TESTS_ATTENTION_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/attention.h"
#include "ops/bias_table.h"

enum { ATTENTION_SEQUENCES = 6 };

typedef struct attention_shape {
  int64_t d;
  int heads, sequences;
  int32_t queries[ATTENTION_SEQUENCES], keys[ATTENTION_SEQUENCES];  // lengths; keys are ignored in self-attention
  bool self, causal, query_grad, key_grad;
  double dropout;
} attention_shape;

// The length of a long sequence: less where every thread of a card is simulated (tests/cuda_host).
static inline int32_t attention_long(int32_t length, int32_t simulated) {
  return check_device() == &tarn__device_cpu ? length : simulated;
}

// Every how many cases of a loop are run.
static inline size_t attention_step(size_t simulated) { return check_device() == &tarn__device_cpu ? 1 : simulated; }

static inline int32_t attention_offsets(int32_t *offsets, const int32_t *lengths, int n, int32_t *longest) {
  offsets[0] = 0;
  for (int i = 0; i < n; i++) {
    offsets[i + 1] = offsets[i] + lengths[i];
    if (lengths[i] > *longest) *longest = lengths[i];
  }
  return offsets[n];
}

typedef struct attention_extras_shape {
  attention_shape shape;
  double alibi;          // as in tarn__attention_spec
  int kv_heads;          // 0: as many as heads
  bool apart;            // queries and keys of a sequence to itself are two tensors
  int64_t buckets;       // of T5's biases; 0: none
  int64_t max_distance;  // of them
  bool frozen;           // they are
} attention_extras_shape;

static inline void attention_build_extras(check *c, tarn__graph *graph, const void *spec) {
  const attention_extras_shape *e = spec;
  const attention_shape *s = &e->shape;
  int32_t q_offsets[ATTENTION_SEQUENCES + 1], k_offsets[ATTENTION_SEQUENCES + 1], unused = 0, longest = 0;
  const int64_t q_rows = attention_offsets(q_offsets, s->queries, s->sequences, &unused);
  const int64_t k_rows = attention_offsets(k_offsets, s->self ? s->queries : s->keys, s->sequences, &longest);
  const int64_t kv = e->kv_heads ? s->d / s->heads * e->kv_heads : s->d;
  const bool one = s->self && !e->apart;
  tarn__attention_spec attention = {
      .heads = s->heads, .d = s->d, .causal = s->causal, .longest = longest, .dropout = s->dropout, .alibi = e->alibi};
  tarn__tensor *queries = check_input(c, graph, q_rows, one ? s->d + 2 * kv : s->d, 1.0, s->query_grad);
  tarn__tensor *keys_values = one ? queries : check_input(c, graph, k_rows, 2 * kv, 1.0, s->key_grad);
  attention.key_column = one ? s->d : 0;
  attention.value_column = attention.key_column + kv;
  tarn__attention_extras extras = {.kv_heads = e->kv_heads};
  if (e->buckets) {
    tarn__param *table = check_param(c, e->buckets, s->heads, 1.0, !e->frozen);
    extras.biases =
        tarn__bias_table(graph, table, (tarn__bias_table_spec){(int)e->buckets, e->max_distance, !s->causal});
  }
  tarn__tensor *q_at = check_ints(c, graph, q_offsets, s->sequences + 1);
  tarn__tensor *k_at = s->self ? q_at : check_ints(c, graph, k_offsets, s->sequences + 1);
  check_output(c, tarn__attention_with(graph, queries, keys_values, q_at, k_at, attention, extras));
}

// alibi: as in tarn__attention_spec.
static inline void attention_build_biased(check *c, tarn__graph *graph, const attention_shape *s, double alibi) {
  attention_build_extras(c, graph, &(attention_extras_shape){.shape = *s, .alibi = alibi});
}

static inline void attention_build(check *c, tarn__graph *graph, const void *shape) {
  attention_build_biased(c, graph, shape, 0.0);
}

#endif
