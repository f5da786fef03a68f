// Inside of tarn_prepare_run(): what makes rows of a text that are not its lines.
#ifndef TARN_DATA_PREPARE_STREAM_H
#define TARN_DATA_PREPARE_STREAM_H

#include "data/shard_writer.h"
#include "tarn/data.h"

// options->stream: the windows of a text.
tarn_status tarn__prepare_stream(tarn_prepare_result *result, const tarn_prepare_options *options) TARN_CHECKED;

#endif
