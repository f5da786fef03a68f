// Writes parts of a description as text; tarn_config_write() writes all of it.
#ifndef TARN_CONFIG_CONFIG_WRITE_H
#define TARN_CONFIG_CONFIG_WRITE_H

#include "description/description.h"

// Model, encoder, decoder and the kinds in use only: everything that determines names, shapes and meaning of the
// parameters. It is the model description of a checkpoint, and tarn_config_parse() reads it. Free *text with
// tarn_config_text_close(). Fails with MEMORY, as do the next two.
tarn_status tarn__config_write_model(const tarn_config *config, char **text) TARN_CHECKED;

// The hash of that text.
tarn_status tarn__config_model_hash(const tarn_config *config, char hash[TARN_CONFIG_HASH]) TARN_CHECKED;

// The layers of a stack as a short pattern, such as "(R L)*4", in *text as above.
tarn_status tarn__config_pattern(const tarn_config *config, const tarn_stack *stack, char **text) TARN_CHECKED;

#endif
