// Output of tarn inspect for a shard, or for several with an index.
#ifndef TARN_TOOLS_INSPECT_DATA_H
#define TARN_TOOLS_INSPECT_DATA_H

#include "cli.h"

// Returns the exit code.
int inspect_data(const cli_command *command, const char *prefix, bool json);

#endif
