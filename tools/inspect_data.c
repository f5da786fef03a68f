#include "inspect_data.h"

#include <inttypes.h>
#include <stdio.h>

#include "json_output.h"
#include "tarn/data.h"

static const char *rows_of(const tarn_data_info *info) {
  return info->height    ? "images with labels"
         : info->windows ? "windows of a stream"
         : info->packed  ? "rows of packed sentences"
         : !info->text   ? "pairs of sentences"
         : info->classes ? "sentences with labels"
                         : "sentences";
}

// The first names are enough to recognise a set of thousands.
enum { SHOWN_CLASSES = 20 };

static void print_classes(const tarn_data_info *info) {
  printf("classes       %d: ", info->classes);
  for (int32_t i = 0; i < info->classes && i < SHOWN_CLASSES; i++) printf("%s%s", i ? ", " : "", info->class_names[i]);
  if (info->classes > SHOWN_CLASSES) printf(" and %d more", info->classes - SHOWN_CLASSES);
  printf("\n");
}

static void print_text(const tarn_data_info *info) {
  printf("file          %s (%s)\n", info->path, info->part_count > 1 ? "index of shards" : "shard");
  printf("rows          %" PRId64 " %s\n", info->rows, rows_of(info));
  if (!info->text)
    printf("source        %" PRId64 " tokens of a vocabulary of %" PRId64 ", longest row %" PRId64 "\n",
           info->source_tokens, info->source_vocab, info->longest_source);
  if (info->height)
    printf("size          %d x %d pixels, %s\n", info->height, info->width, info->channels == 1 ? "grey" : "in colour");
  else
    printf("%s        %" PRId64 " tokens of a vocabulary of %" PRId64 ", longest row %" PRId64 "\n",
           info->text ? "text  " : "target", info->target_tokens, info->target_vocab, info->longest_target);
  if (info->classes) print_classes(info);
  printf("bytes         %" PRId64 "\nhash          %s\n", info->bytes, info->hash);
  if (info->part_count == 1) return;
  printf("\n%12s %14s %14s %14s  %-32s  %s\n", "rows", "source tokens", info->text ? "text tokens" : "target tokens",
         "bytes", "hash", "part");
  for (int64_t i = 0; i < info->part_count; i++) {
    const tarn_data_part *p = &info->parts[i];
    printf("%12" PRId64 " %14" PRId64 " %14" PRId64 " %14" PRId64 "  %s  %s\n", p->rows, p->source_tokens,
           p->target_tokens, p->bytes, p->hash, p->path);
  }
}

static json_t *part_json(const tarn_data_part *p) {
  return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I}", "path", json_output_text(p->path), "hash", p->hash, "bytes",
                   (json_int_t)p->bytes, "rows", (json_int_t)p->rows, "source_tokens", (json_int_t)p->source_tokens,
                   "target_tokens", (json_int_t)p->target_tokens);
}

static int print_json(const cli_command *command, const tarn_data_info *info) {
  json_t *parts = json_array();
  for (int64_t i = 0; i < info->part_count; i++) json_array_append_new(parts, part_json(&info->parts[i]));
  json_t *names = json_array();
  for (int32_t i = 0; i < info->classes; i++) json_array_append_new(names, json_output_text(info->class_names[i]));
  json_t *object =
      json_pack("{s:o, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:o, s:o}", "path",
                json_output_text(info->path), "kind", rows_of(info), "hash", info->hash, "classes", (int)info->classes,
                "bytes", (json_int_t)info->bytes, "rows", (json_int_t)info->rows, "source_tokens",
                (json_int_t)info->source_tokens, "target_tokens", (json_int_t)info->target_tokens, "longest_source",
                (json_int_t)info->longest_source, "longest_target", (json_int_t)info->longest_target, "source_vocab",
                (json_int_t)info->source_vocab, "target_vocab", (json_int_t)info->target_vocab, "height", info->height,
                "width", info->width, "channels", info->channels, "class_names", names, "parts", parts);
  return json_output_print(command, stdout, object, JSON_COMPACT);
}

int inspect_data(const cli_command *command, const char *prefix, bool json) {
  tarn_data_info *info;
  const tarn_status status = tarn_data_info_open(&info, prefix);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  const int code = json ? print_json(command, info) : CLI_OK;
  if (!json) print_text(info);
  tarn_data_info_close(&info);
  return code;
}
