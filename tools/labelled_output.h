// tarn prepare --table: labelled sentences.
#ifndef TARN_TOOLS_LABELLED_OUTPUT_H
#define TARN_TOOLS_LABELLED_OUTPUT_H

#include "cli.h"
#include "tarn/data.h"

// Prepares them and prints the result. Returns the exit code.
int prepare_labels(const cli_command *command, const tarn_labelled_options *options, bool json);

#endif
