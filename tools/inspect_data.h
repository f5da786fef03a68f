// What tarn inspect says of a shard, or of several behind an index.
#ifndef TARN_TOOLS_INSPECT_DATA_H
#define TARN_TOOLS_INSPECT_DATA_H

#include "cli.h"

// Returns the exit code.
int inspect_data(const cli_command *command, const char *prefix, bool json);

#endif
