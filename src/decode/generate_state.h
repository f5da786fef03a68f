// Inside of tarn_generator (tarn/lm.h): its state, and what prompts that are continued together and prompts that join
// them have in common.
#ifndef TARN_DECODE_GENERATE_STATE_H
#define TARN_DECODE_GENERATE_STATE_H

#include "base/memory.h"
#include "decode/generator.h"
#include "decode/steering.h"
#include "store/checkpoint.h"
#include "tarn/lm.h"
#include "text/line_block.h"

struct tarn_generator {
  tarn_generator_options options;
  tarn__checkpoint *checkpoint;
  tarn__steering steering;
  tarn__generator *generator;
  tarn_generator_summary summary;
  // The prompts of one call.
  tarn_vocab_ids line_ids, whole;
  tarn__continuation text;
  int32_t *ids;      // of all prompts
  int64_t *offsets;  // [prompts + 1]
  tarn__translation *found;
  size_t ids_capacity, offsets_capacity, found_capacity;
  tarn__arena results;
  int64_t before;  // prompts of the file before this call
  // The window of tarn_generator_file().
  tarn__line_block block;
  tarn_generator_result *window;
  size_t window_capacity;
};

// Checks options by themselves; opens their steering, whose copies replace their texts; and states them for
// tarn__generator_set().
tarn_status tarn__generate_check(const tarn_generator_options *options) TARN_CHECKED;
tarn_status tarn__generate_steer(tarn__steering *steering, tarn_generator_options *options,
                                 const tarn_vocab *vocab) TARN_CHECKED;
void tarn__generate_core(tarn__generator_options *core, const tarn_generator_options *options,
                         const tarn__steering *steering, const tarn_vocab *vocab);

// The tokens of a prompt, in generator->line_ids; their numbers in the result.
tarn_status tarn__generate_encode(tarn_generator *generator, bool strict, tarn_generator_result *result,
                                  const char *line, size_t length) TARN_CHECKED;

// Where the result of a prompt comes from.
typedef struct tarn__generated {
  const tarn_generator_options *options;
  const tarn__stops *stops;
  const int32_t *prompt;  // [result->prompt_tokens]
  const tarn__hypothesis *hypotheses;
  int64_t count;
  tarn__arena *memory;  // of the result
} tarn__generated;
tarn_status tarn__generate_result(tarn_generator *generator, tarn_generator_result *result,
                                  const tarn__generated *from) TARN_CHECKED;

// Why a continuation of `tokens` tokens, the last of which is `last`, ended.
tarn_generator_end tarn__generate_end(const tarn_generator *generator, const tarn_generator_options *options,
                                      bool stopped, int32_t last, int64_t tokens);

#endif
