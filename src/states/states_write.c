// Results as files, whose sizes follow from the tokens: every array has its place before the computation.
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "states/states.h"
#include "tarn/status.h"
#include "text/utf8.h"

enum { NAME = 160, HEADER = 256, ALIGN = 64 };

// An array of a file, and the offset of its next values.
typedef struct slot {
  char name[NAME];
  tarn__stored stored;
  tarn__writer *output;
  bool shares;  // it shares the output of the first one
  bool places;  // the offsets of `array`, computed when written
  size_t array;
  uint64_t at;
} slot;

typedef struct files {
  const tarn_states *states;
  const char *path;
  slot *slots;      // the arrays, then those with tokens and offsets
  size_t count;     // slots
  size_t arrays;    // of them
  slot *last;       // the last one written to
  int64_t *places;  // [sentences + 1]: the offsets of the sentences of one array of attention, which may be many
} files;

static tarn_status add(files *f, const char *name, const char *suffix, const char *dtype, int64_t rows, int64_t cols,
                       const void *data) {
  slot *s = &f->slots[f->count++];
  snprintf(s->name, sizeof s->name, "%s%s", name, suffix);
  s->stored =
      (tarn__stored){.name = s->name, .dtype = dtype, .dims = 1 + (cols > 0), .shape = {rows, cols}, .data = data};
  size_t count;
  TARN_TRY(tarn__mul_size(&count, (size_t)rows, cols > 0 ? (size_t)cols : 1));
  return tarn__mul_size(&s->stored.bytes, count, strcmp(dtype, "I64") == 0 ? 8 : 4);
}

static tarn_status add_array(files *f, size_t a) {
  const tarn_states *states = f->states;
  const tarn_states_array *array = &states->selected.arrays[a];
  const int64_t sentences = states->summary.sentences;
  const char *dtype = array->type == TARN_STATES_TYPE_I32 ? "I32" : "F32";
  if (array->form == TARN_STATES_FORM_ATTENTION)
    return add(f, array->name, "", dtype, tarn_states_place(states, a, sentences), 0, NULL);
  const int64_t rows = array->form == TARN_STATES_FORM_SENTENCE ? sentences : states->summary.tokens[array->side];
  return add(f, array->name, "", dtype, rows, array->width, NULL);
}

static tarn_status add_tokens(files *f, tarn_states_side side) {
  static const int64_t none[1] = {0};
  static const char *const prefixes[] = {"source.", "target."};
  const tarn_states *states = f->states;
  const tarn__states_text *text = &states->sides[side];
  const int64_t sentences = states->summary.sentences;
  const char *prefix = states->task->source ? prefixes[side] : "";
  if (!text->given) return TARN_STATUS_OK;
  TARN_TRY(add(f, prefix, "tokens", "I32", text->tokens, 0, text->ids));
  return add(f, prefix, "offsets", "I64", sentences + 1, 0, sentences ? text->offsets : none);
}

// All arrays of the files.
static tarn_status list(files *f) {
  const tarn_states *states = f->states;
  for (size_t a = 0; a < f->arrays; a++) TARN_TRY(add_array(f, a));
  for (int i = 0; i < TARN_STATES_SIDE_COUNT; i++) TARN_TRY(add_tokens(f, (tarn_states_side)i));
  for (size_t a = 0; a < f->arrays; a++) {
    const tarn_states_array *array = &states->selected.arrays[a];
    if (array->form != TARN_STATES_FORM_ATTENTION) continue;
    TARN_TRY(add(f, array->name, ".offsets", "I64", states->summary.sentences + 1, 0, NULL));
    f->slots[f->count - 1].places = true;
    f->slots[f->count - 1].array = a;
  }
  return TARN_STATUS_OK;
}

// Writing at offsets needs a seekable file.
static tarn_status open_output(slot *s, const char *path) {
  TARN_TRY(tarn__writer_open(&s->output, path));
  TARN_REQUIRE(tarn_output_file_temporary(s->output), IO,
               "%s: cannot write: arrays are written in turns, which a pipe or a device does not take; give a file",
               path);
  return TARN_STATUS_OK;
}

