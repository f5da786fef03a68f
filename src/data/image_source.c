#include "data/image_source.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_png_name(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot && strcasecmp(dot, ".png") == 0;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static tarn_status add_path(tarn__image_source *s, const char *folder, const char *name) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, folder, name));
  TARN_TRY(tarn__grow(&s->paths, &s->path_room, s->path_count + 1, sizeof *s->paths));
  TARN_TRY(tarn__strdup(&s->paths[s->path_count], path));
  s->path_count++;
  return TARN_STATUS_OK;
}

static tarn_status fail_reading(const char *folder) {
  return tarn__fail(TARN_STATUS_IO, "%s: cannot read the folder: %s", folder, strerror(errno));
}

// Adds the PNG files of a folder, or its subfolders, and counts what else is in it.
static tarn_status list_folder(tarn__image_source *s, const char *folder, bool folders) {
  DIR *open = opendir(folder);
  tarn_status status = TARN_STATUS_OK;
  if (!open) return fail_reading(folder);
  while (status == TARN_STATUS_OK) {
    char path[PATH_MAX];
    errno = 0;
    const struct dirent *entry = readdir(open);
    if (!entry) {  // the end, or a failure
      if (errno) status = fail_reading(folder);
      break;
    }
    if (entry->d_name[0] == '.') continue;
    status = tarn__path_join(path, folder, entry->d_name);
    if (status != TARN_STATUS_OK) break;
    if (folders ? is_folder(path) : is_png_name(path) && !is_folder(path))
      status = add_path(s, folder, entry->d_name);
    else
      s->skipped++;
  }
  closedir(open);
  return status;
}

static tarn_status list_class(tarn__image_source *s, const char *folder) {
  const size_t before = s->path_count;
  TARN_TRY(list_folder(s, folder, false));
  TARN_REQUIRE(!s->options.labelled || s->path_count > before, DATA,
               "%s: no file *.png is in this folder, which stands for a class", folder);
  return TARN_STATUS_OK;
}

// The files of all subfolders take the place of these.
static tarn_status list_subfolders(tarn__image_source *s) {
  char **folders = s->paths;
  const size_t count = s->path_count;
  tarn_status status = TARN_STATUS_OK;
  s->paths = NULL;
  s->path_count = s->path_room = 0;
  for (size_t i = 0; i < count; i++) {
    if (status == TARN_STATUS_OK) status = list_class(s, folders[i]);
    tarn__free(folders[i]);
  }
  tarn__free(folders);
  return status;
}

static tarn_status open_folder(tarn__image_source *s) {
  const char *folder = s->options.images;
  TARN_TRY(list_folder(s, folder, false));
  TARN_REQUIRE(
      !s->options.labelled || s->path_count == 0, DATA,
      "%s: %s has no label: expected a subfolder of images for each class, named after it, or a list (--table)", folder,
      s->paths[0]);
  if (s->path_count == 0) {
    s->skipped = 0;  // among them the subfolders
    TARN_TRY(list_folder(s, folder, true));
    TARN_TRY(list_subfolders(s));
  }
  TARN_REQUIRE(s->path_count > 0, DATA, "%s: no file *.png is in this folder%s", folder,
               s->options.labelled ? "'s subfolders, one for each class" : " or its subfolders");
  qsort(s->paths, s->path_count, sizeof *s->paths, by_bytes);
  return TARN_STATUS_OK;
}

static tarn_status open_idx(tarn__image_source *s) {
  const tarn__image_options *o = &s->options;
  TARN_REQUIRE(!o->labelled || o->labels, USAGE,
               "%s: the labels of an IDX file are missing: they are in another one (--labels FILE)", o->images);
  TARN_TRY(tarn__idx_open(&s->idx, o->images, false));
  s->is_idx = true;
  TARN_REQUIRE(o->channels == 0 || o->channels == s->idx.size.channels, DATA,
               "%s: its images have %d channel%s, not %d: only PNG files are converted", o->images,
               s->idx.size.channels, s->idx.size.channels == 1 ? "" : "s", o->channels);
  if (!o->labelled) return TARN_STATUS_OK;
  TARN_TRY(tarn__idx_open(&s->idx_labels, o->labels, true));
  TARN_REQUIRE(s->idx.count == s->idx_labels.count, DATA, "%s has %lld images, but %s has %lld labels", o->images,
               (long long)s->idx.count, o->labels, (long long)s->idx_labels.count);
  return TARN_STATUS_OK;
}

static tarn_status open_any(tarn__image_source *s) {
  const tarn__image_options *o = &s->options;
  if (o->table) {
    const tarn__labelled_columns columns = {o->labels, o->images, NULL, o->header, o->delimiter};
    TARN_REQUIRE(o->labels, USAGE, "%s: the column of the labels is missing (--labels COLUMN)", o->table);
    return tarn__labelled_table_open(&s->table, o->table, &columns, false);
  }
  struct stat info;
  TARN_REQUIRE(strcmp(o->images, "-") == 0 || stat(o->images, &info) == 0, IO, "%s: cannot read: %s", o->images,
               errno == ENOENT ? "no such file or folder" : strerror(errno));
  if (is_folder(o->images)) return open_folder(s);
  if (!tarn__png_is(o->images)) return open_idx(s);
  TARN_REQUIRE(!o->labelled, USAGE,
               "%s: the label of this image is missing: expected a folder with a subfolder for each class, or a list "
               "(--table)",
               o->images);
  TARN_TRY(tarn__grow(&s->paths, &s->path_room, 1, sizeof *s->paths));
  TARN_TRY(tarn__strdup(&s->paths[0], o->images));
  s->path_count = 1;
  return TARN_STATUS_OK;
}

