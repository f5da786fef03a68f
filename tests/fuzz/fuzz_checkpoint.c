// A checkpoint: what it says, loading in each precision, use, and what is written out of it.
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "tarn/lm.h"
#include "tarn/process.h"
#include "tarn/translate.h"

static const char FILE_NAME[] = "model.safetensors", COPY[] = "copy.safetensors";
// Layers that share their weights cost time without bytes of the file, so models of more are only looked at. What
// frozen values cost is bounded by the library's own limits.
enum { MOST_LAYERS = 16 };

void fuzz_prepare(void) {
  const tarn_limits limits = {.max_operations = 1e7, .max_memory = 1e7};
  tarn_limits_set(&limits);
}

static bool is_small(const tarn_checkpoint_info *info) {
  bool small = true;
  for (size_t i = 0; i < info->param_count; i++) small = small && info->params[i].uses <= MOST_LAYERS;
  return small;
}

static void translate(void) {
  const char *lines[] = {"ab c", "", "c ba b"};
  const size_t lengths[] = {4, 0, 6};
  tarn_translate_result results[3];
  tarn_translator_options options;
  tarn_translator_default(&options);
  options.threads = 1;
  options.beam = 2;
  options.max_len_a = 1;
  options.max_len_b = 4;
  tarn_translator *translator;
  if (!fuzz_good(tarn_translator_open(&translator, FILE_NAME, &options))) return;
  (void)fuzz_good(tarn_translator_lines(translator, results, lines, lengths, 3));
  tarn_translator_close(&translator);
}

static void score(void) {
  const char *lines[] = {"ab c", "", "c ba b"};
  const size_t lengths[] = {4, 0, 6};
  tarn_lm_line results[3];
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.threads = 1;
  tarn_lm *lm;
  if (!fuzz_good(tarn_lm_open(&lm, FILE_NAME, &options))) return;
  (void)fuzz_good(tarn_lm_score(lm, results, lines, lengths, 3));
  tarn_lm_close(&lm);
}

static void generate(void) {
  const char *prompts[] = {"ab c", ""};
  const size_t lengths[] = {4, 0};
  tarn_generator_result results[2];
  tarn_generator_options options;
  tarn_generator_default(&options);
  options.threads = 1;
  options.max_tokens = 4;
  tarn_generator *generator;
  if (!fuzz_good(tarn_generator_open(&generator, FILE_NAME, &options))) return;
  (void)fuzz_good(tarn_generator_lines(generator, results, prompts, lengths, 2));
  tarn_generator_close(&generator);
}

static void load(tarn__dtype dtype) {
  tarn__checkpoint *checkpoint;
  if (fuzz_good(tarn__checkpoint_open(&checkpoint, FILE_NAME, dtype))) tarn__checkpoint_close(&checkpoint);
}

// What is written of a file that was taken is taken again.
static void write_out(unsigned how, bool int4) {
  const char *paths[] = {FILE_NAME, FILE_NAME};
  const tarn_prune prune = {.rate = 0.5};
  tarn_checkpoint_info *info;
  tarn_status status = how == 0   ? tarn_checkpoint_export(COPY, FILE_NAME)
                       : how == 1 ? tarn_checkpoint_average(COPY, paths, 2)
                       : how == 2 ? tarn_checkpoint_prune(COPY, FILE_NAME, &prune)
                       : how == 3 ? (int4 ? tarn_checkpoint_export_int4 : tarn_checkpoint_export_int8)(COPY, FILE_NAME)
                                  : tarn_checkpoint_export_gpt2("gpt2", FILE_NAME);
  if (!fuzz_good(status) || how > 3) return;
  fuzz_must(tarn_checkpoint_info_open(&info, COPY));
  tarn_checkpoint_info_close(&info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_checkpoint_info *info;
  const unsigned how = fuzz_choice(data, size);
  fuzz_write(FILE_NAME, data, size);
  if (!fuzz_good(tarn_checkpoint_info_open(&info, FILE_NAME))) return 0;
  bool small = is_small(info);
  const bool encoder = strstr(info->model, "\nencoder:"), decoder = strstr(info->model, "\ndecoder:");
  tarn_checkpoint_info_close(&info);
  if (!small) return 0;
  load(how % 2 ? TARN__F32 : TARN__BF16);
  if (how % 8 == 0) write_out(how / 8 % 5, how / 40 % 2);
  if (how % 8 != 1) return 0;
  if (encoder && decoder)
    translate();
  else if (decoder && how / 8 % 2)
    generate();
  else
    score();  // a masked model too
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
  return fuzz_mutate_tensors(data, size, room, seed);
}