static tarn_status begin_safetensors(files *f) {
  const tarn__states_list *selected = &f->states->selected;
  const char *checkpoint = f->states->checkpoint->path;
  void *stored, *places = NULL, *texts = NULL, *names = NULL, *path = NULL;
  size_t text_count = 2;
  TARN_TRY(open_output(&f->slots[0], f->path));
  for (size_t i = 1; i < f->count; i++) {
    f->slots[i].output = f->slots[0].output;
    f->slots[i].shares = true;
  }
  tarn_status status = tarn__alloc(&stored, TARN__MEMORY_OTHER, f->count, sizeof(tarn__stored));
  if (status == TARN_STATUS_OK) status = tarn__alloc(&places, TARN__MEMORY_OTHER, f->count, sizeof(uint64_t));
  if (status == TARN_STATUS_OK)
    status = tarn__alloc(&texts, TARN__MEMORY_OTHER, f->arrays + 2, sizeof(tarn__stored_text));
  if (status == TARN_STATUS_OK) status = tarn__alloc(&names, TARN__MEMORY_OTHER, f->arrays, sizeof(char[2][NAME]));
  if (status == TARN_STATUS_OK) status = tarn__alloc(&path, TARN__MEMORY_OTHER, strlen(checkpoint) + 1, 3);
  if (status == TARN_STATUS_OK) {
    tarn__stored_text *text = texts;
    char(*name)[2][NAME] = names;
    text[0] = (tarn__stored_text){"tarn", tarn_version()};
    tarn__utf8_repair(path, checkpoint, strlen(checkpoint));  // metadata must be UTF-8, file names need not be
    text[1] = (tarn__stored_text){"checkpoint", path};
    for (size_t a = 0; a < f->arrays; a++) {
      if (selected->arrays[a].form != TARN_STATES_FORM_ATTENTION) continue;
      snprintf(name[a][0], NAME, "%s.heads", selected->arrays[a].name);
      snprintf(name[a][1], NAME, "%" PRId64, selected->arrays[a].width);
      text[text_count++] = (tarn__stored_text){name[a][0], name[a][1]};
    }
    for (size_t i = 0; i < f->count; i++) ((tarn__stored *)stored)[i] = f->slots[i].stored;
    status = tarn__safetensors_begin(f->slots[0].output, places, stored, f->count, text, text_count);
    for (size_t i = 0; i < f->count; i++) f->slots[i].at = ((const uint64_t *)places)[i];
  }
  tarn__free(stored);
  tarn__free(places);
  tarn__free(texts);
  tarn__free(names);
  tarn__free(path);
  return status;
}