tarn_status tarn__image_source_open(tarn__image_source *s, const tarn__image_options *options) {
  *s = (tarn__image_source){.options = *options};
  const tarn_status status = open_any(s);
  if (status != TARN_STATUS_OK) tarn__image_source_close(s);
  return status;
}

void tarn__image_source_close(tarn__image_source *s) {
  tarn__idx_close(&s->idx);
  tarn__idx_close(&s->idx_labels);
  tarn__labelled_table_close(&s->table);
  for (size_t i = 0; i < s->path_count; i++) tarn__free(s->paths[i]);
  tarn__free(s->paths);
  tarn__free(s->image.pixels);
  tarn__free(s->path_now);
  tarn__free(s->first_name);
  *s = (tarn__image_source){0};
}

static tarn_status next_idx(tarn__image_source *s) {
  uint8_t label;
  s->ended = s->idx.read == s->idx.count;
  if (s->ended && s->options.labelled) TARN_TRY(tarn__idx_finish(&s->idx_labels));
  if (s->ended) return tarn__idx_finish(&s->idx);
  s->image.size = s->idx.size;
  s->name = s->options.images;
  s->share = (double)s->idx.read / (double)s->idx.count;
  TARN_TRY(tarn__grow(&s->image.pixels, &s->image.room, (size_t)tarn__image_bytes(s->idx.size), 1));
  TARN_TRY(tarn__idx_next(&s->idx, s->image.pixels));
  if (!s->options.labelled) return TARN_STATUS_OK;
  TARN_TRY(tarn__idx_next(&s->idx_labels, &label));
  s->label_length = (size_t)snprintf(s->label_room, sizeof s->label_room, "%d", label);
  s->label = s->label_room;
  return TARN_STATUS_OK;
}

static tarn_status read_png(tarn__image_source *s, const char *path) {
  s->name = path;
  return tarn__png_read(&s->image, path, s->options.channels ? s->options.channels : s->size.channels);
}

// A path of a table is relative to the table's folder.
static tarn_status next_row(tarn__image_source *s) {
  const char *table = s->options.table, *slash = strrchr(table, '/');
  TARN_TRY(tarn__labelled_table_next(&s->table));
  s->ended = s->table.ended;
  if (s->ended) return TARN_STATUS_OK;
  const tarn__piece *path = &s->table.text;
  const size_t folder = slash && path->text[0] != '/' ? (size_t)(slash - table) + 1 : 0;
  char joined[PATH_MAX];
  TARN_REQUIRE(folder + path->length < sizeof joined && !memchr(path->text, 0, path->length), DATA,
               "%s:%lld: not the path of a file", table, (long long)s->table.lines.number);
  memcpy(joined, table, folder);
  memcpy(joined + folder, path->text, path->length);
  joined[folder + path->length] = 0;
  tarn__free(s->path_now);
  s->path_now = NULL;
  TARN_TRY(tarn__strdup(&s->path_now, joined));
  s->share = tarn__lines_share(&s->table.lines);
  s->label = s->table.label.text;
  s->label_length = s->table.label.length;
  const tarn_status status = read_png(s, s->path_now);
  if (status == TARN_STATUS_OK) return status;
  return tarn__fail_prefix(status, "%s:%lld: ", table, (long long)s->table.lines.number);
}

static tarn_status next_path(tarn__image_source *s) {
  s->ended = (size_t)s->number == s->path_count;
  if (s->ended) return TARN_STATUS_OK;
  const char *path = s->paths[s->number];
  s->share = (double)s->number / (double)s->path_count;
  if (s->options.labelled) {
    const char *end = strrchr(path, '/'), *begin = end;
    while (begin > path && begin[-1] != '/') begin--;
    s->label = begin;
    s->label_length = (size_t)(end - begin);
  }
  return read_png(s, path);
}

// All images have the size of the first.
static tarn_status check_size(tarn__image_source *s) {
  const tarn__image_size *is = &s->image.size;
  tarn__image_size *was = &s->size;
  if (was->height == 0) {
    *was = *is;
    return tarn__strdup(&s->first_name, s->name);
  }
  TARN_REQUIRE(is->height == was->height && is->width == was->width, DATA,
               "%s: an image of %d x %d pixels, but %s has %d x %d: all images of a set have one size", s->name,
               is->height, is->width, s->first_name, was->height, was->width);
  return TARN_STATUS_OK;
}

tarn_status tarn__image_source_next(tarn__image_source *s) {
  TARN_TRY(s->options.table ? next_row(s) : s->paths ? next_path(s) : next_idx(s));
  if (s->ended) return TARN_STATUS_OK;
  s->number++;
  return s->is_idx ? TARN_STATUS_OK : check_size(s);
}
