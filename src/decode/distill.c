// Distillation: a teacher translates a text in windows, which are appended to a file and survive an interruption; the
// text and its translations are then prepared.
#include "tarn/distill.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/work.h"
#include "base/write_all.h"
#include "decode/translate.h"
#include "store/checkpoint.h"
#include "text/line_block.h"

enum { ORIGIN = 512 };

typedef struct distilling {
  const tarn_distill_options *options;
  tarn_distill_result *result;
  char hyp[PATH_MAX], part[PATH_MAX], of[PATH_MAX];  // paths
  char origin[ORIGIN];
  tarn_translator *translator;
  int fd;          // of the part, locked; -1: none
  int64_t window;  // lines
  tarn__line_block block;
  tarn_translate_result *results;
  size_t results_room;
  tarn__buffer text;
} distilling;

void tarn_distill_default(tarn_distill_options *options) {
  *options = (tarn_distill_options){0};
  tarn_translator_default(&options->translation);
}

static tarn_status path_of(char path[PATH_MAX], const char *output, const char *end) {
  const int length = snprintf(path, PATH_MAX, "%s%s", output, end);
  TARN_REQUIRE(length > 0 && length < PATH_MAX, IO, "%.100s...: the path is too long", output);
  return TARN_STATUS_OK;
}

// The layers that are left out, which determine the translations too.
static tarn_status hash_prune(char text[64], const tarn_prune *prune) {
  char hash[TARN__HASH_TEXT];
  tarn__buffer layers = {0};
  *text = 0;
  if (!prune->encoder_layers_to_keep && !prune->decoder_layers_to_keep && !(prune->rate > 0)) return TARN_STATUS_OK;
  tarn__buffer_format(&layers, "encoder %s, decoder %s, rate %.17g",
                      prune->encoder_layers_to_keep ? prune->encoder_layers_to_keep : "whole",
                      prune->decoder_layers_to_keep ? prune->decoder_layers_to_keep : "whole", prune->rate);
  const tarn_status status = layers.status;
  if (status == TARN_STATUS_OK) {
    tarn__hash(hash, layers.data, layers.used);
    snprintf(text, 64, ", pruned %s", hash);
  }
  tarn__buffer_close(&layers);
  return status;
}

// What determines the translations.
static tarn_status find_origin(distilling *d) {
  const tarn_translator_options *o = tarn_translator_settings(d->translator);
  char teacher[TARN__HASH_TEXT], source[TARN__HASH_TEXT], pruned[64], search[160];
  TARN_TRY(tarn__hash_file(teacher, tarn_translator_path(d->translator)));
  TARN_TRY(tarn__hash_file(source, d->options->source));
  TARN_TRY(hash_prune(pruned, &d->options->translation.prune));
  if (!isnan(o->placeholder_penalty))
    snprintf(search, sizeof search, "iterations %lld, placeholder_penalty %.17g", (long long)o->iterations,
             o->placeholder_penalty);
  else if (o->iterations > 0)
    snprintf(search, sizeof search, "iterations %lld, length_beam %lld", (long long)o->iterations,
             (long long)o->length_beam);
  else
    snprintf(search, sizeof search, "beam %lld, length_penalty %.17g, max_len_a %.17g, max_len_b %lld",
             (long long)o->beam, o->length_penalty, o->max_len_a, (long long)o->max_len_b);
  snprintf(d->origin, sizeof d->origin, "teacher %s%s, source %s, window %lld, %s, %s\n", teacher, pruned, source,
           (long long)d->window, tarn_translate_precision_name(o->precision), search);
  return TARN_STATUS_OK;
}

// Whether the translations on disk, in the file `there`, are of this origin; NULL: there are none, so it writes the
// origin.
static tarn_status check_origin(const distilling *d, const char *there) {
  char *text = NULL;
  size_t size;
  if (!there) return tarn__file_write(d->of, d->origin, strlen(d->origin));
  bool same = false;
  if (tarn__file_exists(d->of)) {
    TARN_TRY(tarn__file_read(d->of, &text, &size));
    same = strcmp(text, d->origin) == 0;
    tarn__free(text);
  }
  TARN_REQUIRE(same, USAGE, "%s is not of this teacher, source and options; move it away, or choose another output",
               there);
  return TARN_STATUS_OK;
}

