#include "report/sentence_bleu.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "run/names.h"

static tarn_status put_sentence(tarn__writer *writer, const double *values) {
  char line[TARN__BLEU_WIDTH * 24];
  size_t length = 0;
  for (int i = 0; i < TARN__BLEU_WIDTH; i++)
    length += (size_t)snprintf(line + length, sizeof line - length, "%s%.0f", i > 0 ? " " : "", values[i]);
  line[length++] = '\n';
  return tarn__writer_put(writer, line, length);
}

tarn_status tarn__sentence_bleu_write(const char *path, const tarn_statistics *statistics, const char *signature) {
  tarn__writer *writer;
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = tarn__writer_put(writer, signature, strlen(signature));
  if (status == TARN_STATUS_OK) status = tarn__writer_put(writer, "\n", 1);
  for (size_t i = 0; i < statistics->sentences && status == TARN_STATUS_OK; i++)
    status = put_sentence(writer, statistics->values + i * TARN__BLEU_WIDTH);
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}

// The numbers of a line, which ends with a line feed. No order has more matches than n-grams.
static bool take_sentence(double *values, const char **at) {
  for (int i = 0; i < TARN__BLEU_WIDTH; i++) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    const unsigned long value = strtoul(*at, &end, 10);
    if (value > INT32_MAX || *end != (i + 1 < TARN__BLEU_WIDTH ? ' ' : '\n')) return false;
    values[i] = (double)value;
    *at = end + 1;
  }
  for (int n = 0; n < TARN_BLEU_ORDER; n++)
    if (values[n] > values[TARN_BLEU_ORDER + n]) return false;
  return true;
}

static tarn_status take_sentences(tarn_statistics *statistics, const char *path, const char *at) {
  for (size_t i = 0; i < statistics->sentences; i++)
    TARN_REQUIRE(take_sentence(statistics->values + i * TARN__BLEU_WIDTH, &at), DATA,
                 "%s:%zu: expected %d whole numbers, of which the first %d are not above the next %d", path, i + 2,
                 TARN__BLEU_WIDTH, TARN_BLEU_ORDER, TARN_BLEU_ORDER);
  return TARN_STATUS_OK;
}

static tarn_status parse(tarn_statistics **statistics, const char *path, const char *text, size_t size,
                         const tarn_bleu_options *options, const char *signature) {
  const size_t length = strlen(signature);
  TARN_REQUIRE(size > 0 && text[size - 1] == '\n' && strlen(text) == size, DATA,
               "%s: it is cut short or holds a zero byte", path);
  TARN_REQUIRE(strncmp(text, signature, length) == 0 && text[length] == '\n', DATA,
               "%s:1: its signature is not that of " TARN__RUN_TEST ", \"%s\"", path, signature);
  size_t sentences = 0;
  for (const char *at = text + length + 1; *at; at = strchr(at, '\n') + 1) sentences++;
  TARN_REQUIRE(sentences > 0, DATA, "%s: it has no sentence", path);
  TARN_TRY(tarn__bleu_statistics_blank(statistics, sentences, options));
  return take_sentences(*statistics, path, text + length + 1);
}

tarn_status tarn__sentence_bleu_read(tarn_statistics **statistics, const char *path, const tarn_bleu_options *options,
                                     const char *signature) {
  char *text;
  size_t size;
  *statistics = NULL;
  TARN_TRY(tarn__file_read(path, &text, &size));
  const tarn_status status = parse(statistics, path, text, size, options, signature);
  tarn__free(text);
  if (status != TARN_STATUS_OK) tarn_statistics_close(statistics);
  return status;
}
