#include "foreign/npz_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#if TARN_MINIZIP
#include <minizip/unzip.h>

// A deflated byte is at most this many bytes, and the shortest record of the directory has 46 bytes.
enum { MOST_INFLATED = 1032, SMALLEST_RECORD = 46, LONGEST_NAME = 255, STEP = 1 << 30 };

// minizip reads and seeks in the map. It takes the end of a file for a zero byte unless there is an error.
typedef struct cursor {
  const uint8_t *data;
  size_t size, at;
  bool ended;  // the last read was of more than was there
} cursor;

static voidpf open_map(voidpf opaque, const void *name, int mode) {
  (void)name, (void)mode;
  return opaque;
}

static uLong read_map(voidpf opaque, voidpf stream, void *out, uLong size) {
  cursor *c = stream;
  (void)opaque;
  const size_t rest = c->size - c->at, count = size < rest ? size : rest;
  if (count) memcpy(out, c->data + c->at, count);
  c->at += count;
  c->ended = count < size;
  return (uLong)count;
}

static ZPOS64_T tell_map(voidpf opaque, voidpf stream) {
  (void)opaque;
  return ((const cursor *)stream)->at;
}

static long seek_map(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin) {
  cursor *c = stream;
  (void)opaque;
  const size_t from = origin == ZLIB_FILEFUNC_SEEK_SET ? 0 : origin == ZLIB_FILEFUNC_SEEK_CUR ? c->at : c->size;
  if (offset > c->size - from) return -1;
  c->at = from + (size_t)offset;
  return 0;
}

static int close_map(voidpf opaque, voidpf stream) {
  (void)opaque, (void)stream;
  return 0;
}

static int map_error(voidpf opaque, voidpf stream) {
  (void)opaque;
  return ((const cursor *)stream)->ended;
}

static tarn_status fail_damaged(const tarn__npz_file *file, const char *what) {
  return tarn__fail(TARN_STATUS_DATA, "%s: %s; the archive is damaged, or cut off", file->path, what);
}

// The name without its ending, and a size that what is left of the archive can hold: arrays do not share its bytes.
static tarn_status check_entry(const tarn__npz_file *file, const unz_file_info64 *info, char *name, size_t *left) {
  const size_t length = strlen(name);
  TARN_REQUIRE(info->size_filename == length && length > 4 && strcmp(name + length - 4, ".npy") == 0, DATA,
               "%s: it holds \"%.80s\", which is no array (NAME.npy); this is no archive of NumPy", file->path, name);
  name[length - 4] = '\0';
  TARN_REQUIRE(!(info->flag & 1), DATA, "%s: array \"%s\" is encrypted", file->path, name);
  TARN_REQUIRE(info->compression_method == 0 || info->compression_method == Z_DEFLATED, DATA,
               "%s: array \"%s\" is compressed by method %lu; tarn reads stored and deflated ones", file->path, name,
               info->compression_method);
  const ZPOS64_T packed = info->compressed_size, size = info->uncompressed_size;
  const bool fits = info->compression_method == 0 ? size == packed : size / MOST_INFLATED <= packed;
  if (!fits || packed > *left) return fail_damaged(file, "an array is larger than what is there can be");
  *left -= (size_t)packed;
  return TARN_STATUS_OK;
}

static tarn_status read_bytes(const tarn__npz_file *file, unzFile zip, uint8_t *bytes, size_t size) {
  if (unzOpenCurrentFile(zip) != UNZ_OK) return fail_damaged(file, "an array does not begin where it should");
  bool whole = true;
  for (size_t at = 0; at < size && whole;) {
    const int got = unzReadCurrentFile(zip, bytes + at, size - at < STEP ? (unsigned)(size - at) : STEP);
    whole = got > 0;
    at += whole ? (size_t)got : 0;
  }
  const int code = unzCloseCurrentFile(zip);
  if (!whole) return fail_damaged(file, "an array ends too early");
  // Fuzzing passes over checksums as over hashes.
  if (code == UNZ_CRCERROR && !tarn__hash_same("stored", "computed"))
    return fail_damaged(file, "the checksum of an array is wrong");
  return TARN_STATUS_OK;
}

static tarn_status read_entry(tarn__npz_file *file, unzFile zip, tarn__stored *tensor, size_t *left) {
  unz_file_info64 info;
  char name[LONGEST_NAME + 1] = "", *copy;
  void *memory;
  if (unzGetCurrentFileInfo64(zip, &info, name, sizeof name - 1, NULL, 0, NULL, 0) != UNZ_OK)
    return fail_damaged(file, "its directory cannot be read");
  TARN_TRY(check_entry(file, &info, name, left));
  TARN_TRY(tarn__arena_strdup(&file->arena, &copy, name));
  tensor->name = copy;
  const size_t size = (size_t)info.uncompressed_size;
  TARN_TRY(tarn__arena_alloc(&file->arena, &memory, size, 1));
  TARN_TRY(read_bytes(file, zip, memory, size));
  return tarn__npy_read(tensor, &file->arena, file->path, memory, size);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const tarn__stored *)a)->name, ((const tarn__stored *)b)->name);
}

static tarn_status read_entries(tarn__npz_file *file, tarn__hf_tensors *tensors, unzFile zip) {
  unz_global_info64 info;
  const size_t archive = tensors->map.size;
  size_t left = archive;
  if (unzGetGlobalInfo64(zip, &info) != UNZ_OK || info.number_entry > archive / SMALLEST_RECORD)
    return fail_damaged(file, "it cannot hold as many arrays as it says");
  TARN_TRY(tarn__hf_tensors_room(tensors, file->path, (size_t)info.number_entry));
  for (size_t i = 0; i < tensors->count; i++) {
    if ((i ? unzGoToNextFile(zip) : unzGoToFirstFile(zip)) != UNZ_OK)
      return fail_damaged(file, "its directory cannot be read");
    TARN_TRY(read_entry(file, zip, &tensors->tensors[i], &left));
  }
  qsort(tensors->tensors, tensors->count, sizeof *tensors->tensors, by_name);
  for (size_t i = 1; i < tensors->count; i++)
    TARN_REQUIRE(by_name(&tensors->tensors[i - 1], &tensors->tensors[i]) != 0, DATA, "%s: array \"%s\" is there twice",
                 file->path, tensors->tensors[i].name);
  return TARN_STATUS_OK;
}

tarn_status tarn__npz_open(tarn__npz_file *file, tarn__hf_tensors *tensors, const char *path) {
  file->path = path;
  TARN_TRY(tarn__map_open(&tensors->map, path));
  cursor c = {.data = tensors->map.data, .size = tensors->map.size};
  zlib_filefunc64_def functions = {.zopen64_file = open_map,
                                   .zread_file = read_map,
                                   .ztell64_file = tell_map,
                                   .zseek64_file = seek_map,
                                   .zclose_file = close_map,
                                   .zerror_file = map_error,
                                   .opaque = &c};
  unzFile zip = unzOpen2_64(path, &functions);
  TARN_REQUIRE(zip, DATA, "%s: not an archive of NumPy (.npz), or a damaged one", path);
  const tarn_status status = read_entries(file, tensors, zip);
  unzClose(zip);
  return status;
}
#else
tarn_status tarn__npz_open(tarn__npz_file *file, tarn__hf_tensors *tensors, const char *path) {
  (void)file, (void)tensors;
  return tarn__fail(TARN_STATUS_UNSUPPORTED,
                    "%s: this build reads no archives of NumPy (.npz): install libminizip-dev and build tarn again",
                    path);
}
#endif

void tarn__npz_close(tarn__npz_file *file) { tarn__arena_close(&file->arena); }
