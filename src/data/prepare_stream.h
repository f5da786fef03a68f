// Internal to tarn_prepare_run(): rows of a text other than its lines.
#ifndef TARN_DATA_PREPARE_STREAM_H
#define TARN_DATA_PREPARE_STREAM_H

#include "data/encode_pool.h"
#include "data/parts_writer.h"
#include "tarn/data.h"

// options->stream: the windows of a text. `memory`: bytes for reading ahead (data/encoded_lines.h).
tarn_status tarn__prepare_stream(tarn_prepare_result *result, const tarn_prepare_options *options,
                                 tarn__encode_pool *pool, size_t memory) TARN_CHECKED;

#endif