// The header of format 1.0 of NumPy's files: a Python dictionary, padded with blanks.
static tarn_status begin_npy(slot *s) {
  const tarn__stored *stored = &s->stored;
  const char *type = strcmp(stored->dtype, "F32") == 0 ? "<f4" : strcmp(stored->dtype, "I32") == 0 ? "<i4" : "<i8";
  char text[HEADER] = "\x93NUMPY\x01", shape[64];
  if (stored->dims == 1)
    snprintf(shape, sizeof shape, "(%" PRId64 ",)", stored->shape[0]);
  else
    snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", stored->shape[0], stored->shape[1]);
  int length =
      snprintf(text + 10, sizeof text - 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
  const int padding = (ALIGN - (10 + length + 1) % ALIGN) % ALIGN;
  memset(text + 10 + length, ' ', (size_t)padding);
  length += padding;
  text[10 + length++] = '\n';
  text[8] = (char)(length & 0xFF);
  text[9] = (char)(length >> 8);
  s->at = (uint64_t)length + 10;
  return tarn__writer_put(s->output, text, (size_t)s->at);
}

static bool is_ours(const files *f, const char *file) {
  const size_t stem = strlen(file) - strlen(".npy");
  for (size_t i = 0; i < f->count; i++)
    if (strlen(f->slots[i].name) == stem && strncmp(f->slots[i].name, file, stem) == 0) return true;
  return false;
}

// Arrays of an earlier call would remain with tokens and offsets that do not match.
static tarn_status refuse_others(const files *f) {
  DIR *folder = opendir(f->path);
  tarn_status status = TARN_STATUS_OK;
  TARN_REQUIRE(folder, IO, "%s: cannot read the folder: %s", f->path, strerror(errno));
  for (const struct dirent *entry; status == TARN_STATUS_OK && (entry = readdir(folder));) {
    const size_t length = strlen(entry->d_name);
    if (length < 4 || strcmp(entry->d_name + length - 4, ".npy") != 0 || is_ours(f, entry->d_name)) continue;
    status = tarn__fail(TARN_STATUS_IO, "%s: has %s, which is none of these results; remove it, or give another folder",
                        f->path, entry->d_name);
  }
  closedir(folder);
  return status;
}

static tarn_status begin_folder(files *f) {
  TARN_TRY(tarn__mkdir(f->path));
  TARN_TRY(refuse_others(f));
  for (size_t i = 0; i < f->count; i++) {
    char name[NAME + 8], path[PATH_MAX];
    snprintf(name, sizeof name, "%s.npy", f->slots[i].name);
    TARN_TRY(tarn__path_join(path, f->path, name));
    TARN_TRY(open_output(&f->slots[i], path));
    TARN_TRY(begin_npy(&f->slots[i]));
  }
  return TARN_STATUS_OK;
}

// Adds values to an array.
static tarn_status put(files *f, slot *s, const void *values, size_t bytes) {
  const bool goes_on = f->last == s;
  f->last = s;
  if (!goes_on && fseeko(tarn_output_file_stream(s->output), (off_t)s->at, SEEK_SET) != 0)
    return tarn__fail(TARN_STATUS_IO, "%s: cannot write: %s", f->path, strerror(errno));
  s->at += bytes;
  return tarn__writer_put(s->output, values, bytes);
}

static tarn_status put_sentence(void *user, int64_t sentence, const void *const *values) {
  files *f = user;
  for (size_t a = 0; a < f->arrays; a++) {
    const int64_t numbers = tarn__states_numbers(f->states, &f->states->selected.arrays[a], sentence);
    TARN_TRY(put(f, &f->slots[a], values[a], (size_t)numbers * sizeof(float)));
  }
  return TARN_STATUS_OK;
}

static tarn_status commit(files *f) {
  for (size_t i = 0; i < f->count; i++)
    if (!f->slots[i].shares) TARN_TRY(tarn__writer_commit(&f->slots[i].output));
  return TARN_STATUS_OK;
}

static void close_files(files *f) {
  for (size_t i = 0; i < f->count; i++)
    if (!f->slots[i].shares) tarn__writer_abort(&f->slots[i].output);
}

static tarn_status write_all(files *f, tarn_states *states, tarn_states_format format) {
  TARN_TRY(list(f));
  TARN_TRY(format == TARN_STATES_FORMAT_NPY ? begin_folder(f) : begin_safetensors(f));
  for (size_t i = f->arrays; i < f->count; i++) {
    slot *s = &f->slots[i];
    if (s->places) tarn_states_places(states, s->array, f->places);
    TARN_TRY(put(f, s, s->places ? f->places : s->stored.data, s->stored.bytes));
  }
  TARN_TRY(tarn_states_each(states, put_sentence, f));
  return TARN_STATUS_OK;
}

tarn_status tarn_states_write(tarn_states *states, const char *path, tarn_states_format format) {
  const size_t arrays = states->selected.count, sentences = (size_t)states->summary.sentences + 1;
  void *slots = NULL, *places = NULL;
  bool attention = false;
  TARN_REQUIRE(format >= 0 && format <= TARN_STATES_FORMAT_NPY, USAGE, "unknown format");
  TARN_TRY(tarn__states_check(states));
  tarn_status status = tarn__alloc(&slots, TARN__MEMORY_OTHER, 2 * arrays + 4, sizeof(slot));
  for (size_t a = 0; a < arrays; a++) attention |= states->selected.arrays[a].form == TARN_STATES_FORM_ATTENTION;
  if (status == TARN_STATUS_OK && attention)
    status = tarn__alloc(&places, TARN__MEMORY_OTHER, sentences, sizeof(int64_t));
  files f = {.states = states, .path = path, .slots = slots, .arrays = arrays, .places = places};
  if (status == TARN_STATUS_OK) status = write_all(&f, states, format);
  if (status == TARN_STATUS_OK) status = commit(&f);
  close_files(&f);
  tarn__free(slots);
  tarn__free(places);
  return status;
}
