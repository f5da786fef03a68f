#include "prepare_output.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli.h"

json_t *prepare_output_json(const tarn_prepare_result *r) {
  const struct {
    const char *name;
    int64_t count;
  } counts[] = {{"lines", r->lines},
                {"pairs", r->pairs},
                {"source_tokens", r->source_tokens},
                {"target_tokens", r->target_tokens},
                {"source_unknown", r->source_unknown},
                {"target_unknown", r->target_unknown},
                {"empty", r->empty},
                {"brief", r->brief},
                {"dropped", r->dropped},
                {"truncated", r->truncated},
                {"replaced", r->replaced},
                {"cut", r->cut},
                {"split", r->split},
                {"source_left_out", r->source_left_out},
                {"target_left_out", r->target_left_out},
                {"longest_source", r->longest_source},
                {"longest_target", r->longest_target},
                {"packed", r->packed},
                {"documents", r->documents},
                {"bytes", r->bytes},
                {"characters", r->characters},
                {"parts", r->parts}};
  json_t *object = json_object();
  int failed = 0;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    failed |= json_object_set_new(object, counts[i].name, json_integer(counts[i].count)) != 0;
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

static void print_side(const char *name, int64_t tokens, int64_t unknown, const char *unit, int64_t longest,
                       int64_t left_out) {
  printf("%s %10" PRId64 " tokens, %" PRId64 " unknown (%.2f %%), longest %s %" PRId64 "\n", name, tokens, unknown,
         100.0 * (double)unknown / (double)tokens, unit, longest);
  if (left_out)
    printf("%s %10" PRId64 " tokens left out (%.2f %%)\n", name, left_out,
           100.0 * (double)left_out / (double)(tokens + left_out));
}

static void print_rows(const tarn_prepare_result *r, bool pairs) {
  if (r->bytes)
    printf("windows%10" PRId64 " of %s, %s\n", r->pairs, CLI_COUNT(r->lines, "line"), CLI_COUNT(r->bytes, "byte"));
  else if (r->packed)
    printf("rows   %10" PRId64 " of %s of %s\n", r->pairs, CLI_COUNT(r->packed, "sentence"),
           CLI_COUNT(r->documents, "document"));
  else
    printf("%s  %10" PRId64 " of %" PRId64 " lines\n", pairs ? "pairs" : "lines", r->pairs, r->lines);
}

void prepare_output_print(const tarn_prepare_result *r) {
  if (r->parts > 1) printf("shards %10" PRId64 " and their index\n", r->parts);
  bool pairs = r->source_tokens > 0;
  print_rows(r, pairs);
  const char *row = r->bytes ? "window" : r->packed ? "row" : "sentence";
  if (pairs) print_side("source", r->source_tokens, r->source_unknown, row, r->longest_source, r->source_left_out);
  print_side(pairs ? "target" : "text  ", r->target_tokens, r->target_unknown, row, r->longest_target,
             r->target_left_out);
  const char *which = pairs ? "a side is " : "", *unit = pairs ? "pair" : "sentence";
  if (r->empty) printf("%s left out: %sempty\n", CLI_COUNT(r->empty, unit), which);
  if (r->brief) printf("%s left out: %sshorter than --min-tokens\n", CLI_COUNT(r->brief, unit), which);
  if (r->dropped) printf("%s left out: %soverlong\n", CLI_COUNT(r->dropped, unit), which);
  if (r->truncated) printf("truncated: %s\n", CLI_COUNT(r->truncated, unit));
  if (r->replaced) printf("invalid UTF-8 replaced in: %s\n", CLI_COUNT(r->replaced, "line"));
  if (r->cut)
    printf("longer than 65536 bytes, encoded in parts: %s, %s %s within a word\n", CLI_COUNT(r->cut, "line"),
           CLI_COUNT(r->split, "part"), r->split == 1 ? "ends" : "end");
}
