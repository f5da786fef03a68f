// The summary of a shard of sentences: tarn prepare, tarn distill.
#ifndef TARN_TOOLS_PREPARE_OUTPUT_H
#define TARN_TOOLS_PREPARE_OUTPUT_H

#include <jansson.h>

#include "tarn/data.h"

void prepare_output_print(const tarn_prepare_result *result);
// NULL: out of memory.
json_t *prepare_output_json(const tarn_prepare_result *result);

#endif
