#include "text/bpe_scores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"

// A merge by the places of its two tokens; `score` is that of what it makes.
typedef struct pair {
  float score;
  int32_t left, right;
} pair;

typedef struct pairs {
  const tarn__bpe_token *tokens;
  const int32_t *plain;  // the plain tokens, as the index numbers them
  tarn__index index;
  pair *list;
  size_t count, capacity;
} pairs;

static int by_score(const void *a, const void *b) {
  const pair *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->left != y->left) return x->left < y->left ? -1 : 1;
  return (x->right > y->right) - (x->right < y->right);
}

static int32_t find(const pairs *p, const char *text, size_t length) {
  size_t step = 0;
  const uint64_t hash = tarn__hash64(text, length, 0);
  for (int64_t i; (i = tarn__index_next(&p->index, hash, &step)) >= 0;) {
    const tarn__bpe_token *token = &p->tokens[p->plain[i]];
    if (token->length == length && memcmp(token->text, text, length) == 0) return p->plain[i];
  }
  return -1;
}

// All ways to make a token of two others.
static tarn_status add_pairs(pairs *p, int32_t id, float score) {
  const tarn__bpe_token *token = &p->tokens[id];
  for (size_t cut = 1; cut < token->length; cut++) {
    const int32_t left = find(p, token->text, cut);
    const int32_t right = left >= 0 ? find(p, token->text + cut, token->length - cut) : -1;
    if (right < 0) continue;
    TARN_TRY(tarn__grow(&p->list, &p->capacity, p->count + 1, sizeof *p->list));
    p->list[p->count++] = (pair){score, left, right};
  }
  return TARN_STATUS_OK;
}

static tarn_status write_pairs(tarn_vocab_text *out, const pairs *p) {
  for (size_t i = 0; i < p->count; i++) {
    const tarn__bpe_token *left = &p->tokens[p->list[i].left], *right = &p->tokens[p->list[i].right];
    TARN_TRY(tarn__bpe_write_text(out, left->text, left->length, false));
    TARN_TRY(tarn__vocab_append(out, " ", 1));
    TARN_TRY(tarn__bpe_write_text(out, right->text, right->length, false));
    TARN_TRY(tarn__vocab_append(out, "\n", 1));
  }
  return TARN_STATUS_OK;
}

static tarn_status write_scored(tarn_vocab_text *out, const tarn__bpe_token *tokens, int64_t count,
                                const float *scores) {
  void *memory;
  char head[40];
  int64_t known = 0;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count + 1, sizeof(int32_t)));
  int32_t *plain = memory;
  pairs p = {.tokens = tokens, .plain = plain};
  tarn_status status = TARN_STATUS_OK;
  for (int64_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    if (tokens[i].sort != TARN__TOKEN_PLAIN) continue;
    plain[known++] = (int32_t)i;
    status = tarn__index_add(&p.index, tarn__hash64(tokens[i].text, tokens[i].length, 0));
  }
  for (int64_t i = 0; i < known && status == TARN_STATUS_OK; i++) status = add_pairs(&p, plain[i], scores[plain[i]]);
  if (p.count > 0) qsort(p.list, p.count, sizeof *p.list, by_score);
  snprintf(head, sizeof head, "merges %zu\n", p.count);
  if (status == TARN_STATUS_OK) status = tarn__vocab_append(out, head, strlen(head));
  if (status == TARN_STATUS_OK) status = write_pairs(out, &p);
  tarn__index_close(&p.index);
  tarn__free(p.list);
  tarn__free(plain);
  return status;
}

static tarn_status write_listed(tarn_vocab_text *out, const tarn_vocab_text *merges) {
  char head[40];
  size_t count = 0;
  for (size_t i = 0; i < merges->length; i++) count += merges->data[i] == '\n';
  snprintf(head, sizeof head, "merges %zu\n", count);
  TARN_TRY(tarn__vocab_append(out, head, strlen(head)));
  return tarn__vocab_append(out, merges->data, merges->length);
}

tarn_status tarn__bpe_make(char **bytes, size_t *size, const tarn__bpe_rules *rules, const tarn__bpe_token *tokens,
                           int64_t count, const tarn_vocab_text *merges, const float *scores) {
  tarn_vocab_text out = {0};
  *bytes = NULL;
  tarn_status status = tarn__bpe_write_rules(&out, rules);
  if (status == TARN_STATUS_OK) status = tarn__bpe_write_tokens(&out, tokens, count);
  if (status == TARN_STATUS_OK)
    status = merges ? write_listed(&out, merges) : write_scored(&out, tokens, count, scores);
  if (status == TARN_STATUS_OK) status = tarn__bpe_check(out.data, out.length);
  if (status != TARN_STATUS_OK) {
    tarn_vocab_text_close(&out);
    return status;
  }
  *bytes = out.data;
  *size = out.length;
  return TARN_STATUS_OK;
}
