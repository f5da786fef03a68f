// Common code of tasks with a source and a target.
#ifndef TARN_TASK_TRANSLATION_H
#define TARN_TASK_TRANSLATION_H

#include "task/task.h"

// Declares the embeddings of both sides and the output table, shared as model.embeddings says.
tarn_status tarn__translation_tables(const tarn__task_site *site, tarn__task_weights *weights) TARN_CHECKED;
// The default of valid.metric, and its check.
tarn_status tarn__translation_resolve(tarn_config *config, const tarn__task_keys *keys) TARN_CHECKED;

#endif