// The lines of a file up to the end of its last whole group of `group` lines, and where that is.
static tarn_status count_lines(int64_t *lines, off_t *end, int fd, const char *path, int64_t group) {
  char bytes[1 << 16];
  int64_t all = 0;
  off_t at = 0;
  *end = 0;
  for (;;) {
    const ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    TARN_REQUIRE(got >= 0, IO, "%s: cannot read: %s", path, strerror(errno));
    if (got == 0) break;
    for (ssize_t i = 0; i < got; i++)
      if (bytes[i] == '\n' && ++all % group == 0) *end = at + i + 1;
    at += got;
  }
  *lines = all - all % group;
  return TARN_STATUS_OK;
}

// Opens the file of the lines so far, which nobody else may then write.
static tarn_status lock_part(distilling *d) {
  d->fd = open(d->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  TARN_REQUIRE(d->fd >= 0, IO, "%s: cannot write: %s", d->part, strerror(errno));
  TARN_REQUIRE(flock(d->fd, LOCK_EX | LOCK_NB) == 0, BUSY, "%s: another process is at work on it", d->part);
  return TARN_STATUS_OK;
}

// Checks the lines so far, and takes what follows their last whole window away.
static tarn_status open_part(distilling *d) {
  off_t end;
  struct stat info;
  TARN_REQUIRE(fstat(d->fd, &info) == 0, IO, "%s: cannot read: %s", d->part, strerror(errno));
  TARN_TRY(check_origin(d, info.st_size > 0 ? d->part : NULL));
  TARN_TRY(count_lines(&d->result->found, &end, d->fd, d->part, d->window));
  TARN_REQUIRE(ftruncate(d->fd, end) == 0 && lseek(d->fd, end, SEEK_SET) == end, IO, "%s: cannot write: %s", d->part,
               strerror(errno));
  return TARN_STATUS_OK;
}

// The same for translations that are complete.
static tarn_status check_whole(distilling *d) {
  off_t end;
  TARN_TRY(check_origin(d, d->hyp));
  const int fd = open(d->hyp, O_RDONLY | O_CLOEXEC);
  TARN_REQUIRE(fd >= 0, IO, "%s: cannot read: %s", d->hyp, strerror(errno));
  const tarn_status status = count_lines(&d->result->found, &end, fd, d->hyp, 1);
  close(fd);
  return status;
}

// Translates a window, and appends it to the file at once.
static tarn_status translate_window(distilling *d, const char *path) {
  const tarn__line_block *block = &d->block;
  TARN_TRY(tarn__grow(&d->results, &d->results_room, block->count, sizeof *d->results));
  const tarn_status status =
      tarn_translator_lines(d->translator, d->results, block->lines, block->lengths, block->count);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", path);
  tarn__buffer_reset(&d->text);
  for (size_t i = 0; i < block->count; i++) {
    const tarn_translate_hypothesis *best = &d->results[i].hypotheses[0];
    tarn__buffer_put(&d->text, best->text, best->length);
    tarn__buffer_put(&d->text, "\n", 1);
  }
  TARN_TRY(d->text.status);
  TARN_REQUIRE(tarn__write_all(d->fd, d->text.data, d->text.used) && fsync(d->fd) == 0, IO, "%s: cannot write: %s",
               d->part, strerror(errno));
  return TARN_STATUS_OK;
}

static tarn_status translate_rest(distilling *d, tarn__lines *lines, tarn__work *work) {
  const char *text;
  size_t length;
  for (int64_t i = 0; i < d->result->found; i++) {
    TARN_TRY(tarn__lines_next(lines, &text, &length));
    TARN_REQUIRE(text, DATA, "%s has more lines than %s", d->part, lines->path);
  }
  for (;;) {
    const double before = (double)lines->number, share = tarn__lines_share(lines);
    TARN_TRY(tarn__line_block_read(&d->block, lines, (size_t)d->window, SIZE_MAX));
    if (d->block.count == 0) return TARN_STATUS_OK;
    tarn__work_part(work, before, share, (double)lines->number, tarn__lines_share(lines));
    TARN_TRY(translate_window(d, lines->path));
  }
}

static tarn_status translate_all(distilling *d) {
  tarn__lines lines = {0};
  tarn__work work;
  TARN_TRY(open_part(d));
  TARN_TRY(tarn__lines_open(&lines, d->options->source, d->options->translation.strict));
  lines.raw = true;  // encoding a line handles invalid bytes
  tarn__work_begin(&work, "translating", "sentences");
  tarn_status status = translate_rest(d, &lines, &work);
  tarn__work_end(&work);
  tarn__lines_close(&lines);
  TARN_TRY(status);
  tarn_translator_summary(d->translator, &d->result->translation);
  TARN_REQUIRE(rename(d->part, d->hyp) == 0, IO, "%s: cannot rename: %s", d->part, strerror(errno));
  tarn__sync_folder_of(d->hyp);
  return TARN_STATUS_OK;
}

// The student's vocabularies are read first: translating may take hours.
static tarn_status check_vocab(const char *path) {
  tarn_vocab *vocab;
  if (!path) return TARN_STATUS_OK;
  TARN_TRY(tarn_vocab_open(&vocab, path));
  tarn_vocab_close(&vocab);
  return TARN_STATUS_OK;
}

static tarn_status check_options(const tarn_distill_options *o) {
  const char *missing = !o->teacher  ? "a teacher"
                        : !o->source ? "a source"
                        : !o->vocab  ? "the student's vocabulary"
                        : !o->output ? "an output"
                                     : NULL;
  TARN_REQUIRE(!missing, USAGE, "distillation needs %s", missing);
  TARN_REQUIRE(!o->translation.ranks && !o->translation.profile, USAGE,
               "distillation is the work of one process, and is not measured");
  TARN_TRY(check_vocab(o->vocab));
  return check_vocab(o->target_vocab);
}

static tarn_status run(distilling *d) {
  const tarn_distill_options *o = d->options;
  TARN_TRY(check_options(o));
  TARN_TRY(path_of(d->hyp, o->output, ".hyp"));
  TARN_TRY(path_of(d->part, o->output, ".hyp.part"));
  TARN_TRY(path_of(d->of, o->output, ".hyp.origin"));
  tarn_translator_options translation = o->translation;
  translation.n_best = 1;
  TARN_TRY(tarn_translator_open(&d->translator, o->teacher, &translation));
  d->window = tarn_translator_settings(d->translator)->window;
  TARN_TRY(tarn__mkdir_of_file(d->hyp));
  TARN_TRY(find_origin(d));
  // Another process may complete the translations before this one has the lock.
  if (!tarn__file_exists(d->hyp)) TARN_TRY(lock_part(d));
  TARN_TRY(tarn__file_exists(d->hyp) ? check_whole(d) : translate_all(d));
  tarn_prepare_options prepare;
  tarn_prepare_default(&prepare);
  prepare.vocab = o->vocab;
  prepare.target_vocab = o->target_vocab;
  prepare.source = o->source;
  prepare.target = d->hyp;
  prepare.output = o->output;
  prepare.strict = o->translation.strict;
  prepare.threads = o->translation.threads;
  return tarn_prepare_run(&d->result->data, &prepare);
}

tarn_status tarn_distill_run(tarn_distill_result *result, const tarn_distill_options *options) {
  void *memory;
  *result = (tarn_distill_result){0};
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(distilling)));
  distilling *d = memory;
  *d = (distilling){.options = options, .result = result, .fd = -1};
  const tarn_status status = run(d);
  if (d->fd >= 0) close(d->fd);
  tarn_translator_close(&d->translator);
  tarn__line_block_close(&d->block);
  tarn__free(d->results);
  tarn__buffer_close(&d->text);
  tarn__free(d);
  return status;
}
